//! Lessons from failing cases for the optimizer's model, and the new texts that it writes.

use std::collections::{BTreeMap, BTreeSet};

use models::Message;
use serde_json::Value;

use super::lab::{Candidate, Phase, Question, SearchEvent, Stop};
use super::search::Search;
use crate::case::Case;
use crate::evaluators::{Evaluator, EvaluatorRole, Verdict};
use crate::numbers::PERFECT;
use crate::prompts::TrainablePrompt;
use crate::rewrite::{PromptText, Record, RewriteFault, new_prompt, rationale, request, request_again};
use crate::runner::CaseRun;
use crate::warning::Warning;

/// Maximum attempts at a usable text.
pub(crate) const ATTEMPTS: u32 = 2;
/// Maximum failing cases per request.
const SHOWN_FAILING: usize = 6;

/// A new prompt text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewText {
    pub(super) text: String,
    /// The rationale, in the words of the model that wrote the text.
    pub(super) rationale: Option<String>,
}

/// New texts by prompt name.
pub(super) type Changes = BTreeMap<String, NewText>;

/// The combined rationale; `None` if no model gave one.
pub(super) fn rationale_of(changes: &Changes) -> Option<String> {
    let said = changes.iter().filter_map(|(name, new)| Some((name, new.rationale.as_ref()?)));
    let said: Vec<String> = match changes.len() {
        1 => said.map(|(_, said)| said.clone()).collect(),
        _ => said.map(|(name, said)| format!("{name}: {said}")).collect(),
    };
    (!said.is_empty()).then(|| said.join("\n"))
}

/// Numbers a candidate's requests about a prompt.
#[derive(Debug, Default)]
pub(super) struct Ordinals(u32);

impl Ordinals {
    pub(super) fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0 - 1
    }
}

/// A training case's result with its verdicts.
type TrainingResult<'a> = (&'a CaseRun, &'a [Verdict]);

/// The prompts that a result blames: those that evaluators name, else those that were read, else all, because a case
/// that timed out has no finished node.
fn blamed<'p>(
    run: &CaseRun,
    verdicts: &[Verdict],
    prompts: &'p [TrainablePrompt],
) -> Vec<&'p TrainablePrompt> {
    let targets: BTreeSet<&str> =
        verdicts.iter().flat_map(|verdict| verdict.targets.keys()).map(String::as_str).collect();
    let named = |names: &BTreeSet<&str>| -> Vec<&'p TrainablePrompt> {
        prompts.iter().filter(|prompt| names.contains(prompt.name.as_str())).collect()
    };
    let by_target = named(&targets);
    if !by_target.is_empty() {
        return by_target;
    }
    let read = named(&run.trace.iter().flat_map(|step| &step.prompts_read).map(String::as_str).collect());
    if read.is_empty() { prompts.iter().collect() } else { read }
}

/// The evaluators that count and are not satisfied, without those that failed themselves.
fn failed<'s>(
    search: &'s Search<'_>,
    verdicts: &'s [Verdict],
) -> impl Iterator<Item = (&'s Evaluator, &'s Verdict)> {
    let judged = search.problem.evaluators.iter().zip(verdicts);
    judged.filter(|(evaluator, verdict)| {
        let counts = evaluator.role != EvaluatorRole::MetricOnly && !verdict.skip && verdict.error.is_none();
        counts && verdict.score < PERFECT
    })
}

/// Whether a prompt could fix the result; endpoint failures teach nothing.
fn teaches(run: &CaseRun) -> bool {
    run.error.as_ref().is_none_or(|error| !error.is_infrastructure())
}

/// A prompt's record from a case result.
fn record(search: &Search<'_>, case: &Case, run: &CaseRun, verdicts: &[Verdict], prompt: &str) -> Record {
    let steps = run.trace.iter().rev();
    let reader = steps.clone().find(|step| step.prompts_read.iter().any(|read| read == prompt));
    let own = reader.and_then(|step| step.output.as_ref()).map(text_of);
    let whole = run
        .error
        .as_ref()
        .map_or_else(|| run.text.clone(), |error| format!("{}: {}", error.code(), error.message()));
    let got = match own {
        // The prompt directly affects the node's own output; later nodes have changed it.
        Some(own) if own.trim() != whole.trim() => format!("{own}\nIn the end: {whole}"),
        _ => whole,
    };
    let failed: Vec<(&Evaluator, &Verdict)> = failed(search, verdicts).collect();
    let feedback = failed.iter().map(|(evaluator, verdict)| {
        let given = verdict.targets.get(prompt).or(verdict.feedback.as_ref());
        given.cloned().unwrap_or_else(|| format!("{} gives {:.2}.", evaluator.id, verdict.score))
    });
    let message = case.inputs.get("message").and_then(Value::as_str);
    let input = message.map_or_else(|| Value::Object(case.inputs.clone()).to_string(), str::to_owned);
    let expected = match &case.expected_output {
        Value::Null => String::new(),
        expected => text_of(expected),
    };
    Record {
        input,
        expected,
        got,
        passed: failed.is_empty(),
        feedback: feedback.collect::<Vec<_>>().join(" "),
    }
}

