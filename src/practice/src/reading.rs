//! Parses a request for the practice model.

use serde_json::Value;

use super::instruction::{Action, Heard, Instruction, When};
use super::noise::Noise;
use super::parse::parse;
use super::sent::UserFiles;
use super::text::sentences;
use models::{Message, ModelRequest, Role};

/// Instructions followed without fail; each one above this number makes all of them less reliable.
const SURE: usize = 12;
/// Added probability of overlooking an instruction, per instruction above the limit.
const EACH_ABOVE: f64 = 0.03;
/// Maximum probability of overlooking an instruction.
const AT_MOST: f64 = 0.5;
/// Maximum instructions and examples read, and maximum other sentences.
const READ: usize = 200;
const READ_HINTS: usize = 500;
/// Labels before the input if instructions and input share one text.
const INPUTS: [&str; 7] = ["input:", "message:", "text:", "question:", "ticket:", "user:", "document:"];
const OUTPUTS: [&str; 6] = ["output:", "answer:", "label:", "expected:", "assistant:", "result:"];

/// A parsed request.
pub(super) struct ParsedRequest<'a> {
    /// The original request.
    pub(super) request: &'a ModelRequest,
    /// Its random draws.
    pub(super) noise: Noise,
    /// The instructions that are understood and not overlooked, in order.
    pub(super) instructions: Vec<Instruction>,
    /// The prompt's other sentences.
    pub(super) hints: Vec<String>,
    /// Inputs with answers, from the prompt and from the earlier conversation.
    pub(super) demos: Vec<(String, String)>,
    /// The current input.
    pub(super) input: String,
    /// The input, prepared for conditions.
    pub(super) heard: Heard,
    /// The user's earlier messages.
    pub(super) earlier: Vec<String>,
    /// The user's files.
    pub(super) sent: UserFiles,
    /// The whole prompt before the input.
    pub(super) prompt: String,
    /// A tool's answer, if it is the latest message.
    pub(super) tool_result: Option<String>,
}

impl<'a> ParsedRequest<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        let noise = Noise::for_request(request);
        let said = |role: Role| request.messages.iter().filter(move |message| message.role == role);
        let system: Vec<&str> = said(Role::System).map(|message| message.content.as_str()).collect();
        let mut prompt = system.join("\n");
        let mut input =
            said(Role::User).next_back().map(|message| message.content.clone()).unwrap_or_default();
        if prompt.trim().is_empty() {
            (prompt, input) = divide(&input);
        }
        let (text, mut demos) = take_demos(&prompt);
        let mut instructions = Vec::new();
        let mut hints = Vec::new();
        for sentence in sentences(&text) {
            match parse(&sentence) {
                Some(instruction) => instructions.push(instruction),
                None => hints.push(sentence),
            }
        }
        instructions.truncate(READ);
        hints.truncate(READ_HINTS);
        let count = u32::try_from(instructions.len().saturating_sub(SURE)).unwrap_or(u32::MAX);
        let overlooked = (f64::from(count) * EACH_ABOVE).min(AT_MOST);
        instructions.retain(|instruction| {
            let key = format!("{}\n{input}", instruction.text);
            !noise.happens(overlooked, "overlook", &key)
        });
        demos.extend(pairs(&request.messages));
        demos.truncate(READ);
        let mut earlier: Vec<String> = said(Role::User).map(|message| message.content.clone()).collect();
        earlier.pop();
        let tool_result = request.messages.last().filter(|message| message.role == Role::Tool);
        let tool_result = tool_result.map(|message| message.content.clone());
        let heard = Heard::new(&input);
        let sent = UserFiles::from_messages(&request.messages);
        Self { request, noise, instructions, hints, demos, input, heard, earlier, sent, prompt, tool_result }
    }

    /// The actions in instructions that hold for the input.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Action> {
        self.instructions.iter().filter(|found| found.when.holds(&self.heard)).map(|found| &found.action)
    }

    /// The answer that an instruction gives for the input; instructions with a condition take precedence.
    pub(super) fn given(&self) -> Option<&str> {
        let holds = |conditional: bool| {
            self.instructions.iter().find_map(move |found| match &found.action {
                Action::Answer(text)
                    if (found.when != When::Always) == conditional && found.when.holds(&self.heard) =>
                {
                    Some(text.as_str())
                }
                _ => None,
            })
        };
        holds(true).or_else(|| holds(false))
    }

    /// The answer for the case that nothing else gave one.
    pub(super) fn otherwise(&self) -> Option<&str> {
        self.instructions.iter().find_map(|found| match (&found.when, &found.action) {
            (When::Otherwise, Action::Answer(text)) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// Splits a single text into instructions and input: the input follows a line of dashes or `Input:`. Without either,
/// sentences that are instructions are separated from the rest.
fn divide(text: &str) -> (String, String) {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate().skip(1) {
        let trimmed = line.trim();
        let dashes = trimmed.len() >= 3 && trimmed.chars().all(|c| c == '-');
        let label = label(trimmed, &INPUTS);
        if let (Some((before, behind)), true) = (lines.split_at_checked(at), dashes || label.is_some()) {
            let rest = behind.get(1..).unwrap_or_default().join("\n");
            let input = format!("{}\n{rest}", label.unwrap_or_default());
            return (before.join("\n"), input.trim().to_owned());
        }
    }
    let (mut prompt, mut input) = (Vec::new(), Vec::new());
    for sentence in sentences(text) {
        // A tool's arguments appear next to its name, so such a sentence stays in the input.
        let is_rule = parse(&sentence).is_some_and(|found| !matches!(found.action, Action::Call(_)));
        if is_rule { prompt.push(sentence) } else { input.push(sentence) }
    }
    if prompt.is_empty() { (String::new(), text.to_owned()) } else { (prompt.join("\n"), input.join(" ")) }
}

/// The rest of a line after any of these labels.
fn label<'a>(line: &'a str, labels: &[&str]) -> Option<&'a str> {
    labels.iter().find_map(|label| {
        let (head, rest) = line.split_at_checked(label.len())?;
        head.eq_ignore_ascii_case(label).then_some(rest.trim())
    })
}

/// Takes examples out of a prompt: JSON lines with an input and an output, and line pairs `Input: …` / `Output: …`.
fn take_demos(prompt: &str) -> (String, Vec<(String, String)>) {
    let (mut kept, mut demos) = (Vec::new(), Vec::new());
    let mut lines = prompt.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(demo) = json_demo(line) {
            demos.push(demo);
        } else if let Some(input) = label(line.trim(), &INPUTS)
            && let Some(output) = lines.peek().and_then(|next| label(next.trim(), &OUTPUTS))
        {
            demos.push((input.to_owned(), output.to_owned()));
            lines.next();
        } else {
            kept.push(line);
        }
    }
    (kept.join("\n"), demos)
}

fn json_demo(line: &str) -> Option<(String, String)> {
    let found: Value = serde_json::from_str(line.trim().strip_prefix("- ").unwrap_or(line.trim())).ok()?;
    let member = |names: &[&str]| {
        let value = names.iter().find_map(|name| found.get(name))?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    Some((
        member(&["input", "inputs", "user", "message", "text"])?,
        member(&["output", "answer", "assistant", "expected_output", "label"])?,
    ))
}

/// The user's earlier messages with their answers.
fn pairs(messages: &[Message]) -> Vec<(String, String)> {
    messages
        .windows(2)
        .filter_map(|pair| match pair {
            [user, answer] if user.role == Role::User && answer.role == Role::Assistant => {
                Some((user.content.clone(), answer.content.clone()))
            }
            _ => None,
        })
        .collect()
}
