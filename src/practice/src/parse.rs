//! Parses sentences into instructions.

use super::actions;
use super::instruction::{Instruction, Test, When};
use super::text::{LONGEST, Token, number, tokens};

/// The words that start a condition.
const IF: [&str; 4] = ["if", "when", "whenever", "where"];
const OTHERWISE: [&[&str]; 6] = [
    &["otherwise"],
    &["else"],
    &["by", "default"],
    &["in", "all", "other", "cases"],
    &["in", "any", "other", "case"],
    &["for", "everything", "else"],
];
const NOT: [&str; 6] = ["not", "doesnt", "dont", "never", "without", "isnt"];
const MENTIONS: [&str; 16] = [
    "mention",
    "mentions",
    "mentioning",
    "contain",
    "contains",
    "say",
    "says",
    "include",
    "includes",
    "has",
    "have",
    "about",
    "for",
    "wants",
    "asks",
    "uses",
];
const SKIPPED: [&str; 9] = ["a", "an", "the", "word", "words", "phrase", "either", "any", "of"];

/// Parses a sentence; `None` if it is not an instruction. A question never is one.
pub(super) fn parse(sentence: &str) -> Option<Instruction> {
    if sentence.ends_with('?') || sentence.len() > LONGEST {
        return None;
    }
    let tokens = tokens(sentence);
    let (when, action) = split(&tokens)?;
    Some(Instruction { when, action, text: sentence.to_owned() })
}

fn split(tokens: &[Token]) -> Option<(When, super::instruction::Action)> {
    if let Some(rest) = OTHERWISE.iter().find_map(|start| strip(tokens, start)) {
        return Some((When::Otherwise, actions::parse(rest, true)?));
    }
    let is_if = |token: &Token| token.word().is_some_and(|word| IF.contains(&word));
    if tokens.first().is_some_and(is_if) {
        let rest = tokens.get(1..)?;
        if let Some(unknown) = unknown(rest) {
            return Some((When::Otherwise, actions::parse(unknown, true)?));
        }
        return (1..rest.len()).find_map(|at| {
            let (condition, action) = rest.split_at_checked(at)?;
            let action = match action.first()? {
                Token::Mark(',' | ':') => action.get(1..)?,
                Token::Word(word) if word == "then" => action.get(1..)?,
                _ => return None,
            };
            Some((condition_of(condition)?, actions::parse(action, true)?))
        });
    }
    // The condition may follow the action.
    if let Some(at) = tokens.iter().rposition(is_if)
        && let Some((action, condition)) = tokens.split_at_checked(at)
        && let (Some(condition), Some(action)) =
            (condition.get(1..).and_then(condition_of), actions::parse(action, true))
    {
        return Some((condition, action));
    }
    Some((When::Always, actions::parse(tokens, false)?))
}

/// The action after "you do not know": `If you do not know the answer, say "…"`.
fn unknown(rest: &[Token]) -> Option<&[Token]> {
    let comma = rest.iter().position(|token| matches!(token, Token::Mark(',')))?;
    let (condition, action) = rest.split_at_checked(comma)?;
    let says = |wanted: &str| condition.iter().any(|token| token.word() == Some(wanted));
    let unknown = says("know") && NOT.iter().any(|not| says(not)) || says("unsure") || says("nothing");
    if unknown { action.get(1..) } else { None }
}

fn condition_of(tokens: &[Token]) -> Option<When> {
    let word_at = |at: usize| tokens.get(at).and_then(Token::word);
    let find = |wanted: &[&str]| {
        (0..tokens.len()).find(|at| word_at(*at).is_some_and(|word| wanted.contains(&word)))
    };
    let with = find(&["with"]);
    let quotes =
        || -> Vec<String> { tokens.iter().filter_map(|token| token.quote().map(str::to_owned)).collect() };
    let count = || tokens.iter().filter_map(Token::word).find_map(number);
    let (test, at) = if let Some(at) =
        find(&["starts", "begins", "start", "begin"]).filter(|_| with.is_some())
    {
        (Test::Starts(quotes()), at)
    } else if let Some(at) = find(&["ends", "end"]).filter(|_| with.is_some()) {
        (Test::Ends(quotes()), at)
    } else if let Some(at) = find(&["longer", "more"]).filter(|_| find(&["than"]).is_some()) {
        (Test::Longer(count()?), at)
    } else if let Some(at) = find(&["shorter", "fewer", "less"]).filter(|_| find(&["than"]).is_some()) {
        (Test::Shorter(count()?), at)
    } else if let Some(at) = find(&["question"]).filter(|_| quotes().is_empty()) {
        (Test::Question, at)
    } else if let Some(at) =
        find(&["number", "digit", "numbers", "digits"]).filter(|at| at.checked_add(1) == Some(tokens.len()))
    {
        (Test::Number, at)
    } else {
        let at = find(&MENTIONS)?;
        let last =
            (at..tokens.len()).take_while(|at| word_at(*at).is_some_and(|w| MENTIONS.contains(&w))).last()?;
        (phrases(tokens.get(last.checked_add(1)?..)?)?, at)
    };
    if matches!(&test, Test::Starts(found) | Test::Ends(found) if found.is_empty()) {
        return None;
    }
    let not = (0..at).any(|at| word_at(at).is_some_and(|word| NOT.contains(&word)));
    Some(When::Input { test, not })
}

/// The phrases in a list: its quotes, or its words between commas, "or" and "and".
fn phrases(tokens: &[Token]) -> Option<Test> {
    let has = |wanted: &str| tokens.iter().any(|token| token.word() == Some(wanted));
    let found = list(tokens);
    if found.is_empty() {
        return None;
    }
    let quoted = tokens.iter().any(|token| token.quote().is_some());
    Some(if quoted && has("and") && !has("or") { Test::All(found) } else { Test::Any(found) })
}

/// The items in a list: its quotes, or its words between commas, "or" and "and".
pub(super) fn list(tokens: &[Token]) -> Vec<String> {
    let quotes: Vec<String> = tokens.iter().filter_map(|token| token.quote().map(str::to_owned)).collect();
    if !quotes.is_empty() {
        return quotes;
    }
    let mut items = vec![String::new()];
    for token in tokens {
        match token {
            Token::Word(word) if matches!(word.as_str(), "or" | "and") => items.push(String::new()),
            Token::Mark(',') => items.push(String::new()),
            Token::Word(word) if !SKIPPED.contains(&word.as_str()) => {
                if let Some(item) = items.last_mut() {
                    if !item.is_empty() {
                        item.push(' ');
                    }
                    item.push_str(word);
                }
            }
            _ => {}
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

/// Strips these words from the start.
pub(super) fn strip<'a>(tokens: &'a [Token], start: &[&str]) -> Option<&'a [Token]> {
    let (head, rest) = tokens.split_at_checked(start.len())?;
    head.iter().zip(start).all(|(token, word)| token.word() == Some(word)).then_some(rest)
}

/// Skips marks at the start.
pub(super) fn skip_marks(mut tokens: &[Token]) -> &[Token] {
    while let [Token::Mark(_), rest @ ..] = tokens {
        tokens = rest;
    }
    tokens
}
