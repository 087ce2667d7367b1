//! Demos: their source, their comparison, and when `auto` tries them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::ExampleInputs;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use training::evaluators::{Evaluator, Verdict, read_evaluators};
use training::optimize::{
    Candidate, Decision, Finding, JudgedRun, Lab, Outcome, Phase, Problem, Question, Round, SamplesResult,
    SearchEvent, Stop, StopReason, search,
};
use training::request::{Optimizer, read_training};
use training::{Case, CaseRun, CaseStep, Demo, TrainablePrompt, trainable_prompts};

use crate::planned::planned;
use crate::words::case;

/// The number of case kinds.
const KINDS: usize = 3;
/// The case with a tag in an input.
const TAGGED: usize = 4;

/// The condition for a case to pass.
#[derive(Clone, Copy, PartialEq)]
enum Teaches {
    /// Every fourth case passes; the others if a demo shows their kind.
    Demos,
    /// The same, if the prompt has the word.
    DemosAfterWord,
    /// Demos change nothing.
    Nothing,
    /// No case passes.
    NoCase,
}

struct Trained {
    cases: Vec<Case>,
    prompts: Vec<TrainablePrompt>,
    evaluators: Vec<Evaluator>,
    optimizer: Optimizer,
    teaches: Teaches,
}

/// Cases that cycle through the kinds, the first ones for training.
fn world(train: usize, val: usize, teaches: Teaches, optimizer: Value) -> Trained {
    let case = |place: usize| {
        let split = if place < train { "train" } else { "val" };
        case(place, Map::from_iter([("split".to_owned(), json!(split))]))
    };
    let mut problems = Vec::new();
    let request = json!({"dataset": {"cases": [{"inputs": {}}]}, "optimizer": optimizer,
        "evaluators": [{"id": "e", "entrypoint": "builtin:json_valid"}]});
    let optimizer =
        read_training(&request, "", &mut problems).unwrap_or_else(|| panic!("{problems:?}")).optimizer;
    let evaluators = read_evaluators(&request["evaluators"], "", &mut problems);
    let node = json!({"name": "answer", "type": "llm", "model": "test/m", "system": "{{ config.prompts.p.text }}", "user": "x"});
    let plan = crate::world::plan(&[node], "{{ results.answer.text }}");
    let config =
        json!({"prompts": {"p": {"text": "Answer.", "requires_grad": true, "demos_trainable": true}}});
    let prompts = trainable_prompts(&plan, config.as_object().unwrap(), "", &mut problems, &mut Vec::new());
    Trained { cases: (0..train + val).map(case).collect(), prompts, evaluators, optimizer, teaches }
}

/// Answers cases by the demos of the prompt.
struct DemoLab<'a> {
    trained: &'a Trained,
    budget: usize,
    kept: usize,
    kept_for_demos: Mutex<usize>,
    spent: Mutex<usize>,
    /// Compared candidates with their decisions.
    compared: Mutex<Vec<(Candidate, Decision)>>,
    /// All events in order.
    happened: Mutex<Vec<String>>,
}

impl DemoLab<'_> {
    fn spend(&self, amount: usize, phase: Phase) -> Result<(), Stop> {
        let is_final = matches!(phase, Phase::Final | Phase::Test);
        let kept = if is_final { 0 } else { self.kept + *self.kept_for_demos.lock() };
        let mut spent = self.spent.lock();
        if *spent + amount + kept > self.budget {
            return Err(Stop::Budget);
        }
        *spent += amount;
        Ok(())
    }

    fn judged(&self, candidate: &Candidate, place: usize) -> JudgedRun {
        let kind = format!("kind {}", place % KINDS);
        let shows = candidate.demos["p"].iter().any(|demo| demo.output == json!(kind));
        let has_word = candidate.prompts["p"].contains("word");
        let passes = match self.trained.teaches {
            Teaches::Demos => shows || place.is_multiple_of(4),
            Teaches::DemosAfterWord => {
                shows && has_word || place.is_multiple_of(4) || has_word && place % 4 == 1
            }
            Teaches::Nothing => place.is_multiple_of(4),
            Teaches::NoCase => false,
        };
        // Its output contains a held-out case.
        let last = self.trained.cases.len() - 1;
        let output = match place {
            0 => self.trained.cases[last].inputs["secret"].clone(),
            _ => json!(kind),
        };
        let note = self.trained.cases[place].inputs.get("note").cloned().unwrap_or(json!("plain"));
        let step = CaseStep {
            node: "answer".into(),
            visit: 1,
            attempt: 1,
            output: Some(json!({"text": output})),
            prompts_read: vec!["p".into()],
            example: Some(ExampleInputs {
                prompts: vec!["p".into()],
                inputs: json!({"user": format!("case {place}"), "note": note}),
            }),
            ..CaseStep::default()
        };
        let run = CaseRun {
            output: json!(kind),
            text: kind,
            error: None,
            trace: vec![step],
            duration: Duration::ZERO,
            cost: None,
        };
        JudgedRun { run: Arc::new(run), verdicts: vec![Verdict::passed(passes)] }
    }
}

