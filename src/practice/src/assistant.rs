//! A chat assistant that knows only its instructions and the conversation.

use super::reading::ParsedRequest;
use super::sent::FileSentence;
use super::text::{Token, sentences, stem, tokens, topics, unended, words};

/// Maximum sentences that recall searches.
const MOST: usize = 1000;
const GREETINGS: [&str; 7] = ["hi", "hello", "hey", "greetings", "moin", "morning", "evening"];
const THANKS: [&str; 3] = ["thanks", "thank", "thx"];
const FAREWELLS: [&str; 3] = ["bye", "goodbye", "farewell"];
const UNKNOWN: [&str; 3] = [
    "I do not know that: my instructions say nothing about it.",
    "My instructions do not cover that, so I cannot tell.",
    "That is not in my instructions, so I do not know.",
];

/// The reply to the input.
pub(super) fn reply(reading: &ParsedRequest<'_>) -> String {
    if let Some(given) = reading.given() {
        return given.to_owned();
    }
    if let Some(shown) = reading.sent.asked(&reading.input) {
        return shown;
    }
    if let Some(said) = small_talk(reading) {
        return said;
    }
    if let Some(found) = recall(reading) {
        return found;
    }
    if let Some(otherwise) = reading.otherwise() {
        return otherwise.to_owned();
    }
    if let Some(shown) = reading.sent.all() {
        return shown;
    }
    if reading.prompt.trim().is_empty() && reading.input.trim_end().ends_with(['.', '!']) {
        return format!("You say: {}", turned(&reading.input));
    }
    let key = &reading.input;
    reading.noise.pick(&UNKNOWN, "unknown", key).copied().unwrap_or_default().to_owned()
}

fn small_talk(reading: &ParsedRequest<'_>) -> Option<String> {
    let said = words(&reading.input);
    let any = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    if said.is_empty() {
        return Some("I did not get any text. What can I do for you?".to_owned());
    }
    let asks_who = said.iter().any(|word| word == "who" || word == "name") && any(&["you", "your"]);
    if let Some(persona) = persona(reading).filter(|_| asks_who && !any(&["my"])) {
        return Some(format!("I am {persona}."));
    }
    let asks_help = any(&["help"]) || any(&["can"]) && any(&["you"]) && any(&["do"]);
    if asks_help && said.len() <= 6 {
        let fact = reading.hints.iter().find(|hint| !hint.starts_with("You are "));
        return Some(fact.map_or_else(
            || "I follow the instructions that I am given.".to_owned(),
            |fact| format!("I can tell what my instructions say, for example: {fact}"),
        ));
    }
    // Longer messages are not treated as small talk.
    if said.len() > 4 || !topics(&reading.input).iter().all(|topic| is_courtesy(topic)) {
        return None;
    }
    if any(&GREETINGS) {
        let who = persona(reading).map_or(String::new(), |persona| format!(" I am {persona}."));
        Some(format!("Hello!{who} How can I help?"))
    } else if any(&THANKS) {
        Some("You are welcome.".to_owned())
    } else if any(&FAREWELLS) {
        Some("Goodbye!".to_owned())
    } else {
        None
    }
}

fn is_courtesy(topic: &str) -> bool {
    let lists = [&GREETINGS[..], &THANKS[..], &FAREWELLS[..], &["good", "there", "much", "day"][..]];
    lists.iter().any(|list| list.iter().any(|word| stem(word) == topic))
}

/// The persona in the instructions: `You are Cal, the assistant of a bicycle shop.`
fn persona(reading: &ParsedRequest<'_>) -> Option<String> {
    let found = reading.hints.iter().find_map(|hint| {
        let (head, rest) = hint.split_at_checked("You are ".len())?;
        head.eq_ignore_ascii_case("You are ").then_some(rest)
    })?;
    Some(unended(found).to_owned())
}

/// The sentences that share most topics with the input; rare words weigh more than common ones.
fn recall(reading: &ParsedRequest<'_>) -> Option<String> {
    let of_prompt = reading.hints.iter().map(|hint| hint.to_owned());
    let of_user = reading.earlier.iter().flat_map(|said| sentences(said));
    let of_user = of_user.filter(|said| !said.ends_with('?')).map(|said| turned(&said));
    let of_prompt = of_prompt.filter(|hint| !hint.starts_with("You are "));
    let known: Vec<String> = of_prompt.chain(of_user).take(MOST).collect();
    let about = known.iter().map(|sentence| topics(sentence));
    let about: Vec<_> = about.chain(reading.sent.known.iter().map(FileSentence::topics)).collect();
    let known = known.iter().chain(reading.sent.known.iter().map(|known| &known.text));
    let asked = topics(&turned(&reading.input));
    let weight = |topic: &String| {
        let count = about.iter().filter(|topics| topics.contains(topic)).count();
        u32::try_from(count).map_or(0.0, |count| 1.0 / f64::from(count.max(1)))
    };
    let scores: Vec<f64> =
        about.iter().map(|topics| topics.intersection(&asked).map(weight).sum::<f64>()).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    if best <= 0.0 {
        return None;
    }
    let near = scores.iter().zip(known).filter(|(score, _)| **score >= best * 0.8);
    let found: Vec<&str> = near.map(|(_, sentence)| sentence.as_str()).take(2).collect();
    Some(found.join(" "))
}

/// Turns a user's sentence around: `my name is Ada` becomes `your name is Ada`.
fn turned(text: &str) -> String {
    let turn = |word: &str| match word.to_lowercase().as_str() {
        "i" => Some("you"),
        "im" | "i'm" => Some("you are"),
        "am" => Some("are"),
        "my" => Some("your"),
        "mine" => Some("yours"),
        "me" => Some("you"),
        "we" => Some("you"),
        "our" => Some("your"),
        _ => None,
    };
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        let bare = unended(word);
        let sign = word.strip_prefix(bare).unwrap_or_default();
        out.push(turn(bare).map_or_else(|| word.to_owned(), |new| format!("{new}{sign}")));
    }
    let mut turned = out.join(" ");
    if let Some(first) = turned.chars().next() {
        let rest: String = turned.chars().skip(1).collect();
        turned = first.to_uppercase().chain(rest.chars()).collect();
    }
    turned
}

/// Reports a tool's answer.
pub(super) fn report(result: &str) -> String {
    let text = tokens(result).iter().any(|token| matches!(token, Token::Word(_)));
    if text { format!("The tool says: {}", result.trim()) } else { "The tool says nothing.".to_owned() }
}
