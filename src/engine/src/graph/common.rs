//! Members that every node may have, whatever its type.

use std::time::Duration;

use serde_json::{Value, json};
use wire::FieldError;

use super::fields::{Fields, escape};
use crate::Problems;

/// Minimum time limit of an attempt: a millisecond, in seconds.
const MIN_TIMEOUT: f64 = 0.001;
/// Maximum time limit of an attempt: a day, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;
/// Maximum attempts per visit.
const MAX_ATTEMPTS: u32 = 20;
/// Maximum wait between two attempts: an hour, in seconds.
const MAX_DELAY: f64 = 3_600.0;
/// Maximum time that a result is cached: 30 days, in seconds.
const MAX_CACHE: f64 = 2_592_000.0;

/// The members' names.
pub(crate) const NAMES: [&str; 10] = [
    "name",
    "type",
    "description",
    "timeout_seconds",
    "retry",
    "on_error",
    "on_unknown",
    "idempotent",
    "cache_seconds",
    "state",
];

/// The members that every node has.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Common {
    /// Time limit of one attempt.
    pub(crate) timeout: Option<Duration>,
    /// The retry policy.
    pub(crate) retry: Option<Retry>,
    /// The run's reaction to the node's failure.
    pub(crate) on_error: OnError,
    /// How to handle an attempt whose outcome is unknown after a crash.
    pub(crate) on_unknown: Option<OnUnknown>,
    /// Whether repeating it is harmless.
    pub(crate) idempotent: bool,
    /// Time that a result is reused for the same input.
    pub(crate) cache: Option<Duration>,
    /// The channels that it writes to, by name.
    pub(crate) state: Vec<(String, Value)>,
}

/// A retry policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Retry {
    /// Maximum attempts.
    pub(crate) max_attempts: u32,
    /// Wait before the second attempt.
    pub(crate) initial_delay: Duration,
    /// Growth factor per wait.
    pub(crate) backoff: f64,
    /// Maximum wait.
    pub(crate) max_delay: Duration,
    /// Whether a wait is shortened at random, to at least half.
    pub(crate) jitter: bool,
}

impl Retry {
    /// A single attempt.
    pub(crate) const NONE: Self = Self::times(1);

    /// This many attempts with the default waits.
    pub(crate) const fn times(max_attempts: u32) -> Self {
        let (initial_delay, max_delay) = (Duration::from_millis(500), Duration::from_secs(30));
        Self { max_attempts, initial_delay, backoff: 2.0, max_delay, jitter: true }
    }

    /// Wait after attempt `attempt`, before jitter.
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        let doublings = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial_delay.as_secs_f64() * self.backoff.powi(doublings);
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_delay).min(self.max_delay)
    }
}

/// The run's reaction to a node that has finally failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnError {
    /// The run fails.
    #[default]
    Fail,
    /// The run continues; the node's result is `{error: {code, message}}`.
    Continue,
    /// The run continues at this node only.
    To(String),
}

/// How to handle an attempt whose outcome is unknown after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnUnknown {
    /// Repeat the attempt.
    Retry,
    /// Count it as failed.
    Fail,
    /// Ask a person.
    Ask,
}

/// JSON Schema of these members, without name and type.
pub(crate) fn schema() -> Value {
    json!({
        "description": {"type": "string", "description": "Description for people."},
        "timeout_seconds": {"type": "number", "minimum": MIN_TIMEOUT, "maximum": MAX_TIMEOUT,
                            "description": "Time limit of one attempt."},
        "retry": {"type": "object", "description": "Retries of a transient failure.", "properties": {
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS, "default": 3},
            "initial_delay_seconds": {"type": "number", "minimum": 0, "maximum": MAX_DELAY, "default": 0.5},
            "backoff": {"type": "number", "minimum": 1, "maximum": 10, "default": 2},
            "max_delay_seconds": {"type": "number", "minimum": 0, "maximum": MAX_DELAY, "default": 30},
            "jitter": {"type": "boolean", "default": true}}, "additionalProperties": false},
        "on_error": {"description": "Effect of a failed last attempt on the run.", "default": "fail",
                     "oneOf": [{"enum": ["fail", "continue"]},
                               {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}},
                                "additionalProperties": false}]},
        "on_unknown": {"enum": ["retry", "fail", "ask"],
                       "description": "Handling of an attempt with an unknown outcome after a crash."},
        "idempotent": {"type": "boolean", "default": false,
                       "description": "Declares that the node can safely be repeated: `on_unknown` is then `retry`."},
        "cache_seconds": {"type": "number", "minimum": 1, "maximum": MAX_CACHE,
                          "description": "Seconds to reuse the result for the same input; pure nodes only."},
        "state": {"type": "object", "description": "Channels and the values to write to them; strings are templates."},
    })
}

