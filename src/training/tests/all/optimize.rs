//! The search for better prompts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use training::evaluators::read_evaluators;
use training::optimize::{Outcome, Phase, Problem, Stop, StopReason};

use crate::words::{Reflector, SEED, Trained, WORDS, shared, thirds, world};

#[tokio::test]
async fn prompts_learn_from_cases() {
    let world = world(24, &WORDS, json!({}), shared);
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.stop_reason, found.outcome), (StopReason::Epochs, Outcome::Improved));
    assert!(WORDS.iter().all(|word| found.best.prompts["p"].contains(word)), "{:?}", found.best);
    assert_eq!((found.val.seed, found.val.best), (0.0, 1.0));
    assert!(found.comparison.z > 1.9 && found.ci95.0 > 0.9, "{found:?}");
    let published = lab.published.lock();
    let epochs: Vec<&String> = published.iter().filter(|line| line.starts_with("epoch")).collect();
    assert_eq!(epochs.len(), 3);
    assert!(published.contains(&format!("checkpoint 1 of {} 1.00", found.best.number)), "{published:?}");
    assert_eq!(
        published.iter().filter(|line| line.starts_with("checkpoint 1 of")).collect::<BTreeSet<_>>().len(),
        published.iter().filter(|line| line.starts_with("checkpoint 1 of")).count(),
        "never twice for one epoch and one candidate"
    );
    let rationales = lab.rationales.lock();
    assert!(!rationales.is_empty() && rationales.iter().all(|text| text == "It lacks a word."));
}

#[tokio::test]
async fn a_search_is_deterministic_and_executes_nothing_twice() {
    let world = world(24, &WORDS, json!({"name": "textgrad", "seed": 5}), shared);
    let runs = [0, 1].map(|_| world.lab(Reflector::Learns, usize::MAX, Stop::Budget));
    let first = world.search(&runs[0]).await.unwrap();
    let second = world.search(&runs[1]).await.unwrap();
    assert_eq!((first, &*runs[0].published.lock()), (second, &*runs[1].published.lock()));
    let executed = runs[0].executed.lock().clone();
    let distinct: BTreeSet<_> =
        executed.iter().map(|(candidate, place, _, sample)| (candidate, place, sample)).collect();
    assert_eq!(distinct.len(), executed.len());
    let other = world_with_seed(6);
    let lab = other.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    other.search(&lab).await.unwrap();
    assert_ne!(*lab.executed.lock(), executed, "other minibatches");
}

/// Each word adds a quarter to the score, but more than a quarter to the seed's length, cost and time.
#[tokio::test]
async fn the_cost_of_a_gain_is_subtracted_from_it() {
    for penalty in ["length_penalty", "cost_penalty", "latency_penalty"] {
        for (weight, expected) in [(0.1, Outcome::Improved), (3.0, Outcome::NoSignificantGain)] {
            let optimizer = json!({"objective": {penalty: weight}});
            let world = world(24, &WORDS, optimizer, shared);
            let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
            let found = world.search(&lab).await.unwrap();
            assert_eq!(found.outcome, expected, "{penalty} {weight}: {found:?}");
        }
    }
}

fn world_with_seed(seed: u64) -> Trained {
    world(24, &WORDS, json!({"name": "textgrad", "seed": seed}), shared)
}

#[tokio::test]
async fn harmful_prompts_are_rejected_and_the_seed_is_returned() {
    let world = world(24, &["Answer", "worda"], json!({}), shared);
    for reflector in [Reflector::Forgets, Reflector::Refuses, Reflector::LosesPlaceholder] {
        let lab = world.lab(reflector, usize::MAX, Stop::Budget);
        let found = world.search(&lab).await.unwrap();
        assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
        assert_eq!(found.best.prompts["p"], SEED, "its exact text");
        let published = lab.published.lock();
        assert!(published.iter().all(|line| !line.contains("accepted")), "{published:?}");
        let warned = published.iter().any(|line| line == "warning unparsable_rewrite");
        assert_eq!(warned, reflector != Reflector::Forgets, "{published:?}");
        assert!(
            published.iter().any(|line| line.starts_with("checkpoint") && line.contains("of 0")),
            "{published:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_proposed_if_there_is_nothing_to_gain() {
    let world = world(30, &["Answer"], json!({}), shared);
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.stop_reason, found.outcome), (StopReason::NoHeadroom, Outcome::NoHeadroom));
    assert_eq!((lab.executed.lock().len(), lab.requests.lock().len()), (30, 0));
    assert_eq!(*lab.published.lock(), ["warning no_headroom", "checkpoint 1 of 0 1.00"]);
}

