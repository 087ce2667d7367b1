//! Adds lessons from feedback to a prompt, in the language that the other skills follow.

use std::collections::BTreeSet;

use super::feedback::FailedCase;
use super::instruction::{Action, Instruction, Test, When};
use super::noise::Noise;
use super::parse::parse;
use super::text::{is_empty_word, sentences, stem, stems, words};

/// Maximum cases read; the model cannot handle more at once.
const MOST: usize = 6;
/// The probability of forgetting a case.
const FORGOTTEN: f64 = 0.1;
/// The probability of writing a rule vaguely.
const VAGUE: f64 = 0.15;
/// Maximum words that distinguish an answer's inputs from others.
const WORDS: usize = 3;
/// Maximum words in an answer for which a rule is written.
const LONGEST: usize = 40;

/// An improved prompt with the reasons.
pub(super) struct Proposal {
    pub(super) prompt: String,
    pub(super) reasons: Vec<String>,
}

/// Improves a prompt by the lessons from cases.
pub(super) fn improve(prompt: &str, items: &[FailedCase], noise: &Noise) -> Proposal {
    let key = |item: &FailedCase| format!("{}\n{}\n{}", item.input, item.expected, item.advice.join("\n"));
    let read: Vec<&FailedCase> =
        items.iter().take(MOST).filter(|item| !noise.happens(FORGOTTEN, "forget", &key(item))).collect();
    let mut proposal = Proposal { prompt: prompt.trim_end().to_owned(), reasons: Vec::new() };
    advice(&mut proposal, &read);
    let mut answers: Vec<&str> = Vec::new();
    for item in &read {
        let answer = item.expected.as_str();
        let short = (1..=LONGEST).contains(&words(answer).len());
        if short && !answers.contains(&answer) && !answer.contains('"') {
            answers.push(answer);
        }
    }
    for answer in answers {
        let (with, without): (Vec<&FailedCase>, Vec<&FailedCase>) =
            read.iter().partition(|item| item.expected == answer);
        let found = telling(&with, &without);
        if !found.is_empty() {
            let vague = noise.happens(VAGUE, "vague", &format!("{answer}\n{}", found.join("\n")));
            rule(&mut proposal, answer, found, vague);
        }
    }
    proposal
}

/// Adds instructions that the feedback spells out: unchanged, or with a condition if other cases have other advice.
fn advice(proposal: &mut Proposal, read: &[&FailedCase]) {
    let advised: Vec<&&FailedCase> = read.iter().filter(|item| !item.advice.is_empty()).collect();
    for item in &advised {
        for sentence in &item.advice {
            if proposal.prompt.contains(sentence.as_str()) {
                continue;
            }
            let (with, without): (Vec<&FailedCase>, Vec<&FailedCase>) =
                advised.iter().copied().copied().partition(|other| other.advice.contains(sentence));
            let conditional = parse(sentence).is_some_and(|found| found.when != When::Always);
            let mut written = sentence.clone();
            if !without.is_empty()
                && !conditional
                && let Some(phrases) = Some(telling(&with, &without)).filter(|found| !found.is_empty())
            {
                written = format!("If the message mentions {}, {}", quoted(&phrases), lowered(sentence));
            }
            proposal.reasons.push(format!("The feedback says: {sentence}"));
            append(proposal, &written);
        }
    }
}

/// Adds a rule for an answer: extends its existing rule, else inserts one before the other rules, else appends it.
fn rule(proposal: &mut Proposal, answer: &str, found: Vec<String>, vague: bool) {
    proposal.reasons.push(format!("{} means \"{answer}\".", quoted(&found)));
    if vague {
        append(proposal, &format!("Messages about {} are often {answer}.", found.join(", ")));
        return;
    }
    let rules: Vec<Instruction> = sentences(&proposal.prompt)
        .iter()
        .filter_map(|sentence| parse(sentence))
        .filter(|rule| matches!(rule.action, Action::Answer(_)))
        .collect();
    let same = rules.iter().find_map(|rule| match (&rule.when, &rule.action) {
        (When::Input { test: Test::Any(phrases), not: false }, Action::Answer(given)) if given == answer => {
            Some((rule, phrases))
        }
        _ => None,
    });
    if let Some((rule, phrases)) = same {
        let mut all = phrases.clone();
        let known: BTreeSet<Vec<String>> = phrases.iter().map(|phrase| stems(phrase)).collect();
        all.extend(found.into_iter().filter(|word| !known.contains(&stems(word))));
        if all.len() > phrases.len() {
            proposal.prompt = proposal.prompt.replacen(&rule.text, &sentence(&all, answer), 1);
        }
        return;
    }
    let new = sentence(&found, answer);
    match rules.first() {
        Some(first) => {
            proposal.prompt = proposal.prompt.replacen(&first.text, &format!("{new}\n{}", first.text), 1);
        }
        None => append(proposal, &new),
    }
}

fn sentence(phrases: &[String], answer: &str) -> String {
    format!("If the message mentions {}, answer \"{answer}\".", quoted(phrases))
}

fn append(proposal: &mut Proposal, line: &str) {
    if !proposal.prompt.is_empty() {
        proposal.prompt.push('\n');
    }
    proposal.prompt.push_str(line);
}

fn quoted(phrases: &[String]) -> String {
    phrases.iter().map(|phrase| format!("\"{phrase}\"")).collect::<Vec<_>>().join(" or ")
}

fn lowered(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// Words that occur in inputs from `with` but not from `without`, the most frequent first, until each input
/// has one.
fn telling(with: &[&FailedCase], without: &[&FailedCase]) -> Vec<String> {
    let others: BTreeSet<String> = without.iter().flat_map(|item| stems(&item.input)).collect();
    let inputs: Vec<BTreeSet<String>> =
        with.iter().map(|item| stems(&item.input).into_iter().collect()).collect();
    let mut candidates: Vec<String> = with.iter().flat_map(|item| words(&item.input)).collect();
    candidates.retain(|word| {
        !is_empty_word(word) && !others.contains(&stem(word)) && !word.chars().any(|c| c.is_ascii_digit())
    });
    candidates.sort();
    candidates.dedup_by_key(|word| stem(word));
    let mut open: Vec<&BTreeSet<String>> = inputs.iter().collect();
    let mut found = Vec::new();
    while found.len() < WORDS && !open.is_empty() {
        let count = |word: &String| open.iter().filter(|input| input.contains(&stem(word))).count();
        let best = candidates.iter().max_by_key(|word| (count(word), word.chars().count()));
        let Some(best) = best.filter(|word| count(word) > 0).cloned() else { break };
        open.retain(|input| !input.contains(&stem(&best)));
        found.push(best);
    }
    found
}
