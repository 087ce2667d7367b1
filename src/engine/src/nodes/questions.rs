//! Shared fields of nodes that ask people: the answer key, and the question's expiry.

use chrono::{DateTime, TimeDelta, Utc};
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::check::Check;
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::template::{as_text, fill, has_holes};

/// Maximum wait: a year, in seconds.
const LONGEST_WAIT: f64 = 31_536_000.0;
/// Maximum key characters: an agent tool's key is `<node>.<tool>`, with 64 characters each.
const KEY_LENGTH: usize = 129;

/// The key by which an answer names its question; a template.
pub(crate) struct AnswerKey(Value);

/// The time that a question waits for its answer.
pub(crate) struct Expiry(Option<TimeDelta>);

impl AnswerKey {
    pub(crate) fn schema() -> Value {
        json!({"type": "string",
               "description": "Key of the input in `POST /api/runs/{id}/inputs/{key}`; a template (default: the node's name)."})
    }

    /// Reads the field `key`; without it, the key is the node's name.
    pub(crate) fn read(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Self {
        let key = optional_text_field(fields, "key", check);
        if let Some(Value::String(key)) = &key
            && !has_holes(key)
            && !is_key(key)
        {
            let message = format!("must be 1 to {KEY_LENGTH} letters, digits, '.', '_', '-', ':'");
            let problem = FieldError::new(fields.at("key"), "pattern", message);
            check.note(problem.suggest("\"key\": \"approval\""));
        }
        Self(key.unwrap_or_else(|| Value::String(spec.name.clone())))
    }

    pub(crate) fn filled(&self, scope: &View) -> Result<String, NodeError> {
        let key = as_text(&fill(&self.0, scope)?);
        if !is_key(&key) {
            return Err(NodeError::failed(format!(
                "/key: '{key}' is not made of 1 to {KEY_LENGTH} letters, digits, '.', '_', '-', ':'"
            )));
        }
        Ok(key)
    }
}

impl Expiry {
    pub(crate) fn schema() -> Value {
        json!({"type": "number", "minimum": 1, "maximum": LONGEST_WAIT,
               "description": "Seconds to wait (default: without limit)."})
    }

    /// Reads the field `expires_seconds`.
    pub(crate) fn read(fields: &mut Fields<'_>, check: &mut Check) -> Self {
        let seconds = fields.number("expires_seconds", 1.0..=LONGEST_WAIT, &mut check.problems);
        Self(seconds.map(|seconds| TimeDelta::milliseconds(whole(seconds * 1_000.0))))
    }

    /// Returns the deadline of a question asked at this time.
    pub(crate) fn deadline(&self, asked_at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        asked_at.checked_add_signed(self.0?)
    }
}

/// The failure if a question has no answer in time.
pub(crate) fn expired() -> NodeError {
    let code = ErrorCode::NodeInputExpired;
    NodeError::new(code, code.message())
}

/// Converts milliseconds, which are far below the exact range of a float.
fn whole(number: f64) -> i64 {
    format!("{number:.0}").parse().unwrap_or(i64::MAX)
}

fn is_key(key: &str) -> bool {
    let good = |letter: char| letter.is_ascii_alphanumeric() || ".:_-".contains(letter);
    (1..=KEY_LENGTH).contains(&key.len()) && key.chars().all(good)
}
