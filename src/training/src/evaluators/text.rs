//! Evaluators that compare texts.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::config::Config;
use super::json::is_equal;
use super::judge::Judge;
use super::subject::{Subject, shown};
use super::verdict::Verdict;
use crate::numbers::share;

/// Maximum bytes of a compiled pattern.
const PATTERN_SIZE: usize = 1 << 20;

/// Options for comparing texts.
#[derive(Debug, Clone, Copy)]
struct Compare {
    case: bool,
    whitespace: bool,
}

impl Compare {
    fn read(config: &mut Config<'_, '_>) -> Self {
        let case = config.flag("case_sensitive").unwrap_or(true);
        Self { case, whitespace: config.flag("whitespace").unwrap_or(false) }
    }

    /// Normalizes a text: collapses whitespace and lowercases, unless they count.
    fn normalized(self, text: &str) -> String {
        let text = if self.whitespace {
            text.to_owned()
        } else {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        if self.case { text } else { text.to_lowercase() }
    }
}

/// `exact_match`.
pub(super) struct Exact {
    compare: Compare,
    expected: Option<Value>,
}

impl Exact {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let (compare, expected) = (Compare::read(config), config.value("expected").cloned());
        Some(Box::new(Self { compare, expected }))
    }
}

impl Judge for Exact {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let expected = self.expected.as_ref().unwrap_or(subject.expected());
        let Value::String(expected) = expected else {
            if expected.is_null() {
                return Err("the case has no expected_output".to_owned());
            }
            let output = match subject.json_or_reason() {
                Ok(output) => output,
                Err(reason) => return Ok(Verdict::passed(false).because(reason)),
            };
            return Ok(match is_equal(expected, &output) {
                true => Verdict::passed(true),
                false => Verdict::passed(false).because(format!(
                    "Expected {}. Got {}.",
                    shown(&expected.to_string()),
                    shown(&output.to_string())
                )),
            });
        };
        let (expected, got) = (self.compare.normalized(expected), self.compare.normalized(subject.text));
        if expected == got {
            return Ok(Verdict::passed(true));
        }
        Ok(Verdict::passed(false).because(difference(&expected, &got)))
    }
}

/// Describes the expected text, the actual text and their first difference.
pub(super) fn difference(expected: &str, got: &str) -> String {
    if got.trim().is_empty() {
        return format!("Expected “{}”. The output is empty.", shown(expected));
    }
    let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| {
        let rest: String = text.chars().skip(same).take(30).collect();
        if rest.is_empty() { "its end".to_owned() } else { format!("“{rest}”") }
    };
    format!(
        "Expected “{}”. Got “{}”. They differ from character {}: {} instead of {}.",
        shown(expected),
        shown(got),
        same + 1,
        near(got),
        near(expected)
    )
}

/// The texts that an output must contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainsMode {
    /// All texts; the score is the share found.
    All,
    /// At least one text.
    Any,
    /// No text.
    No,
}

/// `contains`, `contains_all`, `contains_any`, `not_contains`.
pub(super) struct Contains {
    compare: Compare,
    texts: Option<Vec<String>>,
    mode: ContainsMode,
}

impl Contains {
    pub(super) fn read(config: &mut Config<'_, '_>, mode: ContainsMode) -> Option<Box<dyn Judge>> {
        let (compare, texts) = (Compare::read(config), config.texts("values"));
        // An expected output cannot list forbidden texts, so `values` is required.
        if mode == ContainsMode::No {
            config.required("values");
        }
        Some(Box::new(Self { compare, texts, mode }))
    }
}

