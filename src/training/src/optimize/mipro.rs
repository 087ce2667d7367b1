//! `mipro`: texts grounded in the cases, demos, and the author's `choices`, combined by Thompson sampling.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Purpose;

use super::fewshot;
use super::lab::{Candidate, Decision, Phase, Question, Stop};
use super::proposal::{Changes, NewText, Ordinals, answer, described, example};
use super::search::Search;
use super::thompson::{Belief, Combination, Observation};
use crate::case::Case;
use crate::numbers::{NOISE, float};
use crate::prompts::{Demo, TrainablePrompt};
use crate::rewrite::{Example, Grounds, grounded, summarize};

/// Requested texts per prompt: one for each tip.
pub(crate) const TIPS: [&str; 5] = [
    "Say exactly what to do in each kind of case.",
    "Be short and simple.",
    "Describe the task and what a good answer looks like.",
    "Name the mistakes that are easy to make, and how to avoid them.",
    "Write it as steps, in order.",
];
/// Maximum cases that are summarized, and shown to a proposal.
const SUMMARIZED: usize = 10;
const SHOWN: usize = 3;
/// Maximum summary characters.
const LONGEST_SUMMARY: usize = 1_500;
/// Trials between two full scorings of a combination.
pub(crate) const ROUND: u32 = 5;
/// Maximum draws until a combination has unexecuted cases.
const DRAWS: u64 = 16;
/// Virtual cases without a gain that are added for ranking a combination.
const DOUBT: f64 = 8.0;

/// The options to combine, and the combinations tried.
#[derive(Default)]
pub(super) struct Trials {
    /// `None` before the first trial.
    options: Option<Options>,
    /// Candidate numbers by combination.
    combinations: BTreeMap<Combination, u32>,
    /// Candidates that were scored in full.
    decided: BTreeSet<u32>,
    trials: u32,
    is_complete: bool,
}

/// The options per prompt: texts and demo sets; the seed's option comes first.
struct Options {
    texts: Vec<Vec<NewText>>,
    demos: Vec<Vec<Vec<Demo>>>,
}

impl Options {
    /// Option counts per dimension: the texts of all prompts, then their demos.
    fn counts(&self) -> Vec<usize> {
        self.texts.iter().map(Vec::len).chain(self.demos.iter().map(Vec::len)).collect()
    }
}

/// Whether draws no longer find a combination with open cases; what remains is hardly better.
pub(super) fn is_complete(search: &Search<'_>) -> bool {
    search.trials.is_complete
}

/// Tries one combination on some scoring cases; after every fifth trial, scores the best one in full.
pub(super) async fn step(search: &mut Search<'_>, minibatch: &[usize]) -> Result<(), Stop> {
    if search.trials.options.is_none() {
        search.trials.options = Some(options(search, minibatch).await?);
    }
    let Some((candidate, places)) = next(search) else {
        score_best(search).await?;
        search.trials.is_complete = true;
        return Ok(());
    };
    let round = search.round(Phase::Race);
    for contestant in [search.problem.seed(), candidate] {
        search.board.fill(search.lab, &contestant, &places, round).await?;
    }
    if search.trials.trials.is_multiple_of(ROUND) {
        score_best(search).await?;
    }
    Ok(())
}

/// Publishes decisions about the undecided combinations: one that was executed on all cases may win in the final.
pub(super) async fn close(search: &mut Search<'_>) -> Result<(), Stop> {
    let (val, seed) = (&search.problem.splits.val, search.problem.seed());
    for number in search.trials.combinations.values() {
        if search.trials.decided.contains(number) {
            continue;
        }
        let Some(candidate) = search.candidates.iter().find(|known| known.number == *number) else {
            continue;
        };
        let comparison = search.board.compared(&seed, candidate, val);
        let (n, gain) = (comparison.n, comparison.mean_diff);
        let is_whole = search.board.has_all(*number, val);
        let is_better = is_whole && gain > NOISE && search.board.worse_guard(&seed, candidate, val).is_none();
        let decision = if is_better { Decision::Accepted } else { Decision::Rejected };
        let state = if is_whole { "scored in full" } else { "not scored in full" };
        let reason = format!("{state} when the search ended ({gain:+.3} against the seed on {n} cases)");
        search.announce(candidate, decision, &reason, comparison).await?;
    }
    Ok(())
}

