//! Normalizes the ids and times in events, so that they are equal in every run.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::Value;

/// The `data` of every event in a stream's body, as JSON.
///
/// # Panics
/// When a frame is neither `id`, `data` and an empty line, nor a comment.
#[must_use]
pub fn events(body: &str) -> Vec<Value> {
    assert!(body.is_empty() || body.ends_with("\n\n"), "the body ends inside an event: {body:?}");
    let body = without_mark(body);
    let frames = body.split("\n\n").filter(|frame| !frame.is_empty() && !frame.starts_with(':'));
    frames
        .map(|frame| {
            let lines: Vec<&str> = frame.split('\n').collect();
            let [id, data] = lines.as_slice() else { panic!("a frame of other lines: {frame:?}") };
            assert!(id.starts_with("id: "), "{frame:?}");
            let data = data.strip_prefix("data: ").expect("a data line");
            let mut event: Value = serde_json::from_str(data).expect("JSON");
            event.sort_all_objects();
            event
        })
        .collect()
}

/// The last event in a stream's body.
///
/// # Panics
/// When it has none.
#[must_use]
pub fn last_event(body: &str) -> Value {
    events(body).pop().expect("an event")
}

/// The id of the thread that a stream's first event names.
///
/// # Panics
/// When it names none.
#[must_use]
pub fn thread_of(body: &str) -> String {
    events(body)[0]["thread"]["id"].as_str().expect("a thread").to_owned()
}

/// A stream's body without the marker for live events, which depends on the time of reading.
#[must_use]
pub fn without_mark(body: &str) -> String {
    body.replacen(wire::sse::LIVE_FRAME, "", 1).replacen(wire::sse::LIVE_COMMENT, "", 1)
}

/// One line per event: ids become `thr-1`, `msg-1`, … in order of appearance, times become `[time]`.
///
/// # Panics
/// When a time is not RFC 3339 with `Z`, or a member is `null`.
#[must_use]
pub fn tidy(body: &str) -> String {
    let mut names = Names::default();
    let lines = events(body).into_iter().map(|mut event| {
        names.tidy(&mut event);
        event.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A JSON response, normalized in the same way.
///
/// # Panics
/// As [`tidy`].
#[must_use]
pub fn tidy_json(value: &Value) -> String {
    let (mut names, mut value) = (Names::default(), value.clone());
    names.tidy(&mut value);
    value.to_string()
}

#[derive(Default)]
struct Names {
    known: BTreeMap<String, String>,
    counts: BTreeMap<String, usize>,
}

impl Names {
    fn tidy(&mut self, value: &mut Value) {
        match value {
            Value::Null => panic!("an unset member is absent, never null"),
            Value::Array(entries) => entries.iter_mut().for_each(|entry| self.tidy(entry)),
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "created_at" {
                        let text = member.as_str().expect("a time is text");
                        assert!(text.ends_with('Z'), "{text}");
                        DateTime::parse_from_rfc3339(text).expect("RFC 3339");
                        *member = Value::from("[time]");
                    } else {
                        self.tidy(member);
                    }
                }
            }
            Value::String(text) => {
                if let Some(name) = self.name(text) {
                    *text = name;
                }
            }
            Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn name(&mut self, text: &str) -> Option<String> {
        let (prefix, rest) = text.split_once('_')?;
        let is_id = ["thr", "msg", "shcx"].contains(&prefix)
            && rest.len() >= 20
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !is_id {
            return None;
        }
        if let Some(name) = self.known.get(text) {
            return Some(name.clone());
        }
        let count = self.counts.entry(prefix.to_owned()).or_insert(0);
        *count += 1;
        let name = format!("{prefix}-{count}");
        self.known.insert(text.to_owned(), name.clone());
        Some(name)
    }
}