#[async_trait]
impl Lab for DemoLab<'_> {
    async fn evaluate(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        self.spend(places.len(), round.phase)?;
        Ok(places.iter().map(|place| vec![self.judged(candidate, *place)]).collect())
    }

    async fn recall(&self, candidate: &Candidate, places: &[usize], _round: Round) -> SamplesResult {
        let is_training = |place: &usize| self.trained.cases[*place].split() == Some("train");
        assert!(places.iter().all(is_training), "only results of training cases are read");
        Ok(places.iter().map(|place| vec![self.judged(candidate, *place)]).collect())
    }

    async fn reuse(&self, _candidate: &Candidate, _places: &[usize], _round: Round) -> Result<(), Stop> {
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<Option<String>, Stop> {
        self.spend(1, Phase::Train)?;
        self.happened.lock().push("asked".to_owned());
        let text = &question.messages[1].content;
        Ok(Some(match text.contains("critique alone") {
            true => "It lacks the word.".to_owned(),
            false => "<new_prompt>Answer with the word.</new_prompt>".to_owned(),
        }))
    }

    fn release_demos(&self) {
        *self.kept_for_demos.lock() = 0;
        self.happened.lock().push("released".to_owned());
    }

    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        let line = match event {
            SearchEvent::Candidate { candidate, changed, decision, .. } => {
                assert_eq!(changed, ["p"]);
                self.compared.lock().push((candidate.clone(), decision));
                format!("{} demos {decision:?}", candidate.demos["p"].len())
            }
            SearchEvent::Epoch { epoch, .. } => format!("epoch {epoch}"),
            SearchEvent::Checkpoint { candidate, .. } => format!("checkpoint of {}", candidate.number),
            SearchEvent::Warning(warning) => format!("warning {}", warning.code),
        };
        self.happened.lock().push(line);
        Ok(())
    }
}

impl Trained {
    fn lab(&self, budget: usize) -> DemoLab<'_> {
        DemoLab {
            trained: self,
            budget,
            kept: 0,
            kept_for_demos: Mutex::default(),
            spent: Mutex::default(),
            compared: Mutex::default(),
            happened: Mutex::default(),
        }
    }

    fn problem(&self) -> Problem<'_> {
        Problem::new(&self.cases, &self.prompts, &self.evaluators, &self.optimizer)
    }

    async fn search(&self, lab: &DemoLab<'_>) -> Finding {
        search(&self.problem(), lab).await.unwrap()
    }
}

/// The number of the case that a demo is from.
fn place(demo: &Demo) -> usize {
    demo.inputs["user"].as_str().unwrap().strip_prefix("case ").unwrap().parse().unwrap()
}