/// Records from a candidate's results on these cases, by prompt name; `None` if no case could be better.
/// `with_earlier`: fills up the request with other failing cases from earlier executions.
pub(super) async fn lessons(
    search: &mut Search<'_>,
    base: &Candidate,
    minibatch: &[usize],
    with_earlier: bool,
) -> Result<Option<BTreeMap<String, Vec<Record>>>, Stop> {
    let problem = search.problem;
    let round = search.round(Phase::Train);
    search.board.fill(search.lab, base, minibatch, round).await?;
    let fails = |place: &usize| search.board.score(base.number, *place).is_some_and(|score| score < PERFECT);
    let mut places = minibatch.to_vec();
    if with_earlier {
        let left = SHOWN_FAILING.saturating_sub(minibatch.iter().filter(|place| fails(place)).count());
        let earlier = problem.splits.train.iter().filter(|place| !minibatch.contains(place) && fails(place));
        places.extend(earlier.take(left));
    }
    let results = search.lab.recall(base, &places, round).await?;
    let mut has_failed = false;
    let mut lessons: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for (place, samples) in places.iter().zip(&results) {
        let Some(case) = problem.cases.get(*place) else { continue };
        let mut told = samples.iter().map(|judged| (&*judged.run, &*judged.verdicts));
        // Among several samples, the first failing one.
        let is_failing =
            |told: &TrainingResult<'_>| teaches(told.0) && failed(search, told.1).next().is_some();
        let told = told.clone().find(is_failing).or_else(|| told.next());
        let Some((run, verdicts)) = told.filter(|told| teaches(told.0)) else { continue };
        has_failed |= fails(place);
        for prompt in blamed(run, verdicts, problem.prompts) {
            let record = record(search, case, run, verdicts, &prompt.name);
            lessons.entry(prompt.name.clone()).or_default().push(record);
        }
    }
    search.without_failure = if has_failed { 0 } else { search.without_failure + 1 };
    // A prompt without a failing case has nothing to learn.
    lessons.retain(|_, records| records.iter().any(|record| !record.passed));
    Ok(has_failed.then_some(lessons))
}

/// The text in a model's answer, else the value as JSON.
fn text_of(value: &Value) -> String {
    match value.get("text").unwrap_or(value) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Requests a new text for a candidate's prompt from these records; `None` if the model gives no usable one.
pub(super) async fn rewrite(
    search: &Search<'_>,
    base: &Candidate,
    prompt: &TrainablePrompt,
    records: &[Record],
    ordinals: &mut Ordinals,
) -> Result<Option<NewText>, Stop> {
    let Some(current) = base.prompts.get(&prompt.name) else { return Ok(None) };
    let rejected = search.rejected.get(&prompt.name).map(Vec::as_slice).unwrap_or_default();
    let guidance = search.problem.optimizer.guidance.as_deref();
    let messages = request(described(prompt, current), records, rejected, guidance);
    answer(search, prompt, current, messages, ordinals).await
}

/// Requests a text from the model; `None` without a usable one in two attempts.
async fn answer(
    search: &Search<'_>,
    prompt: &TrainablePrompt,
    current: &str,
    mut messages: Vec<Message>,
    ordinals: &mut Ordinals,
) -> Result<Option<NewText>, Stop> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let question = Question {
            proposal: search.proposals,
            prompt: prompt.name.clone(),
            ordinal: ordinals.next(),
            messages: messages.clone(),
        };
        let Some(reply) = search.lab.ask(question).await? else { return Ok(None) };
        let text = new_prompt(&reply);
        let fault = text.as_deref().and_then(|text| fault(search, prompt, current, text));
        match (text, &fault) {
            (Some(text), None) => {
                report_memorised(search, prompt, &text).await?;
                // The rationale may be kept, but must not repeat a case.
                let leaks = &search.problem.leaks;
                let may_be_kept =
                    |said: &String| leaks.leak(said).is_none() && leaks.memorised(said).is_none();
                return Ok(Some(NewText { text, rationale: rationale(&reply).filter(may_be_kept) }));
            }
            _ => messages = request_again(messages, &reply, fault.as_ref()),
        }
        last = fault;
    }
    let warning = match last {
        Some(RewriteFault::Leak(part)) => Warning::new(
            "leakage",
            format!("a text for '{}' repeats a case that decides: {part}", prompt.name),
        ),
        Some(fault) => {
            Warning::new("unparsable_rewrite", format!("no text for '{}': {}", prompt.name, fault.message()))
        }
        None => Warning::new("unparsable_rewrite", format!("the reply has no text for '{}'", prompt.name)),
    };
    search.publish(SearchEvent::Warning(warning)).await?;
    Ok(None)
}

/// Warns about a text that repeats training inputs: it may be good at that case and at no other.
async fn report_memorised(search: &Search<'_>, prompt: &TrainablePrompt, text: &str) -> Result<(), Stop> {
    let Some(part) = search.problem.leaks.memorised(text) else { return Ok(()) };
    let message = format!("a text for '{}' repeats a case for training: {part}", prompt.name);
    search.publish(SearchEvent::Warning(Warning::new("memorised", message))).await
}

fn fault(search: &Search<'_>, prompt: &TrainablePrompt, current: &str, text: &str) -> Option<RewriteFault> {
    let leak = || search.problem.leaks.leak(text).map(RewriteFault::Leak);
    prompt.rules.fault(current, text).or_else(leak)
}

/// A prompt as requests describe it.
pub(super) fn described<'p>(prompt: &'p TrainablePrompt, current: &'p str) -> PromptText<'p> {
    PromptText {
        name: &prompt.name,
        text: current,
        role: prompt.role.as_deref(),
        constraints: &prompt.constraints,
        max_chars: prompt.rules.max_chars(),
        frozen_spans: prompt.rules.frozen_spans(),
    }
}