/// Reads these members.
pub(crate) fn read(fields: &mut Fields<'_>, problems: &mut Problems) -> Common {
    let timeout = fields.number("timeout_seconds", MIN_TIMEOUT..=MAX_TIMEOUT, problems);
    let cache = fields.number("cache_seconds", 1.0..=MAX_CACHE, problems);
    Common {
        timeout: timeout.map(Duration::from_secs_f64),
        retry: read_retry(fields, problems),
        on_error: read_on_error(fields, problems),
        on_unknown: read_on_unknown(fields, problems),
        idempotent: fields.boolean("idempotent", problems).unwrap_or(false),
        cache: cache.map(Duration::from_secs_f64),
        state: read_state(fields, problems),
    }
}

fn read_retry(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Retry> {
    let pointer = fields.at("retry");
    let mut fields = Fields::from_value(pointer, fields.value("retry")?, problems)?;
    let mut retry = Retry::times(3);
    if let Some(attempts) = fields.whole("max_attempts", 1..=MAX_ATTEMPTS, problems) {
        retry.max_attempts = attempts;
    }
    if let Some(seconds) = fields.number("initial_delay_seconds", 0.0..=MAX_DELAY, problems) {
        retry.initial_delay = Duration::from_secs_f64(seconds);
    }
    if let Some(factor) = fields.number("backoff", 1.0..=10.0, problems) {
        retry.backoff = factor;
    }
    if let Some(seconds) = fields.number("max_delay_seconds", 0.0..=MAX_DELAY, problems) {
        retry.max_delay = Duration::from_secs_f64(seconds);
    }
    if let Some(jitter) = fields.boolean("jitter", problems) {
        retry.jitter = jitter;
    }
    fields.refuse_others(problems);
    Some(retry)
}

fn read_on_error(fields: &mut Fields<'_>, problems: &mut Problems) -> OnError {
    const SUGGESTION: &str = r#"write "fail", "continue" or {"to": "<node>"}"#;
    let pointer = fields.at("on_error");
    match fields.value("on_error") {
        None => OnError::Fail,
        Some(Value::String(word)) if word == "fail" => OnError::Fail,
        Some(Value::String(word)) if word == "continue" => OnError::Continue,
        Some(object @ Value::Object(_)) => {
            let Some(mut fields) = Fields::from_value(pointer, object, problems) else {
                return OnError::Fail;
            };
            let to = fields.text("to", problems).map(str::to_owned);
            fields.refuse_others(problems);
            to.map_or(OnError::Fail, OnError::To)
        }
        Some(_) => {
            let problem = FieldError::new(pointer, "choice", "is not a valid way to continue after an error");
            problems.push(problem.suggest(SUGGESTION));
            OnError::Fail
        }
    }
}

fn read_on_unknown(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<OnUnknown> {
    match fields.word("on_unknown", &["retry", "fail", "ask"], problems)? {
        "retry" => Some(OnUnknown::Retry),
        "ask" => Some(OnUnknown::Ask),
        _ => Some(OnUnknown::Fail),
    }
}

fn read_state(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<(String, Value)> {
    let pointer = fields.at("state");
    match fields.value("state") {
        None => Vec::new(),
        Some(Value::Object(channels)) => {
            channels.iter().map(|(channel, template)| (channel.clone(), template.clone())).collect()
        }
        Some(_) => {
            let problem = FieldError::new(pointer, "type", "must be an object");
            problems.push(problem.suggest(r#"{"<channel>": "<template of what to write>"}"#));
            Vec::new()
        }
    }
}

/// JSON pointer to one of a node's writes.
pub(crate) fn state_pointer(node: &str, channel: &str) -> String {
    format!("{node}/state/{}", escape(channel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_grow_to_their_limit() {
        let retry = Retry { max_delay: Duration::from_secs(3), ..Retry::times(9) };
        let waits: Vec<f64> = (1..=5).map(|attempt| retry.pause(attempt).as_secs_f64()).collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 3.0, 3.0]);
        let steep = Retry { backoff: 10.0, ..Retry::times(20) };
        assert_eq!(steep.pause(u32::MAX), steep.max_delay);
    }
}