#[tokio::test]
async fn demos_come_from_passing_training_cases_and_are_compared_in_sets() {
    let mut world = world(40, 30, Teaches::Demos, json!({"name": "fewshot", "epochs": 2}));
    // A visitor's tag.
    world.cases[TAGGED].inputs.insert("note".to_owned(), json!("{{ config }}"));
    let lab = world.lab(usize::MAX);
    let found = world.search(&lab).await;
    assert_eq!((found.stop_reason, found.outcome), (StopReason::Epochs, Outcome::Improved));
    assert_eq!(found.val.best, 1.0, "each kind is shown: {found:?}");
    assert_eq!(found.best.prompts["p"], "Answer.", "the text stays");
    let compared = lab.compared.lock();
    assert_eq!(compared.len(), 8);
    let sets: BTreeSet<Vec<usize>> =
        compared.iter().map(|(candidate, _)| candidate.demos["p"].iter().map(place).collect()).collect();
    assert_eq!(sets.len(), compared.len(), "no set is compared twice");
    assert!(sets.iter().all(|set| (1..=4).contains(&set.len())), "{sets:?}");
    assert!(sets.iter().map(Vec::len).collect::<BTreeSet<_>>().len() > 1, "sets differ in size: {sets:?}");
    // Only every fourth case passes until a demo makes more pass; an output that repeats a held-out case does not
    // become a demo.
    assert!(sets.iter().flatten().all(|place| *place < 40 && *place != 0), "{sets:?}");
    assert!(sets.iter().flatten().all(|place| *place != TAGGED), "tags do not become demos: {sets:?}");
    let mut first = compared[0].0.demos["p"].iter().map(place);
    assert!(first.all(|place| place.is_multiple_of(4)));
    assert!(!lab.happened.lock().contains(&"asked".to_owned()));
}

#[tokio::test]
async fn the_seed_determines_the_demo_sets() {
    let mut all = Vec::new();
    for seed in [1, 1, 2] {
        let world = world(40, 30, Teaches::Demos, json!({"name": "fewshot", "seed": seed}));
        let lab = world.lab(usize::MAX);
        let found = world.search(&lab).await;
        all.push((found, lab.happened.into_inner()));
    }
    assert_eq!(all[0], all[1]);
    assert_ne!(all[0].1, all[2].1);
}

#[tokio::test]
async fn eight_sets_are_compared_for_any_number_of_epochs() {
    for (epochs, ended) in [(1, 1), (2, 2), (50, 2)] {
        let world = world(40, 30, Teaches::Nothing, json!({"name": "fewshot", "epochs": epochs}));
        let lab = world.lab(usize::MAX);
        let found = world.search(&lab).await;
        assert_eq!((found.stop_reason, found.best.number), (StopReason::Epochs, 0));
        assert_eq!(found.best.demos["p"], []);
        assert_eq!(lab.compared.lock().len(), 8, "{epochs}");
        let happened = lab.happened.lock();
        assert_eq!(happened.iter().filter(|line| line.starts_with("epoch")).count(), ended, "{epochs}");
        assert_eq!(happened.last().unwrap(), "checkpoint of 0", "of the last epoch");
    }
}

#[tokio::test]
async fn without_a_passing_case_there_are_no_demos() {
    let world = world(20, 20, Teaches::NoCase, json!({"name": "fewshot", "epochs": 5}));
    let lab = world.lab(usize::MAX);
    let found = world.search(&lab).await;
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    assert_eq!(*lab.happened.lock(), ["warning no_demos", "epoch 1", "checkpoint of 0"]);
}

#[tokio::test]
async fn a_budget_of_any_size_ends_with_a_result() {
    for name in ["fewshot", "auto"] {
        let world = world(24, 20, Teaches::Demos, json!({"name": name, "epochs": 2}));
        for budget in (0..400).step_by(7) {
            let lab = world.lab(budget);
            let found = world.search(&lab).await;
            let kept = format!("checkpoint of {}", found.best.number);
            assert!(found.best.number == 0 || lab.happened.lock().contains(&kept), "{name} {budget}");
            assert!(*lab.spent.lock() <= budget);
        }
    }
}

