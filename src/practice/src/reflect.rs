//! Proposes a better prompt: reads the prompt and the feedback in the request, and adds the lessons.

use serde_json::{Map, Value};

use super::feedback::items;
use super::propose::improve;
use super::reading::ParsedRequest;
use super::structured::Filler;
use super::text::mentions;

/// The probability that a sentence precedes the proposal.
const CHATTER: f64 = 0.2;
/// Schema members for the proposal and for its reason.
const PROMPT: [&str; 7] =
    ["prompt", "new_prompt", "improved_prompt", "text", "instructions", "instruction", "candidate"];
const REASON: [&str; 6] = ["rationale", "reasoning", "reason", "explanation", "analysis", "critique"];

/// Text that marks a request for the reason.
const ASKS_WHY: &str = "what you change and why";

/// A prompt in the request.
struct NamedPrompt {
    name: Option<String>,
    text: String,
}

/// The answer to a request for a better prompt.
pub(super) fn proposal(reading: &ParsedRequest<'_>) -> String {
    let text = super::whole(reading.request);
    let (prompts, rest) = take_prompts(&text);
    let items = items(&rest);
    let blamed = |name: &Option<String>| name.as_ref().is_some_and(|name| mentions(&rest, name));
    let any_blamed = prompts.iter().any(|found| blamed(&found.name));
    let mut reasons = Vec::new();
    let mut written = Vec::new();
    for (at, found) in prompts.into_iter().enumerate() {
        let wanted = if any_blamed { blamed(&found.name) } else { at == 0 };
        let text = if wanted {
            let better = improve(&found.text, &items, &reading.noise);
            reasons.extend(better.reasons);
            better.prompt
        } else {
            found.text
        };
        written.push(NamedPrompt { name: found.name, text });
    }
    if reasons.is_empty() {
        reasons.push("The feedback teaches nothing that the prompt does not say.".to_owned());
    }
    if let Some(schema) = &reading.request.response_schema {
        return structured(reading, schema, &written, &reasons.join(" ")).to_string();
    }
    let chatter = reading.noise.happens(CHATTER, "chatter", &text);
    let front = if chatter { "Here is the improved prompt.\n\n" } else { "" };
    let why = if rest.contains(ASKS_WHY) { format!("{}\n\n", reasons.join(" ")) } else { String::new() };
    format!("{why}{front}{}", plain(&written, &rest))
}

/// Formats the prompts: in the tag that the request names, else in named tags, else in a fence.
fn plain(written: &[NamedPrompt], rest: &str) -> String {
    if let ([only], Some(tag)) = (written, asked_tag(rest)) {
        return format!("<{tag}>\n{}\n</{tag}>", only.text);
    }
    let tagged = |found: &NamedPrompt| match &found.name {
        Some(name) => format!("<prompt name=\"{name}\">\n{}\n</prompt>", found.text),
        None => format!("```\n{}\n```", found.text),
    };
    written.iter().map(tagged).collect::<Vec<_>>().join("\n")
}

/// A tag with "prompt" in its name that the request mentions: `<new_prompt>`.
fn asked_tag(rest: &str) -> Option<&str> {
    rest.split('<').skip(1).find_map(|part| {
        let (tag, _) = part.split_once('>')?;
        let name = tag.trim_start_matches('/');
        (name.contains("prompt") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
            .then_some(name)
    })
}

fn structured(reading: &ParsedRequest<'_>, schema: &Value, written: &[NamedPrompt], reason: &str) -> Value {
    let first = written.first().map(|found| found.text.as_str()).unwrap_or_default();
    let mut whole = match (Filler { reading, root: schema, said: reason }).whole() {
        Value::Object(whole) => whole,
        Value::String(_) => return Value::String(first.to_owned()),
        _ => Map::new(),
    };
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        let named = written.iter().find(|found| found.name.as_ref() == Some(name));
        let text = match named {
            Some(found) => Some(found.text.as_str()),
            None if PROMPT.contains(&name.as_str()) => Some(first),
            None if REASON.contains(&name.as_str()) => Some(reason),
            None => None,
        };
        if let Some(text) = text {
            whole.insert(name.clone(), Value::String(text.to_owned()));
        }
    }
    Value::Object(whole)
}

/// Splits a request into its prompts and the rest: prompts are inside `<prompt name="…">` or `<current_prompt>`, else
/// in the first fence, else below a line that ends in `prompt:`.
fn take_prompts(text: &str) -> (Vec<NamedPrompt>, String) {
    let (mut prompts, mut rest) = (Vec::new(), String::new());
    let mut open = text;
    while let Some((before, name, inside, behind)) = next_tag(open) {
        rest.push_str(before);
        prompts.push(NamedPrompt { name, text: inside.trim().to_owned() });
        open = behind;
    }
    rest.push_str(open);
    if !prompts.is_empty() {
        return (prompts, rest);
    }
    let parts: Vec<&str> = text.splitn(3, "```").collect();
    if let [before, inside, behind] = parts.as_slice() {
        // The word after a fence names a language.
        let inside = inside.split_once('\n').map_or(*inside, |(_, lines)| lines);
        return (
            vec![NamedPrompt { name: None, text: inside.trim().to_owned() }],
            format!("{before}{behind}"),
        );
    }
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.trim().to_lowercase().ends_with("prompt:"));
    let (mut prompt, mut others) = (Vec::new(), Vec::new());
    let mut inside = false;
    for (at, line) in lines.into_iter().enumerate() {
        if inside && line.trim().is_empty() {
            inside = false;
        }
        if inside {
            prompt.push(line)
        } else {
            others.push(line)
        }
        inside |= Some(at) == start;
    }
    (vec![NamedPrompt { name: None, text: prompt.join("\n") }], others.join("\n"))
}

/// The text before a prompt's tag, the prompt's name, the prompt, and the text after it.
fn next_tag(text: &str) -> Option<(&str, Option<String>, &str, &str)> {
    for tag in ["prompt", "current_prompt"] {
        let open = format!("<{tag}");
        let Some((before, from)) = text.split_once(&open) else { continue };
        let (attributes, from) = from.split_once('>')?;
        if !attributes.is_empty() && !attributes.starts_with(' ') {
            continue;
        }
        let Some((inside, behind)) = from.split_once(&format!("</{tag}>")) else { continue };
        let name = attributes.split_once("name=\"").and_then(|(_, name)| name.split_once('"'));
        return Some((before, name.map(|(name, _)| name.to_owned()), inside, behind));
    }
    None
}
