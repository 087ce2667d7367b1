//! Reads a request body member by member and collects every problem, so that the sender learns them all at once.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use wire::{FieldError, MOST_PROBLEMS, nearest};
pub(super) use wire::{escape, shortened};

/// The problem for an unknown name, with the nearest known name or all known names as a suggestion.
pub(super) fn unknown(pointer: String, code: &str, what: &str, name: &str, known: &[&str]) -> FieldError {
    let problem = FieldError::new(pointer, code, format!("unknown {what} '{}'", shortened(name)));
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.suggest(format!("did you mean '{near}'?")),
        None if known.is_empty() => problem.suggest("omit it; none is allowed here"),
        None => problem.suggest(format!("allowed: {}", known.join(", "))),
    }
}

/// A parsed request, or all its problems.
pub(super) type Parsed<T> = Result<T, Vec<FieldError>>;

/// The members of a request object. A null member counts as absent.
pub(super) struct Fields<'a> {
    members: &'a Map<String, Value>,
    known: Vec<&'static str>,
    problems: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(members: &'a Map<String, Value>) -> Self {
        Self { members, known: Vec::new(), problems: Vec::new() }
    }

    /// Records a problem, up to the limit.
    pub(super) fn note(&mut self, problem: FieldError) {
        if !self.has_enough() {
            self.problems.push(problem);
        }
    }

    fn has_enough(&self) -> bool {
        self.problems.len() > MOST_PROBLEMS
    }

    fn wrong(&mut self, pointer: String, expected: &str) {
        self.note(FieldError::new(pointer, "type", format!("must be {expected}")));
    }

    /// Returns a member unchanged, even null.
    pub(super) fn stands(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name)
    }

    /// Records a problem if a required member is absent or null.
    pub(super) fn require(&mut self, name: &'static str) {
        if self.members.get(name).is_none_or(Value::is_null) {
            self.note(FieldError::new(format!("/{name}"), "required", "is required"));
        }
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.stands(name).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            self.wrong(format!("/{name}"), expected);
        }
        read
    }

    /// A string, if present.
    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.typed(name, "a string", Value::as_str)
    }

    /// A single line without surrounding whitespace or control characters, with `least` to `most` characters.
    pub(super) fn line(&mut self, name: &'static str, least: usize, most: usize) -> Option<String> {
        let text = self.text(name)?.trim();
        let length = text.chars().count();
        if length < least || length > most {
            let message = format!("must have {least} to {most} characters; it has {length}");
            self.note(FieldError::new(format!("/{name}"), "length", message));
        } else if text.chars().any(char::is_control) {
            self.note(FieldError::new(format!("/{name}"), "format", "must be one line of plain text"));
        }
        Some(text.to_owned())
    }

    /// A whole number within bounds, if present.
    pub(super) fn whole(&mut self, name: &'static str, bounds: RangeInclusive<i64>) -> Option<i64> {
        let number = self.typed(name, "a whole number", Value::as_i64)?;
        if bounds.contains(&number) {
            return Some(number);
        }
        let message = format!("must be from {} to {}", bounds.start(), bounds.end());
        self.note(FieldError::new(format!("/{name}"), "range", message));
        None
    }

    /// Accepts members that another reader handles.
    pub(super) fn pass_over(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Whether the member is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A boolean, if present.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// A time, if present.
    pub(super) fn time(&mut self, name: &'static str) -> Option<DateTime<Utc>> {
        let read = |value: &Value| DateTime::parse_from_rfc3339(value.as_str()?).ok();
        self.typed(name, "a time such as 2026-11-23T09:00:00Z", read).map(|time| time.to_utc())
    }

    /// One of these words, if present.
    pub(super) fn one_of(&mut self, name: &'static str, choice: &[&str]) -> Option<&'a str> {
        let expected = format!("one of {}", choice.join(", "));
        self.typed(name, &expected, |value| value.as_str().filter(|word| choice.contains(word)))
    }

    /// An object, if present.
    pub(super) fn object(&mut self, name: &'static str) -> Option<&'a Map<String, Value>> {
        self.typed(name, "an object", Value::as_object)
    }

    /// An array, if present.
    pub(super) fn list(&mut self, name: &'static str) -> Option<&'a Vec<Value>> {
        self.typed(name, "an array", Value::as_array)
    }

    /// An array of strings with their JSON pointers, if present. Other entries are reported and left out.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<(String, &'a str)>> {
        let entries = self.typed(name, "an array of strings", Value::as_array)?;
        let mut texts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let pointer = format!("/{name}/{index}");
            match entry.as_str() {
                Some(text) => texts.push((pointer, text)),
                None => self.wrong(pointer, "a string"),
            }
        }
        Some(texts)
    }

    /// Returns all problems, including unknown members.
    pub(super) fn finish(mut self) -> Vec<FieldError> {
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            if self.has_enough() {
                break;
            }
            let pointer = format!("/{}", escape(name));
            self.problems.push(unknown(pointer, "unknown_field", "field", name, &self.known));
        }
        self.problems
    }
}