impl Judge for Contains {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let texts = match (&self.texts, subject.expected()) {
            (Some(texts), _) => texts.clone(),
            (None, Value::Array(texts)) => texts.iter().map(text_of).collect(),
            (None, _) => subject.expected_text().into_iter().collect(),
        };
        if texts.is_empty() {
            return Err("neither config.values nor expected_output says what to look for".to_owned());
        }
        let got = self.compare.normalized(subject.text);
        let is_in = |text: &&String| got.contains(&self.compare.normalized(text));
        let (found, missing): (Vec<&String>, Vec<&String>) = texts.iter().partition(is_in);
        let listed = |texts: &[&String]| {
            let texts: Vec<String> = texts.iter().map(|text| format!("“{}”", shown(text))).collect();
            texts.join(", ")
        };
        Ok(match self.mode {
            ContainsMode::All if missing.is_empty() => Verdict::passed(true),
            ContainsMode::All => {
                Verdict::from_score(share(found.len(), texts.len()), threshold.unwrap_or(1.0)).because(
                    format!(
                        "The output does not contain {}. Got “{}”.",
                        listed(&missing),
                        shown(subject.text)
                    ),
                )
            }
            ContainsMode::Any if !found.is_empty() => Verdict::passed(true),
            ContainsMode::Any => Verdict::passed(false).because(format!(
                "The output contains none of {}. Got “{}”.",
                listed(&missing),
                shown(subject.text)
            )),
            ContainsMode::No if found.is_empty() => Verdict::passed(true),
            ContainsMode::No => {
                Verdict::passed(false).because(format!("The output must not contain {}.", listed(&found)))
            }
        })
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `starts_with`.
pub(super) struct StartsWith {
    compare: Compare,
    texts: Option<Vec<String>>,
}

impl StartsWith {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let (compare, texts) = (Compare::read(config), config.texts("values"));
        Some(Box::new(Self { compare, texts }))
    }
}

impl Judge for StartsWith {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let texts = self.texts.clone().unwrap_or_else(|| subject.expected_text().into_iter().collect());
        if texts.is_empty() {
            return Err("neither config.values nor expected_output says what to look for".to_owned());
        }
        let got = self.compare.normalized(subject.text);
        if texts.iter().any(|text| got.starts_with(&self.compare.normalized(text))) {
            return Ok(Verdict::passed(true));
        }
        let texts: Vec<String> = texts.iter().map(|text| format!("“{}”", shown(text))).collect();
        Ok(Verdict::passed(false).because(format!(
            "The output must start with {}. Got “{}”.",
            texts.join(" or "),
            shown(subject.text)
        )))
    }
}

/// `regex`.
pub(super) struct Pattern {
    regex: Regex,
    written: String,
    whole: bool,
}

impl Pattern {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let case = config.flag("case_sensitive").unwrap_or(true);
        let whole = config.flag("whole").unwrap_or(false);
        let pattern = config.text("pattern")?;
        let anchored = if whole { format!(r"\A(?:{pattern})\z") } else { pattern.to_owned() };
        let built = RegexBuilder::new(&anchored).case_insensitive(!case).size_limit(PATTERN_SIZE).build();
        match built {
            Ok(regex) => Some(Box::new(Self { regex, written: pattern.to_owned(), whole })),
            Err(error) => {
                let message = error.to_string();
                config.note("pattern", "pattern", message.lines().last().unwrap_or("it cannot be read"));
                None
            }
        }
    }
}

impl Judge for Pattern {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let text = subject.text.trim();
        if self.regex.is_match(text) {
            return Ok(Verdict::passed(true));
        }
        let what = if self.whole { "as a whole" } else { "anywhere" };
        let reason = format!("The output does not match /{}/ {what}. Got “{}”.", self.written, shown(text));
        Ok(Verdict::passed(false).because(reason))
    }
}

/// `length`.
pub(super) struct Length {
    min: Option<usize>,
    max: Option<usize>,
    unit: &'static str,
}

impl Length {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let (min, max) = (config.count("min"), config.count("max"));
        let unit = config.word("unit", &["characters", "words", "lines"]).unwrap_or("characters");
        if min.is_none() && max.is_none() {
            config.note("max", "required", "needs 'min', 'max' or both");
        }
        if min > max && max.is_some() {
            config.note("min", "range", "is larger than 'max'");
        }
        Some(Box::new(Self { min, max, unit }))
    }
}

impl Judge for Length {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let text = subject.text.trim();
        let length = match self.unit {
            "words" => text.split_whitespace().count(),
            "lines" => text.lines().count(),
            _ => text.chars().count(),
        };
        let outside = match (self.min, self.max) {
            (Some(min), _) if length < min => Some((share(length, min), format!("at least {min}"))),
            (_, Some(max)) if length > max => Some((share(max, length), format!("at most {max}"))),
            _ => None,
        };
        Ok(match outside {
            None => Verdict::passed(true),
            Some((score, allowed)) => Verdict::from_score(score, threshold.unwrap_or(1.0))
                .because(format!("The output has {length} {}; it may have {allowed}.", self.unit)),
        })
    }
}
