//! A search whose cases know the words that a prompt must have, and whose optimizer learns them or fails to.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use training::evaluators::{Evaluator, Verdict, read_evaluators};
use training::optimize::{
    Candidate, Decision, Finding, JudgedRun, Lab, Outcome, Phase, Problem, Question, Round, SamplesResult,
    SearchEvent, Stop, StopReason, search,
};
use training::request::{Optimizer, read_training};
use training::{Case, CaseRun, CaseStep, TrainablePrompt, trainable_prompts};

use crate::world::llm;

/// The behavior of the optimizer's model.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reflector {
    /// Adds the words that feedback names.
    Learns,
    /// Adds the words one after the other, regardless of feedback.
    Guesses,
    /// Removes everything.
    Forgets,
    /// Repeats a held-out case.
    Leaks,
    /// Refuses.
    Refuses,
    /// Loses the placeholder.
    LosesPlaceholder,
}

/// Answers cases by the words of the prompt.
pub(crate) struct Words<'a> {
    pub(crate) cases: &'a [Case],
    pub(crate) reflector: Reflector,
    /// The allowed case executions and requests.
    pub(crate) budget: usize,
    /// The part of the budget reserved for the final.
    pub(crate) kept: usize,
    pub(crate) spent: Mutex<usize>,
    pub(crate) over: Stop,
    /// The number of refusals.
    pub(crate) refused: Mutex<usize>,
    /// Proposal, prompt and ordinal of each request.
    pub(crate) numbers: Mutex<Vec<(u32, String, u32)>>,
    pub(crate) published: Mutex<Vec<String>>,
    pub(crate) rationales: Mutex<Vec<String>>,
    pub(crate) requests: Mutex<Vec<String>>,
    pub(crate) executed: Mutex<Vec<(u32, usize, &'static str, u32)>>,
    /// Cases whose results were recalled.
    pub(crate) recalled: Mutex<BTreeSet<usize>>,
}

impl Words<'_> {
    fn spend(&self, amount: usize, phase: Phase) -> Result<(), Stop> {
        let kept = if matches!(phase, Phase::Final | Phase::Test) { 0 } else { self.kept };
        let mut spent = self.spent.lock();
        let mut refused = self.refused.lock();
        if *spent + amount + kept > self.budget || *refused > 0 && self.over != Stop::Budget {
            *refused += 1;
            return Err(self.over);
        }
        *spent += amount;
        Ok(())
    }

    fn judged(&self, candidate: &Candidate, place: usize, sample: u32) -> JudgedRun {
        let text = &candidate.prompts["p"];
        let word = self.cases[place].metadata["word"].as_str().unwrap();
        // A case whose score depends on the sample.
        let is_lucky = !word.ends_with("luck") || sample == 0;
        let knows = text.contains(word) && is_lucky || word == "coin" && sample > 0;
        let polite = !text.contains("rude");
        let step = CaseStep {
            node: "answer".into(),
            visit: 1,
            attempt: 1,
            output: Some(json!({"text": "an answer"})),
            prompts_read: vec!["p".into()],
            ..CaseStep::default()
        };
        let length = u64::try_from(text.len()).unwrap();
        let run = CaseRun {
            output: json!("an answer"),
            text: "an answer".into(),
            error: None,
            trace: vec![step],
            // A longer prompt takes longer and costs more.
            duration: std::time::Duration::from_millis(length),
            cost: Some(length),
        };
        let score =
            if knows { Verdict::passed(true) } else { Verdict::passed(false).because(format!("say {word}")) };
        JudgedRun { run: Arc::new(run), verdicts: vec![score, Verdict::passed(polite)] }
    }
}

