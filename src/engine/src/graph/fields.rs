//! Reads an object member by member and reports every problem.

use serde_json::{Map, Value};
pub(crate) use wire::escape;
use wire::{FieldError, MOST_PROBLEMS};

use crate::Problems;
use crate::meter;

/// Maximum problems that a check collects, of which an answer lists the first. Checks stop soon afterwards.
pub(crate) const MOST_NOTED: usize = 10 * MOST_PROBLEMS;
/// Maximum listed names in a suggestion.
const MOST_LISTED: usize = 20;
/// Maximum bytes of a name in a list. Names of nodes and channels are shorter.
const LONGEST_LISTED: usize = 64;
/// Names that are compared as one operation.
const BLOCK: usize = 64;

/// Finds the known name that is most similar; also `None` once the time limit is reached.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    meter::step().ok()?;
    let known = known.into_iter().enumerate();
    let timely = known.take_while(|(index, _)| (index + 1) % BLOCK != 0 || meter::step().is_ok());
    wire::nearest(name, timely.map(|(_, known)| known))
}

/// An object in a request or a graph, read member by member.
pub struct Fields<'a> {
    pointer: String,
    members: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Reads `value`, which must be an object.
    pub fn from_value(pointer: impl Into<String>, value: &'a Value, problems: &mut Problems) -> Option<Self> {
        let pointer = pointer.into();
        match value {
            Value::Object(members) => Some(Self { pointer, members, known: Vec::new() }),
            _ => {
                problems.push(FieldError::new(pointer, "type", "must be an object").suggest("{…}"));
                None
            }
        }
    }

    /// JSON pointer to a member.
    #[must_use]
    pub fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escape(name))
    }

    /// Returns a member, unless it is null.
    pub fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Returns a member, null included.
    pub(crate) fn given(&mut self, name: &'static str) -> Option<&'a Value> {
        self.value(name);
        self.members.get(name)
    }

    /// Returns a member that is required but may be null.
    pub(crate) fn nullable(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a Value> {
        match self.members.get(name) {
            Some(Value::Null) => self.given(name),
            _ => self.required(name, problems),
        }
    }

    /// Returns a required member.
    pub fn required(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a Value> {
        let value = self.value(name);
        if value.is_none() {
            let problem = FieldError::new(self.at(name), "required", "is required");
            problems.push(problem.suggest(format!("add \"{name}\": …")));
        }
        value
    }

    /// Returns a required text.
    pub fn text(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let value = self.required(name, problems)?;
        let text = value.as_str();
        if text.is_none() {
            let problem = FieldError::new(self.at(name), "type", "must be a string");
            problems.push(problem.suggest(format!("\"{name}\": \"{}\"", simple(value))));
        }
        text
    }

    /// Returns an optional text.
    pub fn optional_text(&mut self, name: &'static str, problems: &mut Problems) -> Option<&'a str> {
        if self.value(name).is_some() { self.text(name, problems) } else { None }
    }

    /// Returns an optional number within bounds.
    pub fn number(
        &mut self,
        name: &'static str,
        bounds: std::ops::RangeInclusive<f64>,
        problems: &mut Problems,
    ) -> Option<f64> {
        let value = self.value(name)?;
        let number = value.as_f64().filter(|number| bounds.contains(number));
        if number.is_none() {
            let (low, high) = bounds.into_inner();
            let message = format!("must be a number from {low} to {high}");
            let near = written_number(value).map_or(low, |number| number.clamp(low, high));
            let problem = FieldError::new(self.at(name), "range", message);
            problems.push(problem.suggest(format!("\"{name}\": {near}")));
        }
        number
    }

    /// Returns an optional integer within bounds.
    pub fn whole(
        &mut self,
        name: &'static str,
        bounds: std::ops::RangeInclusive<u32>,
        problems: &mut Problems,
    ) -> Option<u32> {
        let value = self.value(name)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            let (low, high) = bounds.into_inner();
            let message = format!("must be a whole number from {low} to {high}");
            let near = written_number(value).map(|number| number.round().clamp(low.into(), high.into()));
            let near = near.unwrap_or(low.into());
            let problem = FieldError::new(self.at(name), "range", message);
            problems.push(problem.suggest(format!("\"{name}\": {near}")));
        }
        number
    }

    /// Returns an optional boolean.
    pub fn boolean(&mut self, name: &'static str, problems: &mut Problems) -> Option<bool> {
        let value = self.value(name)?;
        if !value.is_boolean() {
            let problem = FieldError::new(self.at(name), "type", "must be true or false");
            problems.push(problem.suggest(format!("\"{name}\": true")));
        }
        value.as_bool()
    }

    /// Returns an optional text that must be one of `words`.
    pub fn word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let value = self.value(name)?;
        let word = words.iter().find(|word| value.as_str() == Some(word)).copied();
        if word.is_none() {
            let message = format!("must be one of {}", words.join(", "));
            let problem = FieldError::new(self.at(name), "choice", message);
            let near = value.as_str().and_then(|text| nearest(text, words.iter().copied()));
            problems.push(match near {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None => problem.suggest(format!("\"{name}\": \"{}\"", words.first().unwrap_or(&""))),
            });
        }
        word
    }

    /// Marks names as known that another reader has read.
    pub(crate) fn read_elsewhere(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Reports every unknown member, up to the maximum number of problems.
    pub fn refuse_others(&self, problems: &mut Problems) {
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            if problems.len() >= MOST_NOTED {
                break;
            }
            let problem = FieldError::new(self.at(name), "unknown_field", format!("unknown field '{name}'"));
            problems.push(match nearest(name, self.known.iter().copied()) {
                Some(known) => problem.suggest(format!("did you mean '{known}'?")),
                None => problem.suggest(format!("allowed: {}", self.known.join(", "))),
            });
        }
    }
}

/// Parses a finite number from a number or a text.
fn written_number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Suggests a text in place of a simple value.
fn simple(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        _ => "…".to_owned(),
    }
}

/// Lists known names as a suggestion; only the first ones if there are many, and none that are too long to read.
pub(crate) fn listed<'a>(what: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known = known.filter(|name| name.len() <= LONGEST_LISTED).peekable();
    let first: Vec<&str> = known.by_ref().take(MOST_LISTED).collect();
    let more = if known.peek().is_some() { ", …" } else { "" };
    format!("{what}: {}{more}", first.join(", "))
}
