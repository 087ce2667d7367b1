//! `opro`: proposals from scores alone.

use std::collections::BTreeSet;

use serde_json::json;
use training::optimize::{Outcome, Stop, StopReason};

use crate::words::{Reflector, Trained, WORDS, shared, thirds, world};

fn opro(count: usize) -> Trained {
    world(count, &WORDS, json!({"name": "opro", "epochs": 12, "minibatch_size": 4}), shared)
}

/// The scores of the texts in a request, in order.
fn scores(request: &str) -> Vec<u32> {
    let parts = request.split("<tried score=\"").skip(1);
    parts.map(|part| part.split_once('"').unwrap().0.parse().unwrap()).collect()
}

#[tokio::test]
async fn texts_are_improved_by_their_scores() {
    let world = opro(40);
    let labs = [0, 1].map(|_| world.lab(Reflector::Guesses, usize::MAX, Stop::Budget));
    let found = world.search(&labs[0]).await.unwrap();
    assert_eq!((found.stop_reason, found.outcome), (StopReason::Epochs, Outcome::Improved));
    assert!(WORDS.iter().all(|word| found.best.prompts["p"].contains(word)), "{:?}", found.best);
    assert_eq!(world.search(&labs[1]).await.unwrap(), found);
    let requests = labs[0].requests.lock();
    for request in requests.iter() {
        let scores = scores(request);
        assert!(scores.is_sorted() && (1..=20).contains(&scores.len()), "the best is the last: {scores:?}");
        assert!(!request.contains("Feedback:") && !request.contains("\nInput:"), "{request}");
        assert_eq!(request.matches("Example input: ").count(), 3, "{request}");
    }
    assert_eq!(
        (scores(&requests[0]), &requests[0]),
        (vec![0], &requests[3]),
        "four equal requests for proposals"
    );
    assert!(scores(&requests[4]).len() > 1, "then with the tried texts: {}", requests[4]);
    assert!(labs[0].recalled.lock().is_empty(), "no case result is read");
    assert!(labs[0].executed.lock().iter().all(|(_, _, phase, _)| *phase != "train"));
    assert!(labs[0].rationales.lock().iter().all(|text| text == "It lacks a word."));
    assert_eq!(*labs[0].published.lock(), *labs[1].published.lock());
}

#[tokio::test]
async fn a_tried_text_is_not_compared_again() {
    let world = opro(40);
    let lab = world.lab(Reflector::Forgets, usize::MAX, Stop::Budget);
    let found = world.search(&lab).await.unwrap();
    assert_eq!((found.outcome, found.best.number), (Outcome::NoSignificantGain, 0));
    let published = lab.published.lock();
    assert_eq!(published.iter().filter(|line| line.starts_with("candidate")).count(), 1, "{published:?}");
}

#[tokio::test]
async fn held_out_cases_are_never_in_a_request() {
    let world = world(60, &WORDS, json!({"name": "opro", "epochs": 3}), thirds);
    let lab = world.lab(Reflector::Guesses, usize::MAX, Stop::Budget);
    world.search(&lab).await.unwrap();
    world.assert_held_out(&lab);
}

#[tokio::test]
async fn a_budget_of_any_size_ends_with_a_result() {
    let world = opro(24);
    world.assert_ends_within(Reflector::Guesses, 5).await;
    let whole = world.lab(Reflector::Guesses, usize::MAX, Stop::Budget);
    world.search(&whole).await.unwrap();
    let numbers = whole.numbers.lock();
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "no request is sent twice");
}
