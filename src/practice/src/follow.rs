//! Applies instructions about wording and form to a draft in a fixed order: replacements and removals, required
//! phrases, tone, length, list, letter case, beginning and end.

use super::instruction::{Action, Tone};
use super::reading::ParsedRequest;
use super::text::{mentions, sentences, unended};

/// Maximum bytes in the resulting text.
const MOST: usize = 64 * 1024;

/// The phases in order; each applies all its instructions.
const PHASES: [fn(String, &Action) -> String; 5] = [rephrase, extend, shorten, arrange, enclose];

/// Applies the instructions to a draft.
pub(super) fn follow(reading: &ParsedRequest<'_>, draft: String) -> String {
    PHASES.into_iter().fold(draft, |text, phase| reading.asked().fold(text, phase))
}

fn rephrase(text: String, action: &Action) -> String {
    match action {
        Action::Replace(old, new) => replace(&text, old, new),
        Action::Avoid(phrases) => phrases.iter().fold(text, |text, phrase| tidy(&replace(&text, phrase, ""))),
        _ => text,
    }
}

fn extend(text: String, action: &Action) -> String {
    match action {
        Action::Include(phrases) => phrases
            .iter()
            .fold(text, |text, phrase| if holds(&text, phrase) { text } else { joined(&text, phrase) }),
        Action::Tone(tone) => spoken(&text, *tone),
        _ => text,
    }
}

fn shorten(text: String, action: &Action) -> String {
    match action {
        Action::Sentences(most) => sentences(&text).into_iter().take(*most).collect::<Vec<_>>().join(" "),
        Action::Words(most) if text.split_whitespace().count() > *most => {
            unended(&text.split_whitespace().take(*most).collect::<Vec<_>>().join(" ")).to_owned()
        }
        _ => text,
    }
}

fn arrange(text: String, action: &Action) -> String {
    match action {
        Action::List { numbered, most } => listed(&text, *numbered, *most),
        Action::Upper => text.to_uppercase(),
        Action::Lower => text.to_lowercase(),
        _ => text,
    }
}

fn enclose(text: String, action: &Action) -> String {
    match action {
        Action::Begin(start) if !text.starts_with(start.as_str()) => {
            let gap = if start.ends_with(char::is_whitespace) || text.is_empty() { "" } else { " " };
            format!("{start}{gap}{text}")
        }
        Action::End(end) if !text.ends_with(end.as_str()) => {
            let gap = if end.starts_with([' ', ',', '.', '!', '?', '\n']) { "" } else { " " };
            format!("{text}{gap}{end}")
        }
        _ => text,
    }
}

/// Whether the text contains the phrase, ignoring case and word endings.
fn holds(text: &str, phrase: &str) -> bool {
    text.to_lowercase().contains(&phrase.to_lowercase()) || mentions(text, phrase)
}

/// Replaces a phrase, ignoring case.
fn replace(text: &str, old: &str, new: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() && out.len() < MOST {
        if let Some(tail) = without_start(rest, old) {
            out.push_str(new);
            rest = tail;
        } else {
            let mut letters = rest.chars();
            out.extend(letters.next());
            rest = letters.as_str();
        }
    }
    out
}

/// Removes a phrase from the start of a text, ignoring case; `None` if the text does not start with it, or if it is
/// empty.
fn without_start<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let mut letters = text.chars();
    for wanted in phrase.chars() {
        let letter = letters.next()?;
        if letter != wanted && !letter.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    (!phrase.is_empty()).then_some(letters.as_str())
}

/// Collapses blanks between words and removes those before punctuation.
fn tidy(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    for sign in [".", ",", "!", "?"] {
        text = text.replace(&format!(" {sign}"), sign);
    }
    text.trim_matches([' ', ',']).to_owned()
}

fn joined(text: &str, phrase: &str) -> String {
    match text.trim_end() {
        "" => phrase.to_owned(),
        text if text.ends_with(['.', '!', '?']) => format!("{text} {phrase}"),
        text => format!("{text}. {phrase}"),
    }
}

fn spoken(text: &str, tone: Tone) -> String {
    const SHORT: [(&str, &str); 8] = [
        ("don't", "do not"),
        ("can't", "cannot"),
        ("I'm", "I am"),
        ("you're", "you are"),
        ("it's", "it is"),
        ("we're", "we are"),
        ("isn't", "is not"),
        ("won't", "will not"),
    ];
    match tone {
        Tone::Polite => format!("Thank you for your message. {text}"),
        Tone::Friendly => joined(text, "I am happy to help with anything else!"),
        Tone::Formal => {
            let text = SHORT.iter().fold(text.to_owned(), |text, (short, long)| text.replace(short, long));
            text.replace('!', ".")
        }
    }
}

fn listed(text: &str, numbered: bool, most: Option<usize>) -> String {
    let items = sentences(text).into_iter().take(most.unwrap_or(usize::MAX));
    let lines = (1_usize..)
        .zip(items)
        .map(|(at, item)| if numbered { format!("{at}. {item}") } else { format!("- {item}") });
    lines.collect::<Vec<_>>().join("\n")
}
