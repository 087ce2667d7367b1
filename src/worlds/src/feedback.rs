//! Parses requests to the reflector.

use super::phrases::OTHER_CAUSE;

/// Maximum failing records that the reflector reads.
const SEEN: usize = 6;
/// Starts a prompt's current text; the name is an attribute.
const PROMPT: &str = "<prompt";
/// The lines in a record.
const FIELDS: [&str; 4] = ["Input: ", "Expected: ", "Got: ", "Feedback: "];

/// A request to the reflector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The prompt name.
    pub(super) name: String,
    /// The current text.
    pub(super) text: String,
    /// The first failing records, at most six.
    pub(super) failing: Vec<Record>,
    /// Whether it requests a critique instead of a prompt.
    pub(super) is_critique: bool,
    /// Maximum characters in the new prompt.
    pub(super) max_chars: Option<usize>,
    /// Whether the request names a placeholder that the last answer lost.
    pub(super) warns_of_placeholder: bool,
    /// Parts that must stay unchanged.
    pub(super) kept: Vec<String>,
}

/// A prompt's result in a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) input: String,
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) feedback: String,
}

impl Record {
    /// Whether a critique blames another prompt.
    pub(super) fn has_other_cause(&self) -> bool {
        self.feedback.contains(OTHER_CAUSE)
    }
}

/// Parses messages, each `(role, content)`; `None` if they contain no prompt.
pub(super) fn read(messages: &[(&str, &str)]) -> Option<Request> {
    let users = || messages.iter().filter(|(role, _)| *role == "user").map(|(_, content)| *content);
    let first = users().find(|content| content.contains(PROMPT))?;
    let last = users().next_back().unwrap_or_default();
    let (_, rest) = first.split_once(PROMPT)?;
    let (attributes, rest) = rest.split_once('>')?;
    let name = attributes.split('"').nth(1).unwrap_or_default();
    let (text, rest) = rest.split_once("</prompt>")?;
    let mut failing = records(rest);
    failing.retain(|record| !record.feedback.is_empty() || record.expected != record.got);
    failing.truncate(SEEN);
    Some(Request {
        name: name.to_owned(),
        text: text.trim().to_owned(),
        failing,
        is_critique: !rest.contains("<new_prompt>"),
        max_chars: max_chars(rest),
        warns_of_placeholder: last.contains("must contain {{"),
        kept: between(rest, "<keep>", "</keep>"),
    })
}

/// The records in a request. Each begins with its input.
fn records(text: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '-', '*']);
        let Some((at, value)) =
            FIELDS.iter().enumerate().find_map(|(at, field)| Some((at, line.strip_prefix(field)?)))
        else {
            continue;
        };
        if at == 0 {
            records.push(Record::default());
        }
        let Some(record) = records.last_mut() else { continue };
        let field = match at {
            0 => &mut record.input,
            1 => &mut record.expected,
            2 => &mut record.got,
            _ => &mut record.feedback,
        };
        *field = decoded(value);
    }
    records
}

/// A field; a text with several lines is a JSON string.
fn decoded(value: &str) -> String {
    let value = value.trim();
    serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
}

/// The number before `characters`.
fn max_chars(text: &str) -> Option<usize> {
    let (before, _) = text.split_once(" characters.")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn between(text: &str, begin: &str, end: &str) -> Vec<String> {
    let parts = text.split(begin).skip(1);
    parts.filter_map(|part| part.split_once(end)).map(|(inside, _)| inside.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_parsed() {
        let user = "<prompt name=\"p\">\nAnswer {{ inputs.desk }}.\nBe kind.\n</prompt>\n\nGuidance: be brief\n\nKeep every placeholder \
            ({{ … }} and [[ … ]]) exactly as it is. The new prompt may have 2000 characters.\n\n<keep>\nBe kind.\n</keep>\n\n\
            Input: a b\nExpected: [\"x\"]\nGot: \"y\\nz\"\nFeedback: Missing “x”.\n\nInput: c\nExpected: x\nGot: x\n\n\
            Answer with the whole new prompt inside <new_prompt> and </new_prompt>.";
        let read = read(&[("system", "s"), ("user", user)]).unwrap();
        assert_eq!((read.name.as_str(), read.text.as_str()), ("p", "Answer {{ inputs.desk }}.\nBe kind."));
        assert_eq!(
            (read.is_critique, read.max_chars, read.warns_of_placeholder),
            (false, Some(2_000), false)
        );
        assert_eq!(read.kept, ["Be kind."]);
        let record = Record {
            input: "a b".into(),
            expected: "[\"x\"]".into(),
            got: "y\nz".into(),
            feedback: "Missing “x”.".into(),
        };
        assert_eq!(read.failing, [record], "a passing record is not failing");
    }

    #[test]
    fn at_most_six_records_are_used() {
        let record = "Input: a\nExpected: x\nGot: y\nFeedback: no\n\n".repeat(9);
        let user = format!("<prompt name=\"p\">\nx\n</prompt>\n\n{record}<new_prompt>");
        assert_eq!(read(&[("user", &user)]).unwrap().failing.len(), 6);
    }

    #[test]
    fn a_critique_and_a_second_request_are_recognized() {
        let critique = "<prompt name=\"p\">\nx\n</prompt>\n\nInput: a\nExpected: x\nGot: y\n\nAnswer with the critique alone, without a new prompt.";
        assert!(read(&[("user", critique)]).unwrap().is_critique);
        let first = "<prompt name=\"p\">\nx\n</prompt>\n\n<new_prompt>";
        let again = "The new prompt must contain {{inputs.desk}} exactly as in the current one. <new_prompt>";
        let read = read(&[("user", first), ("assistant", "y"), ("user", again)]).unwrap();
        assert!(read.warns_of_placeholder && !read.is_critique);
        assert_eq!(super::read(&[("user", "hello")]), None);
        let unnamed = super::read(&[("user", "<prompt>\nx\n</prompt> <new_prompt>")]).unwrap();
        assert_eq!((unnamed.name.as_str(), unnamed.text.as_str()), ("", "x"));
    }
}
