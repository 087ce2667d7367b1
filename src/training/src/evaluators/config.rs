//! The fields of an evaluator's `config`, each read once; what is left over is unknown.

use serde_json::{Map, Value};
use wire::{FieldError, nearest};

/// Reads a config and collects every problem.
pub(super) struct Config<'a, 'p> {
    pointer: String,
    members: &'a Map<String, Value>,
    known: Vec<&'static str>,
    problems: &'p mut Vec<FieldError>,
}

impl<'a, 'p> Config<'a, 'p> {
    /// `pointer`: where the config stands.
    pub(super) fn new(
        pointer: String,
        members: &'a Map<String, Value>,
        problems: &'p mut Vec<FieldError>,
    ) -> Self {
        Self { pointer, members, known: Vec::new(), problems }
    }

    /// Where a field stands.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.pointer)
    }

    pub(super) fn note(&mut self, name: &str, code: &str, message: impl Into<String>) {
        let problem = FieldError::new(self.at(name), code, message);
        self.problems.push(problem);
    }

    /// For what reads a part of the config itself.
    pub(super) fn problems(&mut self) -> &mut Vec<FieldError> {
        self.problems
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        let read = read(value);
        if read.is_none() {
            self.note(name, "type", format!("must be {what}"));
        }
        read
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.read(name, "a text", Value::as_str)
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A number of at least 0.
    pub(super) fn number(&mut self, name: &'static str) -> Option<f64> {
        self.read(name, "a number of at least 0", |value| value.as_f64().filter(|number| *number >= 0.0))
    }

    pub(super) fn whole(&mut self, name: &'static str) -> Option<usize> {
        self.read(name, "a whole number", |value| {
            value.as_u64().and_then(|number| usize::try_from(number).ok())
        })
    }

    /// A text or a list of at least one.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.read(name, "a text or a list of texts", |value| match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(texts) if !texts.is_empty() => {
                texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        })
    }

    /// One of these words.
    pub(super) fn word(&mut self, name: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let value = self.value(name)?;
        let found = words.iter().find(|word| value == **word).copied();
        if found.is_none() {
            self.note(name, "choice", format!("must be one of {}", words.join(", ")));
        }
        found
    }

    /// Notes that a field is needed.
    pub(super) fn missing(&mut self, name: &str, why: &str) {
        self.note(name, "required", why);
    }

    /// Notes every field that was not read.
    pub(super) fn finish(self) {
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            let mut problem = FieldError::new(
                format!("{}/{name}", self.pointer),
                "unknown_field",
                format!("unknown field '{name}'"),
            );
            if let Some(near) = nearest(name, self.known.iter().copied()) {
                problem = problem.suggest(format!("did you mean '{near}'?"));
            }
            self.problems.push(problem);
        }
    }
}
