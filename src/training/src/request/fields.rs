//! Request field types in addition to those of [`Fields`].

use std::ops::RangeInclusive;

use engine::Fields;
use serde_json::Value;
use wire::FieldError;

/// The range for non-negative numbers.
pub(super) const POSITIVE: RangeInclusive<f64> = 0.0..=1e9;
/// Maximum bytes of an id or a name.
pub(super) const ID: usize = 200;
/// 2^53 - 1: up to here, no JSON reader rounds whole numbers.
const LARGEST: u64 = (1 << 53) - 1;

/// The fields of an optional object.
pub(super) fn object<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    problems: &mut Vec<FieldError>,
) -> Option<Fields<'a>> {
    let value = fields.value(name)?;
    Fields::from_value(fields.at(name), value, problems)
}

/// An optional whole number of at least `least`.
pub(super) fn whole(
    fields: &mut Fields<'_>,
    name: &'static str,
    least: u64,
    problems: &mut Vec<FieldError>,
) -> Option<u64> {
    let number = fields.value(name)?.as_u64().filter(|number| (least..=LARGEST).contains(number));
    if number.is_none() {
        let message = format!("must be a whole number from {least} to {LARGEST}");
        let problem = FieldError::new(fields.at(name), "range", message);
        problems.push(problem.suggest(format!("\"{name}\": {least}")));
    }
    number
}

/// An optional number of cases, at least 1.
pub(super) fn count(
    fields: &mut Fields<'_>,
    name: &'static str,
    problems: &mut Vec<FieldError>,
) -> Option<usize> {
    usize::try_from(whole(fields, name, 1, problems)?).ok()
}

/// An optional text with 1 to `most` bytes.
pub(super) fn text(
    fields: &mut Fields<'_>,
    name: &'static str,
    most: usize,
    problems: &mut Vec<FieldError>,
) -> Option<String> {
    let text = fields.optional_text(name, problems)?;
    if !(1..=most).contains(&text.len()) {
        let message = format!("must have 1 to {most} bytes; it has {}", text.len());
        problems.push(FieldError::new(fields.at(name), "length", message));
        return None;
    }
    Some(text.to_owned())
}

/// The value of an optional field with a fixed set of words.
pub(super) fn choice<T: Copy>(
    fields: &mut Fields<'_>,
    name: &'static str,
    choices: &[(&'static str, T)],
    problems: &mut Vec<FieldError>,
) -> Option<T> {
    let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
    let word = fields.word(name, &words, problems)?;
    choices.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}

/// The word for a value.
pub(super) fn word_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|(_, known)| known == value).map_or("", |(word, _)| *word)
}

/// A number as requests write it: 30, not 30.0.
pub(super) fn number(number: f64) -> Value {
    // The text of a whole float has no decimals.
    serde_json::from_str(&number.to_string()).unwrap_or_default()
}