#[async_trait]
impl Lab for Words<'_> {
    async fn evaluate(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        self.spend(places.len(), round.phase)?;
        let mut executed = self.executed.lock();
        for place in places {
            let new = (candidate.number, *place, round.phase.as_str(), round.first_sample);
            executed.push(new);
        }
        Ok(places.iter().map(|place| vec![self.judged(candidate, *place, round.first_sample)]).collect())
    }

    async fn recall(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        self.recalled.lock().extend(places);
        Ok(places.iter().map(|place| vec![self.judged(candidate, *place, round.first_sample)]).collect())
    }

    async fn reuse(&self, candidate: &Candidate, places: &[usize], round: Round) -> Result<(), Stop> {
        let executed = self.executed.lock();
        for place in places {
            let is_known = |(number, known, _, first): &(u32, usize, &str, u32)| {
                (*number, *known, *first) == (candidate.number, *place, round.first_sample)
            };
            assert!(executed.iter().any(is_known), "{place} was not executed");
        }
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<Option<String>, Stop> {
        self.spend(1, Phase::Train)?;
        let text = &question.messages[1].content;
        self.requests.lock().push(text.clone());
        self.numbers.lock().push((question.proposal, question.prompt.clone(), question.ordinal));
        if text.contains("critique alone") {
            return Ok(Some("The prompt leaves something out.".into()));
        }
        let current =
            text.split_once("<prompt name=\"p\">\n").unwrap().1.split_once("\n</prompt>").unwrap().0;
        let words: BTreeSet<&str> = text.split_whitespace().filter(|word| word.starts_with("word")).collect();
        let new = match self.reflector {
            Reflector::Learns => format!("{current} {}", words.into_iter().collect::<Vec<_>>().join(" ")),
            Reflector::Guesses => format!("{current} {}", WORDS[self.requests.lock().len() % WORDS.len()]),
            Reflector::Forgets => "Answer {{ inputs.n }} somehow.".into(),
            Reflector::Leaks => {
                let is_held_out = |case: &&Case| case.split() == Some("val");
                let repeated = self.cases.iter().find(is_held_out).or(self.cases.first()).unwrap();
                format!("{current} {}", repeated.inputs["secret"].as_str().unwrap())
            }
            Reflector::Refuses => return Ok(Some("I cannot do that.".into())),
            Reflector::LosesPlaceholder => "Answer wordly.".into(),
        };
        Ok(Some(format!("Sure!\nIt lacks a word.\n<new_prompt>{new}</new_prompt>")))
    }

    fn release_demos(&self) {}

    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        let line = match event {
            SearchEvent::Candidate { candidate, decision, comparison, rationale, .. } => {
                self.rationales.lock().extend(rationale.map(str::to_owned));
                let decided = if decision == Decision::Accepted { "accepted" } else { "rejected" };
                format!("candidate {} {decided} n={}", candidate.number, comparison.n)
            }
            SearchEvent::Epoch { epoch, best, score, .. } => {
                format!("epoch {epoch} best {} {score:.2}", best.number)
            }
            SearchEvent::Checkpoint { epoch, candidate, summary } => {
                format!("checkpoint {epoch} of {} {:.2}", candidate.number, summary.summary["e"])
            }
            SearchEvent::Warning(warning) => format!("warning {}", warning.code),
        };
        self.published.lock().push(line);
        Ok(())
    }
}

pub(crate) const SEED: &str = "Answer {{ inputs.n }}.";

pub(crate) struct Trained {
    pub(crate) cases: Vec<Case>,
    pub(crate) prompts: Vec<TrainablePrompt>,
    pub(crate) evaluators: Vec<Evaluator>,
    pub(crate) optimizer: Optimizer,
}

/// A case whose inputs have a secret.
pub(crate) fn case(place: usize, metadata: Map<String, Value>) -> Case {
    let secret = (0..8).map(|n| format!("canary{place}x{n}")).collect::<Vec<_>>().join(" ");
    let inputs = json!({"n": place, "secret": secret}).as_object().unwrap().clone();
    Case {
        id: place.to_string(),
        index: u32::try_from(place).unwrap(),
        inputs,
        expected_output: Value::Null,
        metadata,
    }
}

