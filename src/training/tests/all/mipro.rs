//! `mipro`: combinations of texts, choices and demos.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use training::optimize::{Outcome, Stop, StopReason};

use crate::words::{Reflector, SEED, Trained, WORDS, Words, shared, thirds, world};

fn mipro(count: usize) -> Trained {
    world(count, &WORDS, json!({"name": "mipro", "epochs": 12, "minibatch_size": 4}), shared)
}

/// The number of cases on which each candidate was raced.
fn tried(lab: &Words<'_>) -> BTreeMap<u32, usize> {
    let mut tried = BTreeMap::new();
    for (candidate, _, phase, _) in lab.executed.lock().iter() {
        if *phase == "race" {
            *tried.entry(*candidate).or_default() += 1;
        }
    }
    tried
}

#[tokio::test]
async fn proposals_are_based_on_cases_workflow_and_tips_and_the_best_is_found() {
    let world = world(80, &WORDS, json!({"name": "mipro", "epochs": 12, "minibatch_size": 4}), shared);
    let labs = [0, 1].map(|_| world.lab(Reflector::Guesses, usize::MAX, Stop::Budget));
    let found = world.search(&labs[0]).await.unwrap();
    assert_eq!(found.outcome, Outcome::Improved, "{found:?}");
    // Each proposal has one word; proposals do not build on each other.
    assert_eq!(WORDS.iter().filter(|word| found.best.prompts["p"].contains(**word)).count(), 1);
    assert_eq!(world.search(&labs[1]).await.unwrap(), found);
    let requests = labs[0].requests.lock();
    assert_eq!(requests.len(), 6, "a summary, and a text for each tip");
    assert!(
        requests[0].starts_with("Example input: ") && !requests[0].contains("<prompt"),
        "{}",
        requests[0]
    );
    for request in requests.iter().skip(1) {
        for part in
            ["The cases: The inputs are numbers.", "`answer` reads this prompt.", "Tip: ", "Example input: "]
        {
            assert!(request.contains(part), "{part}: {request}");
        }
        assert!(!request.contains("Feedback:"), "{request}");
    }
    assert!(labs[0].rationales.lock().iter().all(|text| text == "It lacks a word."));
    assert_eq!(*labs[0].published.lock(), *labs[1].published.lock());
}

#[tokio::test]
async fn combinations_are_tried_on_few_cases_and_only_the_best_is_scored_in_full() {
    let mut world = mipro(100);
    let choice = |word: &str| format!("{SEED} Say {word}.");
    world.prompts[0].choices = (0..12).map(|number| choice(&format!("nothing{number}"))).collect();
    let all = format!("{SEED} {}", WORDS.join(" "));
    world.prompts[0].choices.push(all.clone());
    let lab = world.lab(Reflector::Refuses, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, &found.best.prompts["p"]), (Outcome::Improved, &all));
    assert_eq!((found.val.seed, found.val.best), (0.0, 1.0));
    let tried = tried(&lab);
    let scoring = tried[&found.best.number];
    assert!(scoring >= 28, "{tried:?}");
    let few = tried.values().filter(|cases| **cases <= 12).count();
    assert!(few >= 3, "candidates not better than the seed are not scored in full: {tried:?}");
    let published = lab.published.lock();
    let decided: Vec<&String> = published.iter().filter(|line| line.starts_with("candidate")).collect();
    let numbers: BTreeSet<&str> = decided.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(numbers.len(), decided.len(), "each candidate is decided once: {decided:?}");
    assert_eq!(decided.iter().filter(|line| line.contains("accepted")).count(), 1, "{decided:?}");
    assert!(tried.keys().filter(|number| **number != 0).all(|number| numbers.contains(&*number.to_string())));
}

#[tokio::test]
async fn without_a_better_candidate_the_seed_is_returned() {
    for reflector in [Reflector::Forgets, Reflector::Refuses] {
        let world = world(40, &["Answer {{", "worda"], json!({"name": "mipro", "epochs": 5}), shared);
        let lab = world.lab(reflector, usize::MAX, Stop::Budget);
        let found = world.search(&lab).await.unwrap();
        assert_eq!((found.outcome, &*found.best.prompts["p"]), (Outcome::NoSignificantGain, SEED));
        assert_eq!(found.stop_reason, StopReason::Epochs);
    }
}

#[tokio::test]
async fn a_fully_scored_combination_is_decided_by_all_cases() {
    // The seed has the word that the first scoring cases need, the choice that of all others.
    let words: Vec<&str> =
        (0..40).map(|place| if (20..24).contains(&place) { "Answer" } else { "worda" }).collect();
    let halves = |place: usize| Some(if place < 20 { "train" } else { "val" });
    let mut world = world(40, &words, json!({"name": "mipro", "epochs": 3}), halves);
    world.prompts[0].choices = vec!["Reply to {{ inputs.n }}: worda.".to_owned()];
    let lab = world.lab(Reflector::Refuses, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!(found.outcome, Outcome::Improved, "{:?}", lab.published.lock());
    assert!(found.best.prompts["p"].contains("worda"), "{:?}", found.best);
    let published = lab.published.lock();
    assert!(published.iter().any(|line| line.ends_with("accepted n=20")), "{published:?}");
}

#[tokio::test]
async fn held_out_cases_are_never_in_a_request() {
    let world = world(60, &WORDS, json!({"name": "mipro", "epochs": 2}), thirds);
    let lab = world.lab(Reflector::Guesses, usize::MAX, Stop::Budget);
    world.search(&lab).await.unwrap();
    world.assert_held_out(&lab);
}

#[tokio::test]
async fn a_budget_of_any_size_ends_with_a_result() {
    mipro(24).assert_ends_within(Reflector::Guesses, 5).await;
}
