//! Reads responses.

use client::Answer;
use serde_json::Value;

/// Views of a response for scenarios.
pub trait AnswerExt {
    /// Asserts the status.
    #[track_caller]
    fn expect(self, status: u16) -> Answer;
    /// `detail.code`, or an empty text.
    fn code(&self) -> String;
    /// `detail.message`, or an empty text.
    fn message(&self) -> String;
    /// `detail.errors` as lines with pointer and code.
    fn problems(&self) -> Vec<String>;
    /// Status and code, the shortest description of a refusal.
    fn refusal(&self) -> String;
    /// The body as JSON with sorted members; their order in the response is in its text.
    fn value(&self) -> Value;
    /// A string member of the body.
    fn member(&self, name: &str) -> String;
}

impl AnswerExt for Answer {
    fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    fn code(&self) -> String {
        detail(self, "code")
    }

    fn message(&self) -> String {
        detail(self, "message")
    }

    fn problems(&self) -> Vec<String> {
        let body = self.value();
        let errors = body["detail"]["errors"].as_array().cloned().unwrap_or_default();
        let line = |error: &Value| {
            format!("{} {}", error["pointer"].as_str().unwrap_or("?"), error["code"].as_str().unwrap_or("?"))
        };
        errors.iter().map(line).collect()
    }

    fn refusal(&self) -> String {
        format!("{} {}", self.status, self.code()).trim_end().to_owned()
    }

    fn value(&self) -> Value {
        let mut value: Value = self.json().unwrap_or_else(|error| panic!("{error}: {:?}", self.text()));
        value.sort_all_objects();
        value
    }

    fn member(&self, name: &str) -> String {
        self.value()[name]
            .as_str()
            .unwrap_or_else(|| panic!("no string '{name}': {}", self.text()))
            .to_owned()
    }
}

fn detail(answer: &Answer, member: &str) -> String {
    let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    body["detail"][member].as_str().unwrap_or_default().to_owned()
}

/// Headers that are part of a response's meaning.
const SHOWN: [&str; 8] = [
    "content-type",
    "allow",
    "retry-after",
    "www-authenticate",
    "set-cookie",
    "cache-control",
    "x-accel-buffering",
    "idempotency-replayed",
];

/// Status, meaningful headers and body.
///
/// # Panics
/// When the response has no request id: every response has one.
#[must_use]
pub fn shown(answer: &Answer) -> String {
    let id = answer.header("x-request-id").unwrap_or_default();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "X-Request-Id is {id:?}");
    let mut text = format!("{}\n", answer.status);
    for name in SHOWN {
        for value in answer.headers.get_all(name) {
            text.push_str(&format!("{name}: {}\n", value.to_str().unwrap_or("?")));
        }
    }
    text.push_str(&answer.text().replace(id, "[request id]"));
    text.trim_end().to_owned()
}

/// The text that all of these responses have in common, as [`shown`].
///
/// # Panics
/// When one differs from the first.
#[must_use]
pub fn shown_alike(answers: &[Answer]) -> String {
    let all: Vec<String> = answers.iter().map(shown).collect();
    for (index, one) in all.iter().enumerate() {
        assert_eq!(Some(one), all.first(), "answer {index}");
    }
    all.into_iter().next().unwrap_or_default()
}
