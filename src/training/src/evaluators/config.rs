//! Reads the fields of an evaluator and its `config`, and collects problems.

use std::ops::RangeInclusive;

use engine::Fields;
use serde_json::Value;
use wire::FieldError;

/// Maximum of a count or number without another limit.
const MOST: u32 = 1_000_000_000;
/// The range for non-negative numbers.
pub(super) const POSITIVE: RangeInclusive<f64> = 0.0..=1e9;

/// Reads an object field by field.
pub(super) struct Config<'a, 'p> {
    fields: Fields<'a>,
    problems: &'p mut Vec<FieldError>,
}

impl<'a, 'p> Config<'a, 'p> {
    /// Starts reading the object at `pointer`.
    pub(super) fn from_value(
        pointer: String,
        value: &'a Value,
        problems: &'p mut Vec<FieldError>,
    ) -> Option<Self> {
        let fields = Fields::from_value(pointer, value, problems)?;
        Some(Self { fields, problems })
    }

    /// The pointer to a field.
    pub(super) fn at(&self, name: &str) -> String {
        self.fields.at(name)
    }

    pub(super) fn note(&mut self, name: &str, code: &str, message: impl Into<String>) {
        let problem = FieldError::new(self.at(name), code, message);
        self.problems.push(problem);
    }

    /// For callers that read a part of the config themselves.
    pub(super) fn problems(&mut self) -> &mut Vec<FieldError> {
        self.problems
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.fields.value(name)
    }

    pub(super) fn required(&mut self, name: &'static str) -> Option<&'a Value> {
        self.fields.required(name, self.problems)
    }

    /// A required text.
    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.fields.text(name, self.problems)
    }

    pub(super) fn optional_text(&mut self, name: &'static str) -> Option<&'a str> {
        self.fields.optional_text(name, self.problems)
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.fields.boolean(name, self.problems)
    }

    pub(super) fn number(&mut self, name: &'static str, bounds: RangeInclusive<f64>) -> Option<f64> {
        self.fields.number(name, bounds, self.problems)
    }

    pub(super) fn whole(&mut self, name: &'static str, bounds: RangeInclusive<u32>) -> Option<u32> {
        self.fields.whole(name, bounds, self.problems)
    }

    pub(super) fn count(&mut self, name: &'static str) -> Option<usize> {
        let count = self.fields.whole(name, 0..=MOST, self.problems)?;
        usize::try_from(count).ok()
    }

    /// A text, or a list with at least one text.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        let texts = match self.value(name)? {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(texts) if !texts.is_empty() => {
                texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        if texts.is_none() {
            self.note(name, "type", "must be a text or a list of texts");
        }
        texts
    }

    /// One of these words.
    pub(super) fn word(&mut self, name: &'static str, words: &[&'static str]) -> Option<&'static str> {
        self.fields.word(name, words, self.problems)
    }

    /// Reports every field that was not read.
    pub(super) fn finish(self) {
        self.fields.refuse_others(self.problems);
    }
}