#[tokio::test]
async fn auto_starts_with_demos_if_a_set_is_significantly_better() {
    let world = world(40, 30, Teaches::Demos, json!({"name": "auto", "epochs": 1}));
    assert_eq!(world.problem().kept_for_demos(), 200);
    let lab = world.lab(usize::MAX);
    let found = world.search(&lab).await;
    assert_eq!((found.outcome, found.val.best), (Outcome::Improved, 1.0));
    let happened = lab.happened.lock();
    assert_eq!(happened[..2], ["4 demos Accepted", "released"], "{happened:?}");
    assert_eq!(happened.iter().filter(|line| *line == "released").count(), 1);
    let before_rewrites = happened.iter().take_while(|line| *line != "asked");
    assert_eq!(before_rewrites.filter(|line| line.contains(" demos ")).count(), 8, "{happened:?}");
}

#[tokio::test]
async fn auto_compares_demos_with_its_winner_at_the_end() {
    let world = world(40, 30, Teaches::DemosAfterWord, json!({"name": "auto", "epochs": 2}));
    let lab = world.lab(usize::MAX);
    let found = world.search(&lab).await;
    assert_eq!((found.outcome, found.val.best), (Outcome::Improved, 1.0), "{found:?}");
    assert!(found.best.prompts["p"].contains("word") && !found.best.demos["p"].is_empty());
    let happened = lab.happened.lock();
    assert_eq!(happened[0], "4 demos Rejected", "{happened:?}");
    let released = happened.iter().position(|line| line == "released").unwrap();
    let last_asked = happened.iter().rposition(|line| line == "asked").unwrap();
    assert!(last_asked < released, "{happened:?}");
    assert_eq!(
        happened.iter().filter(|line| line.ends_with("demos Accepted") && !line.starts_with('0')).count(),
        1
    );
}

#[tokio::test]
async fn the_budget_reserved_for_demos_is_spent_only_on_demos() {
    let world = world(40, 30, Teaches::DemosAfterWord, json!({"name": "auto", "epochs": 50}));
    let mut lab = world.lab(400);
    lab.kept = 60;
    lab.kept_for_demos = Mutex::new(100);
    let found = world.search(&lab).await;
    assert_eq!((found.outcome, found.stop_reason), (Outcome::Improved, StopReason::Budget), "{found:?}");
    assert!(found.best.prompts["p"].contains("word") && !found.best.demos["p"].is_empty(), "{found:?}");
    assert!(*lab.spent.lock() <= 400);
    let without = world.lab(240);
    let found = world.search(&without).await;
    assert!(found.best.demos["p"].is_empty(), "nothing is left for demos: {found:?}");
}

#[tokio::test]
async fn auto_reserves_no_budget_without_a_prompt_that_may_get_demos() {
    let mut world = world(40, 30, Teaches::Demos, json!({"name": "auto", "epochs": 1}));
    world.prompts[0].demos_trainable = false;
    assert_eq!(world.problem().kept_for_demos(), 0);
    assert!(world.problem().seed().demos.is_empty());
}

#[tokio::test]
async fn the_minimum_useful_budget_pays_for_a_set_or_a_text_with_its_race() {
    for name in ["fewshot", "auto"] {
        for seed in 0..9 {
            let optimizer = json!({"name": name, "epochs": 2, "minibatch_size": 5 + seed % 7, "seed": seed});
            // Some of the first training cases pass.
            for (train, val) in [(9, 5), (24, 12), (60, 9)] {
                let trained = world(train, val, Teaches::Demos, optimizer.clone());
                let (plan, least) = planned(&trained.cases, &trained.prompts, &optimizer);
                let problem = trained.problem();
                let part = |thousandths: u64| usize::try_from(least * thousandths / 1_000).unwrap();
                let lab = DemoLab {
                    kept: part(problem.kept_thousandths(1, Some(least))),
                    kept_for_demos: Mutex::new(part(problem.kept_for_demos())),
                    ..trained.lab(usize::try_from(least).unwrap())
                };
                trained.search(&lab).await;
                assert!(!lab.compared.lock().is_empty(), "{optimizer} {train} {val}: {least}");
                let whole = trained.lab(usize::MAX);
                trained.search(&whole).await;
                let calls = u64::try_from(*whole.spent.lock()).unwrap();
                let most = plan.llm_calls.max.unwrap();
                assert!(plan.llm_calls.min <= calls && calls <= most, "{optimizer}: {calls} {plan:?}");
            }
        }
    }
}