#[tokio::test]
async fn a_search_ends_if_no_case_for_training_could_be_better() {
    // Only the scoring cases need a word that the prompt lacks.
    let world = world(30, &["Answer", "worda"], json!({"epochs": 50, "minibatch_size": 1}), |place| {
        Some(if place % 2 == 0 { "train" } else { "val" })
    });
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.stop_reason, found.outcome), (StopReason::TrainSaturated, Outcome::NoSignificantGain));
    assert!(lab.requests.lock().is_empty());
}

#[tokio::test]
async fn held_out_cases_are_neither_in_requests_nor_in_prompts() {
    let world = world(60, &WORDS, json!({"test_split": 0.3}), thirds);
    let lab = world.lab(Reflector::Leaks, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!(found.best.number, 0);
    assert!(lab.published.lock().iter().any(|line| line == "warning leakage"));
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.test.unwrap().best), (Outcome::Improved, 1.0));
    let is_training = |place: &usize| world.cases[*place].split() == Some("train");
    assert!(lab.recalled.lock().iter().all(is_training), "only results of training cases are read");
    world.assert_held_out(&lab);
    let tested = lab.executed.lock();
    let of_test: Vec<_> = tested.iter().filter(|(_, place, _, _)| place % 3 == 2).collect();
    assert!(of_test.iter().all(|(_, _, phase, _)| *phase == Phase::Test.as_str()), "read once, at the end");
    assert_eq!(of_test.len(), 40, "the seed and the winner");
}

#[tokio::test]
async fn a_text_that_repeats_a_case_for_training_is_reported() {
    let world = world(24, &WORDS, json!({"epochs": 1}), shared);
    let lab = world.lab(Reflector::Leaks, usize::MAX, Stop::Budget);
    world.search(&lab).await.unwrap();
    let published = lab.published.lock();
    assert!(published.iter().any(|line| line == "warning memorised"), "{published:?}");
    assert!(published.iter().all(|line| line != "warning leakage"), "{published:?}");
}

#[tokio::test]
async fn a_budget_of_any_size_ends_with_a_result() {
    world(24, &WORDS, json!({}), shared).assert_ends_within(Reflector::Learns, 1).await;
}

#[tokio::test]
async fn a_cancelled_search_executes_nothing_more_and_keeps_its_best() {
    let world = world(24, &WORDS, json!({}), shared);
    let whole = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    world.search(&whole).await.unwrap();
    let most = *whole.spent.lock();
    for budget in (0..most).step_by(7) {
        let lab = world.lab(Reflector::Learns, budget, Stop::Cancelled);
        let found = world.search(&lab).await.unwrap();
        assert_eq!(found.stop_reason, StopReason::Cancelled, "{budget}");
        assert_eq!(*lab.refused.lock(), 1, "nothing is tried after it");
        let lost = world.lab(Reflector::Learns, budget, Stop::Lost);
        assert_eq!(world.search(&lost).await, Err(Stop::Lost));
    }
}

#[tokio::test]
async fn a_guard_may_not_become_worse() {
    // The word that most cases need comes with one that the guard forbids.
    let world = world(24, &["word-rude"], json!({}), shared);
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    // With four cases, the guard rejects the candidate when it is known on all of them.
    let small = self::world(4, &["word-rude"], json!({}), shared);
    let lab = small.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = small.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
}

#[tokio::test]
async fn a_refused_request_is_not_repeated() {
    let world = world(24, &WORDS, json!({"minibatch_size": 1}), shared);
    let lab = world.lab(Reflector::Refuses, usize::MAX, Stop::Budget);
    world.search(&lab).await.unwrap();
    let numbers = lab.numbers.lock();
    assert!(numbers.len() > 20);
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len());
}

#[tokio::test]
async fn a_search_ends_at_its_target_and_without_progress() {
    let target = world(24, &WORDS, json!({"epochs": 50, "target_score": 0.9}), shared);
    let lab = target.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    assert_eq!(target.search(&lab).await.unwrap().stop_reason, StopReason::TargetScore);
    let patient = world(24, &WORDS, json!({"epochs": 50, "patience": 2}), shared);
    let lab = patient.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    assert_eq!(patient.search(&lab).await.unwrap().stop_reason, StopReason::Patience);
    assert_eq!(lab.published.lock().iter().filter(|line| line.starts_with("epoch")).count(), 2);
}