/// Cases that need one of these words each, in turn.
pub(crate) fn world(
    count: usize,
    words: &[&str],
    optimizer: Value,
    split: impl Fn(usize) -> Option<&'static str>,
) -> Trained {
    let case = |place: usize| {
        let mut metadata = Map::from_iter([("word".to_owned(), json!(words[place % words.len()]))]);
        metadata.extend(split(place).map(|split| ("split".to_owned(), json!(split))));
        case(place, metadata)
    };
    let mut problems = Vec::new();
    let request = json!({"dataset": {"cases": [{"inputs": {}}]}, "optimizer": optimizer,
        "evaluators": [{"id": "e", "entrypoint": "builtin:json_valid"},
                       {"id": "g", "entrypoint": "builtin:json_valid", "role": "guard"}]});
    let optimizer =
        read_training(&request, "", &mut problems).unwrap_or_else(|| panic!("{problems:?}")).optimizer;
    let evaluators = read_evaluators(&request["evaluators"], "", &mut problems);
    let plan =
        crate::world::plan(&[llm("answer", "{{ config.prompts.p.text }}")], "{{ results.answer.text }}");
    let config = json!({"prompts": {"p": {"text": SEED, "requires_grad": true}}});
    let mut warnings = Vec::new();
    let prompts = trainable_prompts(&plan, config.as_object().unwrap(), "", &mut problems, &mut warnings);
    Trained { cases: (0..count).map(case).collect(), prompts, evaluators, optimizer }
}

impl Trained {
    pub(crate) fn lab(&self, reflector: Reflector, budget: usize, over: Stop) -> Words<'_> {
        Words {
            cases: &self.cases,
            reflector,
            budget,
            kept: 0,
            spent: Mutex::default(),
            over,
            refused: Mutex::default(),
            numbers: Mutex::default(),
            published: Mutex::default(),
            rationales: Mutex::default(),
            requests: Mutex::default(),
            executed: Mutex::default(),
            recalled: Mutex::default(),
        }
    }

    /// Searches with each `step`th budget below that of a whole search: the returned prompts always have a
    /// checkpoint, and nothing is tried after a cancel.
    pub(crate) async fn assert_ends_within(&self, reflector: Reflector, step: usize) {
        let whole = self.lab(reflector, usize::MAX, Stop::Budget);
        self.search(&whole).await.unwrap();
        let most = *whole.spent.lock();
        for budget in (0..most).step_by(step) {
            let lab = self.lab(reflector, budget, Stop::Budget);
            let found = self.search(&lab).await.unwrap();
            let of_best = format!(" of {} ", found.best.number);
            let kept = lab.published.lock().iter().any(|line| line.contains(&of_best));
            assert!(kept || found.best.number == 0, "{budget}: the returned prompts have a checkpoint");
            assert!(found.outcome != Outcome::Improved || found.best.number != 0);
            let lab = self.lab(reflector, budget, Stop::Cancelled);
            assert_eq!(self.search(&lab).await.unwrap().stop_reason, StopReason::Cancelled, "{budget}");
            assert_eq!(*lab.refused.lock(), 1, "nothing is tried after it");
        }
    }

    /// Asserts that requests to the optimizer contain only training cases.
    pub(crate) fn assert_held_out(&self, lab: &Words<'_>) {
        let requests = lab.requests.lock();
        let is_told = |split: &str| {
            let mut cases = self.cases.iter().filter(|case| case.split() == Some(split));
            cases.any(|case| requests.iter().any(|text| text.contains(&format!("canary{}x", case.index))))
        };
        assert_eq!(["train", "val", "test"].map(is_told), [true, false, false]);
    }

    pub(crate) async fn search<'a>(&'a self, lab: &Words<'a>) -> Result<Finding, Stop> {
        let problem = Problem::new(&self.cases, &self.prompts, &self.evaluators, &self.optimizer);
        search(&problem, lab).await
    }
}

pub(crate) const WORDS: [&str; 4] = ["worda", "wordb", "wordc", "wordd"];

pub(crate) fn shared(_place: usize) -> Option<&'static str> {
    None
}

pub(crate) fn thirds(place: usize) -> Option<&'static str> {
    Some(["train", "val", "test"][place % 3])
}