/// The next combination, and its cases. `None` if every draw gives the seed or a combination executed on all cases.
fn next(search: &mut Search<'_>) -> Option<(Candidate, Vec<usize>)> {
    let problem = search.problem;
    let counts = search.trials.options.as_ref()?.counts();
    let belief = Belief::after(&counts, &observations(search));
    let number = u64::from(search.trials.trials);
    // Two draws per attempt: the combination, and the case order.
    let draws = (number * DRAWS..(number + 1) * DRAWS).map(|draw| (draw * 2, draw * 2 + 1));
    for (first, second) in draws {
        let combination = belief.draw(&problem.counter, first);
        if combination.iter().all(|option| *option == 0) {
            continue;
        }
        let known = search.trials.combinations.get(&combination).copied();
        let val = &problem.splits.val;
        let is_open = |place: &usize| known.is_none_or(|known| !search.board.has_all(known, &[*place]));
        let order = problem.counter.shuffled(Purpose::Thompson, second, val.len());
        let open = order.into_iter().filter_map(|at| val.get(at).copied()).filter(is_open);
        let mut places: Vec<usize> = open.take(problem.optimizer.minibatch_size).collect();
        if places.is_empty() {
            continue;
        }
        places.sort_unstable();
        search.trials.trials = search.trials.trials.saturating_add(1);
        return Some((candidate(search, combination)?, places));
    }
    None
}

/// Each combination's gain over the seed on their shared cases.
fn observations(search: &Search<'_>) -> Vec<Observation> {
    let (val, seed) = (&search.problem.splits.val, search.problem.seed());
    let of = |(combination, number): (&Combination, &u32)| {
        let candidate = search.candidates.iter().find(|known| known.number == *number)?;
        let compared = search.board.compared(&seed, candidate, val);
        let (combination, cases, gain) = (combination.clone(), compared.n, compared.mean_diff);
        Some(Observation { combination, cases, gain })
    };
    search.trials.combinations.iter().filter_map(of).collect()
}

/// The candidate for a combination; created at its first trial.
fn candidate(search: &mut Search<'_>, combination: Combination) -> Option<Candidate> {
    if let Some(number) = search.trials.combinations.get(&combination) {
        return search.candidates.iter().find(|known| known.number == *number).cloned();
    }
    let seed = search.problem.seed();
    let (mut changes, mut demos) = (Changes::new(), (*seed.demos).clone());
    let options = search.trials.options.as_ref()?;
    let mut chosen = combination.iter();
    for (prompt, texts) in search.problem.prompts.iter().zip(&options.texts) {
        let option = chosen.next().copied().unwrap_or_default();
        if option > 0 {
            changes.extend(texts.get(option).map(|text| (prompt.name.clone(), text.clone())));
        }
    }
    for (prompt, sets) in search.problem.prompts.iter().zip(&options.demos) {
        let option = chosen.next().copied().unwrap_or_default();
        if option > 0 {
            demos.extend(sets.get(option).map(|set| (prompt.name.clone(), set.clone())));
        }
    }
    let candidate = search.candidate_of(&seed, &changes, demos);
    search.trials.combinations.insert(combination, candidate.number);
    Some(candidate)
}

/// Scores the combination with the best mean on all scoring cases. If it is better, it becomes the best candidate.
async fn score_best(search: &mut Search<'_>) -> Result<(), Stop> {
    let problem = search.problem;
    let mut best: Option<(f64, u32)> = None;
    for (seen, number) in observations(search).iter().zip(search.trials.combinations.values()) {
        let gain = seen.gain * float(seen.cases) / (float(seen.cases) + DOUBT);
        let is_better = gain > best.map_or(NOISE, |(known, _)| known + NOISE);
        if is_better && !search.trials.decided.contains(number) {
            best = Some((gain, *number));
        }
    }
    let is_it = |known: &&Candidate| best.is_some_and(|(_, number)| known.number == number);
    let Some(candidate) = search.candidates.iter().find(is_it).cloned() else { return Ok(()) };
    let (val, round) = (&problem.splits.val, search.round(Phase::Race));
    let incumbent = search.best.clone();
    for contestant in [&incumbent, &candidate] {
        search.board.fill(search.lab, contestant, val, round).await?;
    }
    search.trials.decided.insert(candidate.number);
    if search.compare_in_full(&incumbent, &candidate, val).await? == Decision::Accepted {
        search.best = candidate;
        search.keep().await?;
    }
    Ok(())
}