/// Checks that the body has no members.
pub(super) fn nothing(body: &Map<String, Value>) -> Result<(), Vec<FieldError>> {
    let problems = Fields::new(body).finish();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(problems: Vec<FieldError>) -> Vec<String> {
        let line = |problem: FieldError| {
            let suggestion = problem.suggestion.unwrap_or_default();
            format!("{} {}: {} {suggestion}", problem.pointer, problem.code, problem.message)
        };
        problems.into_iter().map(|problem| line(problem).trim_end().to_owned()).collect()
    }

    #[test]
    fn every_problem_is_reported() {
        let body = json!({"name": 1, "on": "yes", "more": [], "tags": ["a", 2, null], "nme": 1, "a/b~c": 2});
        let mut fields = Fields::new(body.as_object().unwrap());
        assert_eq!(fields.text("name"), None);
        assert_eq!(fields.flag("on"), None);
        assert_eq!(fields.object("more"), None);
        assert_eq!(fields.texts("tags").unwrap().len(), 1);
        fields.require("graph");
        assert_eq!(
            lines(fields.finish()),
            [
                "/name type: must be a string",
                "/on type: must be true or false",
                "/more type: must be an object",
                "/tags/1 type: must be a string",
                "/tags/2 type: must be a string",
                "/graph required: is required",
                "/nme unknown_field: unknown field 'nme' did you mean 'name'?",
                "/a~1b~0c unknown_field: unknown field 'a/b~c' allowed: name, on, more, tags",
            ]
        );
    }

    #[test]
    fn the_number_and_length_of_problems_are_limited() {
        let many: Map<String, Value> = (0..1000).map(|n| (format!("k{n}"), json!(1))).collect();
        assert_eq!(Fields::new(&many).finish().len(), MOST_PROBLEMS + 1);
        let body = json!({"tags": vec![1; 1000]});
        let mut fields = Fields::new(body.as_object().unwrap());
        fields.texts("tags");
        assert_eq!(fields.finish().len(), MOST_PROBLEMS + 1);
        let long: Map<String, Value> = [("x".repeat(1000), json!(1))].into_iter().collect();
        assert!(Fields::new(&long).finish()[0].message.len() < 100);
    }

    #[test]
    fn null_equals_absent() {
        let body = json!({"name": null, "tags": null});
        let mut fields = Fields::new(body.as_object().unwrap());
        assert!(fields.text("name").is_none() && fields.texts("tags").is_none());
        fields.require("name");
        assert_eq!(lines(fields.finish()), ["/name required: is required"]);
    }

    #[test]
    fn members_are_rejected_if_none_is_allowed() {
        assert_eq!(nothing(&Map::new()), Ok(()));
        let body = json!({"reason": "x"});
        let problems = nothing(body.as_object().unwrap()).unwrap_err();
        let suggestion = "/reason unknown_field: unknown field 'reason' omit it; none is allowed here";
        assert_eq!(lines(problems), [suggestion]);
    }
}