#[tokio::test]
async fn none_only_scores_the_seed() {
    let none = world(24, &["Answer", "worda"], json!({"name": "none", "validation_split": 0}), shared);
    let lab = none.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = none.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.val.seed), (Outcome::NoSignificantGain, 0.5));
    assert_eq!((lab.executed.lock().len(), lab.requests.lock().len()), (24, 0));
    assert_eq!(*lab.published.lock(), ["epoch 1 best 0 0.50", "checkpoint 1 of 0 0.50"]);
}

#[tokio::test]
async fn a_test_of_few_cases_is_estimated_by_folds() {
    let world = world(16, &WORDS, json!({"test_split": 0.3}), shared);
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let test = world.search(&lab).await.unwrap().test.unwrap();
    assert_eq!((test.seed, test.best), (0.0, 1.0));
    let few = self::world(16, &WORDS, json!({"name": "gepa"}), shared);
    let lab = few.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    few.search(&lab).await.unwrap();
    assert_eq!(lab.published.lock()[0], "warning overfit_risk");
}

#[tokio::test]
async fn gepa_learns_with_some_of_the_scoring_cases() {
    let world = world(60, &WORDS, json!({"name": "gepa", "seed": 3}), shared);
    let labs = [0, 1].map(|_| world.lab(Reflector::Learns, usize::MAX, Stop::Budget));
    let found = world.search(&labs[0]).await.unwrap();
    assert_eq!(found.outcome, Outcome::Improved);
    assert!(WORDS.iter().all(|word| found.best.prompts["p"].contains(word)), "{:?}", found.best);
    assert_eq!(world.search(&labs[1]).await.unwrap(), found);
    assert_eq!(*labs[0].published.lock(), *labs[1].published.lock());
    let executed = labs[0].executed.lock();
    let races: Vec<_> = executed.iter().filter(|(_, _, phase, _)| *phase == "race").collect();
    let first = races.iter().filter(|(candidate, ..)| *candidate == 1).count();
    assert!((4..=12).contains(&first), "the first race needs at most 12 of 24 scoring cases: {first}");
    assert!(labs[0].requests.lock().iter().all(|text| !text.contains("critique alone")));
}

#[tokio::test]
async fn a_request_of_gepa_also_shows_earlier_failing_cases_of_its_candidate() {
    let world = world(60, &WORDS, json!({"name": "gepa", "minibatch_size": 2, "epochs": 1}), shared);
    let lab = world.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    world.search(&lab).await.unwrap();
    let shown: Vec<usize> =
        lab.requests.lock().iter().map(|text| text.matches("Feedback:").count()).collect();
    assert_eq!(shown[..4], [2, 4, 6, 6], "{shown:?}");
    let trained: Vec<_> =
        lab.executed.lock().iter().filter(|(_, _, phase, _)| *phase == "train").cloned().collect();
    assert_eq!(trained.len(), 36, "each case for training is executed once");
}

#[tokio::test]
async fn gepa_compares_on_more_cases_while_nothing_succeeds_and_returns_the_seed() {
    let world = world(60, &["Answer", "worda"], json!({"name": "gepa", "epochs": 4}), shared);
    let lab = world.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    assert!(lab.published.lock().iter().filter(|line| line.contains("rejected")).count() >= 8);
    world.assert_ends_within(Reflector::Learns, 3).await;
}

#[tokio::test]
async fn auto_alternates_with_critiques_and_continues_with_them_after_the_pool() {
    let world = world(
        20,
        &["Answer", "worda"],
        json!({"name": "auto", "epochs": 20, "validation_split": 0.5}),
        shared,
    );
    let lab = world.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    let (requests, numbers) = (lab.requests.lock(), lab.numbers.lock());
    let mut has_critique: BTreeMap<u32, bool> = BTreeMap::new();
    for (text, (proposal, ..)) in requests.iter().zip(numbers.iter()) {
        *has_critique.entry(*proposal).or_default() |= text.contains("critique alone");
    }
    let plain: Vec<u32> = has_critique.iter().filter(|(_, it)| !**it).map(|(number, _)| *number).collect();
    assert!(plain.len() >= 3 && plain.iter().all(|number| number % 2 == 0), "every other one: {plain:?}");
    let last = plain.last().unwrap();
    assert!(*last < 16, "until eight were rejected: {plain:?}");
    assert!(has_critique.keys().filter(|number| *number > last).count() > 10);
}

