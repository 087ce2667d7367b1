//! Summaries and rewritten texts.

use std::collections::BTreeMap;

use super::instruction::Action;
use super::reading::ParsedRequest;
use super::text::{sentences, topics};

/// Default number of sentences per summary.
const SENTENCES: usize = 2;

/// The input sentences with the most frequent topics, in input order.
pub(super) fn summary(reading: &ParsedRequest<'_>) -> String {
    if let Some(given) = reading.given() {
        return given.to_owned();
    }
    let said = sentences(&reading.input);
    let about: Vec<_> = said.iter().map(|sentence| topics(sentence)).collect();
    let mut count: BTreeMap<&String, u32> = BTreeMap::new();
    for topic in about.iter().flatten() {
        *count.entry(topic).or_default() += 1;
    }
    let wanted = |sentence: &str| {
        reading.asked().any(|action| match action {
            Action::Include(phrases) => phrases.iter().any(|phrase| super::text::mentions(sentence, phrase)),
            _ => false,
        })
    };
    let mut order: Vec<(u32, usize)> = (0_usize..)
        .zip(said.iter().zip(&about))
        .map(|(at, (sentence, topics))| {
            let weight: u32 = topics.iter().filter_map(|topic| count.get(topic)).sum();
            (if wanted(sentence) { u32::MAX } else { weight }, at)
        })
        .collect();
    order.sort_by_key(|(weight, at)| (std::cmp::Reverse(*weight), *at));
    let most = reading.asked().find_map(|action| match action {
        Action::Sentences(most) => Some(*most),
        Action::List { most, .. } => Some(most.unwrap_or(3)),
        _ => None,
    });
    let mut kept: Vec<usize> = order.into_iter().take(most.unwrap_or(SENTENCES)).map(|(_, at)| at).collect();
    kept.sort_unstable();
    let chosen: Vec<&str> = kept.iter().filter_map(|at| said.get(*at).map(String::as_str)).collect();
    chosen.join(" ")
}

/// The input itself, or the answer that an instruction gives.
pub(super) fn rewritten(reading: &ParsedRequest<'_>) -> String {
    reading.given().map_or_else(|| reading.input.trim().to_owned(), str::to_owned)
}
