//! Compares plans made before the first call with the actual search.

use serde_json::{Map, Value, json};
use training::calls::BudgetLimits;
use training::optimize::{Problem, Stop};
use training::request::read_training;
use training::{AskedModels, Case, Estimate, Resolution, Start, TrainablePrompt};

use crate::words::{Reflector, Trained, world};
use crate::world::llm;

/// The estimate for training these prompts, whose workflow calls a model once per case, and the smallest useful
/// `max_llm_calls`: one call fewer is refused, and no other limit is.
pub(crate) fn planned(cases: &[Case], prompts: &[TrainablePrompt], optimizer: &Value) -> (Estimate, u64) {
    let (found, problems) = started(cases, prompts, optimizer, 1);
    let [problem] = problems.as_slice() else { panic!("{optimizer}: {problems:?}") };
    let least: u64 = problem.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(started(cases, prompts, optimizer, least - 1).1.len(), 1, "{optimizer}: {problem}");
    assert_eq!(started(cases, prompts, optimizer, least).1, [""; 0], "{optimizer}");
    (found, least)
}

/// The estimate and the budget problems with this limit.
fn started(
    cases: &[Case],
    prompts: &[TrainablePrompt],
    optimizer: &Value,
    limit: u64,
) -> (Estimate, Vec<String>) {
    let mut optimizer = optimizer.clone();
    optimizer.as_object_mut().unwrap().insert("budget".into(), json!({"max_llm_calls": limit}));
    let request = json!({"dataset": {"cases": [{"inputs": {}}]}, "optimizer": optimizer,
        "evaluators": [{"id": "e", "entrypoint": "builtin:json_valid"}]});
    let mut problems = Vec::new();
    let request = read_training(&request, "", &mut problems).unwrap_or_else(|| panic!("{problems:?}"));
    let graph = json!({"nodes": [llm("answer", "{{ config.prompts.p.text }}")]});
    let plan = crate::world::plan(&[llm("answer", "{{ config.prompts.p.text }}")], "x");
    let (config, resolution) = (Map::new(), Resolution::default());
    let start = Start {
        graph: &graph,
        graph_at: "",
        plan: &plan,
        config: &config,
        workload: &request.workload,
        workload_at: "",
        cases,
        resolution: &resolution,
    };
    let splits = Problem::new(cases, prompts, &request.workload.evaluators, &request.optimizer).splits;
    let models = AskedModels { evaluators: &Value::Null, judge: &config, optimizer: &config };
    // The estimate does not exceed a budget.
    let mut unlimited = request.optimizer.clone();
    unlimited.settings.limits = BudgetLimits::default();
    let found = start.estimate_training(&unlimited, &splits, prompts, &models);
    start.check_budget(&request.optimizer, &splits, prompts, &models, "/budget", &mut problems);
    (found, problems.into_iter().map(|problem| problem.message).collect())
}

const OPTIMIZERS: [&str; 3] = ["textgrad", "gepa", "auto"];

/// `train` training cases, which the seed fails, and `val` scoring cases, of which it passes all but the first.
fn halves(train: usize, val: usize, optimizer: &Value) -> Trained {
    let words: Vec<&str> =
        (0..train + val).map(|place| if place <= train { "worda" } else { "}}." }).collect();
    world(train + val, &words, optimizer.clone(), |place| Some(if place < train { "train" } else { "val" }))
}

#[tokio::test]
async fn a_complete_search_follows_its_plan() {
    for name in OPTIMIZERS {
        for (train, val) in [(24, 10), (7, 30), (40, 16)] {
            for reflector in [Reflector::Guesses, Reflector::Refuses, Reflector::Forgets] {
                let optimizer = json!({"name": name, "epochs": 4, "minibatch_size": 5});
                let trained = halves(train, val, &optimizer);
                let lab = trained.lab(reflector, usize::MAX, Stop::Budget);
                trained.search(&lab).await.unwrap();
                let (plan, _) = planned(&trained.cases, &trained.prompts, &optimizer);
                let [executed, requests] = [lab.executed.lock().len(), lab.requests.lock().len()]
                    .map(|it| u64::try_from(it).unwrap());
                let (cases, calls) = (plan.cases, plan.llm_calls);
                let details = format!("{name} {train} {val}: {executed} and {requests}, {plan:?}");
                assert!(cases.min <= executed && executed <= cases.max.unwrap(), "{details}");
                assert!(requests <= calls.max.unwrap() - cases.max.unwrap(), "{details}");
                if name == "gepa" && reflector == Reflector::Refuses {
                    assert_eq!(requests, calls.max.unwrap() - cases.max.unwrap(), "{details}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_minimum_useful_budget_pays_for_a_proposal_with_its_race() {
    let proposes = async |trained: &Trained, reflector: Reflector, optimizer: &Value| {
        let (_, least) = planned(&trained.cases, &trained.prompts, optimizer);
        let problem = Problem::new(&trained.cases, &trained.prompts, &trained.evaluators, &trained.optimizer);
        let kept = least * problem.kept_thousandths(1, Some(least)) / 1_000;
        let mut lab = trained.lab(reflector, usize::try_from(least).unwrap(), Stop::Budget);
        lab.kept = usize::try_from(kept).unwrap();
        trained.search(&lab).await.unwrap();
        let published = lab.published.lock();
        let is_raced = published.iter().any(|line| line.starts_with("candidate"));
        assert!(is_raced, "{optimizer} of {} cases with {least}: {published:?}", trained.cases.len());
    };
    for name in OPTIMIZERS {
        for seed in 0..9 {
            let minibatch = 1 + seed % 9;
            let optimizer = json!({"name": name, "epochs": 2, "minibatch_size": minibatch, "seed": seed});
            // For every kind of race.
            for val in [1, 4, 9, 12] {
                let train = usize::try_from(1 + seed * 7).unwrap();
                let split = |place| Some(if place < train { "train" } else { "val" });
                let trained = world(train + val, &["worda", "wordb"], optimizer.clone(), split);
                proposes(&trained, Reflector::Guesses, &optimizer).await;
                let shared = world(val, &["worda"], optimizer.clone(), |_| None);
                proposes(&shared, Reflector::Guesses, &optimizer).await;
            }
            // With more scoring cases, a race needs only the headroom cases if these decide.
            for (train, val) in [(20, 13), (9, 40), (100, 90)] {
                proposes(&halves(train, val, &optimizer), Reflector::Forgets, &optimizer).await;
            }
        }
    }
}