#[tokio::test]
async fn a_gain_that_may_be_chance_is_not_returned() {
    let mut words = vec!["Answer"; 24];
    words[5] = "worda";
    let world = world(24, &words, json!({"epochs": 1}), shared);
    let lab = world.lab(Reflector::Learns, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert!(lab.published.lock().iter().any(|line| line.contains("accepted")), "it is better on these cases");
    assert!(found.comparison.mean_diff > 0.0 && !found.comparison.is_significant(), "{found:?}");
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    assert_eq!(found.best.prompts["p"], SEED);
}

#[tokio::test]
async fn a_gain_that_fresh_samples_do_not_confirm_is_not_returned() {
    for name in ["textgrad", "gepa", "auto"] {
        let world = world(24, &["word-luck"], json!({"name": name, "epochs": 1}), shared);
        let mut lab = world.lab(Reflector::Learns, 110, Stop::Budget);
        lab.kept = 48;
        let found = world.search(&lab).await.unwrap();
        assert!(lab.published.lock().iter().any(|line| line.contains("accepted")), "{name}");
        assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0), "{name}");
        let is_fresh = |it: &&(u32, usize, &str, u32)| it.2 == "final" && it.0 != 0;
        assert!(lab.executed.lock().iter().filter(is_fresh).count() >= 8, "{name}");
    }
}

#[tokio::test]
async fn a_pool_is_judged_by_fresh_samples_when_the_budget_ends() {
    for name in ["gepa", "auto"] {
        let world = world(60, &WORDS, json!({"name": name, "seed": 3}), shared);
        // Enough for the headroom test, a proposal and its race, but not for an epoch.
        let mut lab = world.lab(Reflector::Learns, 90, Stop::Budget);
        lab.kept = 40;
        let found = world.search(&lab).await.unwrap();
        assert_eq!((found.stop_reason, found.outcome), (StopReason::Budget, Outcome::Improved), "{name}");
        assert!(*lab.spent.lock() <= 90);
        let published = lab.published.lock();
        assert!(published.iter().all(|line| !line.starts_with("epoch")), "{published:?}");
        let kept = format!("checkpoint 1 of {} {:.2}", found.best.number, found.val.best);
        assert_eq!(
            published.iter().filter(|line| line.starts_with("checkpoint")).collect::<Vec<_>>(),
            [&kept]
        );
        assert!(found.comparison.n >= 8 && found.comparison.n.is_multiple_of(4), "whole blocks: {found:?}");
    }
}

#[test]
fn some_budget_is_reserved_for_fresh_samples_of_the_seed_and_a_finalist() {
    for (optimizer, cases, of_calls) in [
        (json!({}), 48, [100, 100, 192, 250]),
        (json!({"repeats": 2}), 96, [100, 100, 250, 250]),
        (json!({"name": "none"}), 0, [0; 4]),
    ] {
        let world = world(24, &WORDS, optimizer, shared);
        let problem = Problem::new(&world.cases, &world.prompts, &world.evaluators, &world.optimizer);
        assert_eq!(problem.reserved_cases(), cases);
        // With two calls per case.
        let kept = [None, Some(1_000_000), Some(500), Some(50)].map(|most| problem.kept_thousandths(2, most));
        assert_eq!(kept, of_calls);
    }
}

#[tokio::test]
async fn a_judging_model_measures_the_headroom_twice() {
    let mut noisy = world(24, &["coin"], json!({"epochs": 1}), shared);
    let request = json!([{"id": "e", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x"}},
        {"id": "g", "entrypoint": "builtin:json_valid", "role": "guard"}]);
    noisy.evaluators = read_evaluators(&request, "", &mut Vec::new());
    let lab = noisy.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    noisy.search(&lab).await.unwrap();
    let executed = lab.executed.lock().clone();
    let samples: Vec<u32> =
        executed.iter().filter(|(_, _, phase, _)| *phase == "headroom").map(|it| it.3).collect();
    assert_eq!(samples, [vec![0; 12], vec![2; 12]].concat());
    assert_eq!(lab.published.lock()[0], "warning judge_noise_high");
    let exact = world(24, &["coin"], json!({"epochs": 1}), shared);
    let lab = exact.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    exact.search(&lab).await.unwrap();
    assert!(lab.published.lock().iter().all(|line| line != "warning judge_noise_high"));
}
