//! JSON evaluators.

use engine::{Path, Schema};
use serde_json::{Map, Value};

use super::config::Config;
use super::judge::Judge;
use super::subject::{Subject, shown};
use super::verdict::Verdict;
use crate::numbers::share;

/// Maximum differences listed in a reason.
const TOLD: usize = 5;

/// `json_valid`.
pub(super) struct Valid;

impl Valid {
    pub(super) fn read(_config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        Some(Box::new(Self))
    }
}

impl Judge for Valid {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        Ok(match subject.json_or_reason() {
            Ok(_) => Verdict::passed(true),
            Err(reason) => Verdict::passed(false).because(reason),
        })
    }
}

/// `json_schema`.
pub(super) struct Fits(Schema);

impl Fits {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let schema = config.required("schema")?;
        match Schema::read(schema) {
            Ok(schema) => Some(Box::new(Self(schema))),
            Err(why) => {
                config.note("schema", "schema", format!("is not a JSON Schema: {why}"));
                None
            }
        }
    }
}

impl Judge for Fits {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let output = match subject.json_or_reason() {
            Ok(output) => output,
            Err(reason) => return Ok(Verdict::passed(false).because(reason)),
        };
        let problems = self.0.problems(&output, "");
        if problems.is_empty() {
            return Ok(Verdict::passed(true));
        }
        let told: Vec<String> = problems
            .iter()
            .take(TOLD)
            .map(|problem| format!("{} {}", problem.pointer, problem.message))
            .collect();
        Ok(Verdict::passed(false)
            .because(format!("The output does not match the schema: {}.", told.join("; "))))
    }
}

/// `json_path`.
pub(super) struct AtPath {
    path: Path,
    written: String,
    expected: Option<Value>,
}

impl AtPath {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let expected = config.value("expected").cloned();
        let path = config.text("path")?;
        match Path::read(path) {
            Ok(read) => Some(Box::new(Self { path: read, written: path.to_owned(), expected })),
            Err(why) => {
                config.note("path", "path", why);
                None
            }
        }
    }
}

impl Judge for AtPath {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let output = match subject.json() {
            Ok(output) => output,
            Err(why) => return Ok(Verdict::passed(false).because(why)),
        };
        let found = self.path.first(&output);
        let expected = match (&self.expected, subject.expected()) {
            (Some(expected), _) => Some(expected),
            (None, Value::Null) => None,
            (None, whole @ (Value::Object(_) | Value::Array(_))) => {
                let expected = self.path.first(whole);
                Some(expected.ok_or_else(|| format!("the expected output has nothing at {}", self.written))?)
            }
            (None, expected) => Some(expected),
        };
        let path = &self.written;
        Ok(match (found, expected) {
            (None, _) => Verdict::passed(false).because(format!("The output has nothing at {path}.")),
            (Some(_), None) => Verdict::passed(true),
            (Some(found), Some(expected)) if is_equal(expected, found) => Verdict::passed(true),
            (Some(found), Some(expected)) => {
                let (expected, found) = (shown(&expected.to_string()), shown(&found.to_string()));
                Verdict::passed(false).because(format!("At {path}: expected {expected}, got {found}."))
            }
        })
    }
}

/// `json_equal`.
pub(super) struct Equal {
    expected: Option<Value>,
    extra: bool,
}

impl Equal {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let expected = config.value("expected").cloned();
        Some(Box::new(Self { expected, extra: config.flag("allow_extra").unwrap_or(false) }))
    }
}

impl Judge for Equal {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let expected = self.expected.as_ref().unwrap_or(subject.expected());
        // An expected output is often written as a text.
        let expected = match expected {
            Value::Null => return Err("the case has no expected_output".to_owned()),
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| expected.clone()),
            expected => expected.clone(),
        };
        let output = match subject.json_or_reason() {
            Ok(output) => output,
            Err(reason) => return Ok(Verdict::passed(false).because(reason)),
        };
        let mut compared = Compared { equal: 0, all: 0, told: Vec::new(), more: 0, extra: self.extra };
        compared.values("", &expected, &output);
        let verdict = Verdict::from_score(share(compared.equal, compared.all), threshold.unwrap_or(1.0));
        let Compared { mut told, more, .. } = compared;
        if told.is_empty() {
            return Ok(Verdict::passed(true));
        }
        if more > 0 {
            told.push(format!("{more} more"));
        }
        Ok(verdict.because(told.join("; ")))
    }
}

/// The compared leaves of two values.
struct Compared {
    equal: usize,
    all: usize,
    /// The first differences; `more` counts the rest.
    told: Vec<String>,
    more: usize,
    /// Whether unexpected members are allowed.
    extra: bool,
}

impl Compared {
    fn values(&mut self, path: &str, expected: &Value, got: &Value) {
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) if !expected.is_empty() || self.extra => {
                self.members(path, expected, got)
            }
            (Value::Array(expected), Value::Array(got)) if !expected.is_empty() => {
                for (index, value) in expected.iter().enumerate() {
                    let path = format!("{path}/{index}");
                    match got.get(index) {
                        Some(got) => self.values(&path, value, got),
                        None => self.differs(leaves(value), || format!("{} is missing", named(&path))),
                    }
                }
                let more = got.len().saturating_sub(expected.len());
                if more > 0 {
                    self.differs(more, || format!("{} has {more} entries too many", named(path)));
                }
            }
            _ if is_equal(expected, got) => {
                self.equal += 1;
                self.all += 1;
            }
            _ => {
                self.differs(leaves(expected), || {
                    let (expected, got) = (shown(&expected.to_string()), shown(&got.to_string()));
                    format!("{}: expected {expected}, got {got}", named(path))
                });
            }
        }
    }

    fn members(&mut self, path: &str, expected: &Map<String, Value>, got: &Map<String, Value>) {
        for (name, value) in expected {
            let path = format!("{path}/{name}");
            match got.get(name) {
                Some(got) => self.values(&path, value, got),
                None => self.differs(leaves(value), || format!("{} is missing", named(&path))),
            }
        }
        if self.extra {
            return;
        }
        for name in got.keys().filter(|name| !expected.contains_key(*name)) {
            self.differs(1, || format!("{} was not expected", named(&format!("{path}/{name}"))));
        }
    }

    fn differs(&mut self, leaves: usize, difference: impl FnOnce() -> String) {
        self.all += leaves;
        match self.told.len() {
            0..TOLD => self.told.push(shown(&difference())),
            _ => self.more += 1,
        }
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the output" } else { path }
}

/// Compares by value: 1 equals 1.0. Whole numbers above 2^53 are compared exactly.
pub(super) fn is_equal(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Number(expected), Value::Number(got)) if expected.is_f64() || got.is_f64() => {
            expected.as_f64() == got.as_f64()
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected.iter().zip(got).all(|(expected, got)| is_equal(expected, got))
        }
        (Value::Object(expected), Value::Object(got)) => {
            let is_same = |(name, expected): (&String, &Value)| {
                got.get(name).is_some_and(|got| is_equal(expected, got))
            };
            expected.len() == got.len() && expected.iter().all(is_same)
        }
        _ => expected == got,
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(members) if !members.is_empty() => members.values().map(leaves).sum(),
        Value::Array(entries) if !entries.is_empty() => entries.iter().map(leaves).sum(),
        _ => 1,
    }
}