/// Texts and demos for all prompts.
async fn options(search: &mut Search<'_>, minibatch: &[usize]) -> Result<Options, Stop> {
    let problem = search.problem;
    let seed = problem.seed();
    let train: Vec<usize> = search.minibatches().into_iter().flatten().collect();
    let examples = |places: &[usize]| -> Vec<Example> {
        let cases = places.iter().filter_map(|place| problem.cases.get(*place));
        // The summary is in every request, so it must not contain visitor texts.
        cases.filter(|case| !Case::is_of_visitor(case)).take(SUMMARIZED).map(example).collect()
    };
    if problem.trains_demos() {
        fewshot::gather_enough(search, &seed, minibatch).await?;
    } else {
        let round = search.round(Phase::Train);
        search.board.fill(search.lab, &seed, minibatch, round).await?;
    }
    let steps = steps(search, minibatch).await?;
    let examples = examples(&train);
    let mut ordinals = Ordinals::default();
    let summary = summary(search, &examples, &mut ordinals).await?;
    let shown = examples.get(..SHOWN.min(examples.len())).unwrap_or_default();
    let mut texts = Vec::new();
    for prompt in problem.prompts {
        let workflow = described_workflow(&steps, prompt);
        let mut known = vec![NewText { text: prompt.seed.clone(), rationale: None }];
        let chosen = prompt.choices.iter().map(|text| NewText { text: text.clone(), rationale: None });
        for choice in chosen.filter(|choice| prompt.rules.fault(&prompt.seed, &choice.text).is_none()) {
            add(&mut known, choice);
        }
        for tip in TIPS {
            let grounds = Grounds { summary: &summary, workflow: &workflow, tip, examples: shown };
            let guidance = problem.optimizer.guidance.as_deref();
            let messages = grounded(described(prompt, &prompt.seed), grounds, guidance);
            if let Some(text) = answer(search, prompt, &prompt.seed, messages, &mut ordinals).await? {
                add(&mut known, text);
            }
        }
        texts.push(known);
    }
    let sets = if problem.trains_demos() { fewshot::sets(search, &seed) } else { Vec::new() };
    let demos_of = |prompt: &TrainablePrompt| {
        let mut known = vec![seed.demos.get(&prompt.name).cloned().unwrap_or_default()];
        for set in sets.iter().filter_map(|set| set.get(&prompt.name)) {
            if !known.contains(set) {
                known.push(set.clone());
            }
        }
        known
    };
    Ok(Options { texts, demos: problem.prompts.iter().map(demos_of).collect() })
}

fn add(known: &mut Vec<NewText>, new: NewText) {
    if known.iter().all(|old| old.text != new.text) {
        known.push(new);
    }
}

/// A model's summary of the training cases; empty if the model does not reply.
async fn summary(search: &Search<'_>, examples: &[Example], ordinals: &mut Ordinals) -> Result<String, Stop> {
    let Some(prompt) = search.problem.prompts.first() else { return Ok(String::new()) };
    let question = Question {
        proposal: search.proposals,
        prompt: prompt.name.clone(),
        ordinal: ordinals.next(),
        messages: summarize(examples),
    };
    let reply = search.lab.ask(question).await?.unwrap_or_default();
    let words: Vec<&str> = reply.split_whitespace().collect();
    Ok(words.join(" ").replace(['<', '>'], "").chars().take(LONGEST_SUMMARY).collect())
}

/// The nodes that training cases executed, in order, with the prompts that they read.
async fn steps(search: &Search<'_>, minibatch: &[usize]) -> Result<Vec<(String, Vec<String>)>, Stop> {
    let results = search.lab.recall(&search.problem.seed(), minibatch, search.round(Phase::Train)).await?;
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for step in results.iter().flatten().flat_map(|judged| &judged.run.trace) {
        if steps.iter().all(|(known, _)| *known != step.node) {
            steps.push((step.node.clone(), step.prompts_read.clone()));
        }
    }
    Ok(steps)
}

/// Describes the workflow around a prompt in a sentence; empty if no node is known.
fn described_workflow(steps: &[(String, Vec<String>)], prompt: &TrainablePrompt) -> String {
    let reads = |read: &[String]| read.contains(&prompt.name);
    let readers: Vec<String> =
        steps.iter().filter(|(_, read)| reads(read)).map(|(node, _)| format!("`{node}`")).collect();
    let all: Vec<String> = steps.iter().map(|(node, _)| format!("`{node}`")).collect();
    match (all.as_slice(), readers.as_slice()) {
        ([], _) => String::new(),
        (all, []) => format!("it executes the nodes {}.", all.join(", ")),
        (all, readers) => {
            format!(
                "it executes the nodes {}, in this order; {} reads this prompt.",
                all.join(", "),
                readers.join(" and ")
            )
        }
    }
}
