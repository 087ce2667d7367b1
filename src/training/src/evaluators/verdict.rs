//! Evaluator verdicts in one common form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::numbers::NOISE;

/// An evaluator's verdict about a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The score from 0 to 1.
    pub score: f64,
    /// Whether the score is good enough.
    pub passed: bool,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Required changes, for an optimizer; equals `reason` if the evaluator gives only one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Feedback per prompt, by prompt name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, String>,
    /// Further metrics.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metrics: Map<String, Value>,
    /// Whether the case does not count for this evaluator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// The evaluator's own failure; the score is then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Verdict {
    /// A score without a reason; 0 if `score` is NaN.
    #[must_use]
    pub fn from_score(score: f64, threshold: f64) -> Self {
        let score = if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
        Self {
            score,
            passed: score >= threshold,
            reason: None,
            feedback: None,
            targets: BTreeMap::new(),
            metrics: Map::new(),
            skip: false,
            error: None,
        }
    }

    /// Score 1 or 0.
    #[must_use]
    pub fn passed(passed: bool) -> Self {
        Self { passed, ..Self::from_score(if passed { 1.0 } else { 0.0 }, 0.5) }
    }

    /// Adds a reason, which also becomes the feedback.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        self.feedback = Some(reason.clone());
        self.reason = Some(reason);
        self
    }

    /// The evaluator failed.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::passed(false) }
    }

    /// Keeps only the numbers, because there may be very many verdicts.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self { passed: self.passed, skip: self.skip, ..Self::from_score(self.score, 0.0) }
    }

    /// The case did not complete: a timeout, or a node failure.
    #[must_use]
    pub fn without_output(reason: &str) -> Self {
        Self::passed(false).because(reason)
    }
}

/// Converts an evaluator's return value: a boolean, a number, or an object with `score` or `value`.
///
/// # Errors
/// A message if the value has another form.
pub fn normalized(returned: &Value, threshold: f64) -> Result<Verdict, String> {
    match returned {
        Value::Bool(passed) => Ok(Verdict::passed(*passed)),
        Value::Number(number) => match number.as_f64() {
            // Weighted sums may slightly exceed the range.
            Some(score) if (-NOISE..=1.0 + NOISE).contains(&score) => {
                Ok(Verdict::from_score(score, threshold))
            }
            _ => Err(format!("a score is from 0 to 1, not {number}")),
        },
        Value::Object(members) => of_object(members, threshold),
        other => Err(format!("an evaluator returns a boolean, a number or an object, not {}", kind(other))),
    }
}

fn of_object(members: &Map<String, Value>, threshold: f64) -> Result<Verdict, String> {
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_skipped = members.get("skip") == Some(&Value::Bool(true));
    let score = members.get("score").or_else(|| members.get("value"));
    let mut verdict = match (score, members.get("passed")) {
        (Some(score @ (Value::Number(_) | Value::Bool(_))), _) => normalized(score, threshold)?,
        (None, Some(Value::Bool(passed))) => Verdict::passed(*passed),
        (None, _) if is_skipped => Verdict::passed(false),
        (Some(other), _) => return Err(format!("`score` is a number, not {}", kind(other))),
        (None, _) => return Err("the object has no `score`".to_owned()),
    };
    if let Some(passed) = members.get("passed").and_then(Value::as_bool) {
        verdict.passed = passed;
    }
    let (reason, feedback) = (text("reason"), text("feedback"));
    verdict.reason = reason.clone().or_else(|| feedback.clone());
    verdict.feedback = feedback.or(reason);
    let targets = members.get("targets").and_then(Value::as_object).into_iter().flatten();
    verdict.targets = targets
        .filter_map(|(prompt, feedback)| Some((prompt.clone(), feedback.as_str()?.to_owned())))
        .collect();
    verdict.metrics = members.get("metrics").and_then(Value::as_object).cloned().unwrap_or_default();
    verdict.skip = is_skipped;
    Ok(verdict)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_kept_and_bounded() {
        for (returned, score, passed) in [
            (json!(true), 1.0, true),
            (json!(false), 0.0, false),
            (json!(0.7), 0.7, true),
            (json!(0.3), 0.3, false),
            (json!(1.000_000_000_1), 1.0, true),
            (json!({"value": 0.6}), 0.6, true),
            (json!({"score": 0.9, "passed": false}), 0.9, false),
            (json!({"passed": true}), 1.0, true),
        ] {
            let verdict = normalized(&returned, 0.5).unwrap();
            assert_eq!((verdict.score, verdict.passed, verdict.skip), (score, passed, false), "{returned}");
        }
        assert!(Verdict::from_score(f64::NAN, 0.0).score == 0.0);
    }

    #[test]
    fn an_invalid_verdict_is_an_error() {
        for (returned, error) in [
            (json!("good"), "not a text"),
            (json!(null), "not null"),
            (json!([1]), "not a list"),
            (json!(7), "from 0 to 1, not 7"),
            (json!({"score": -0.5, "passed": true}), "from 0 to 1, not -0.5"),
            (json!({"score": "1"}), "not a text"),
            (json!({"score": null}), "not null"),
            (json!({"reason": "x"}), "no `score`"),
        ] {
            let refused = normalized(&returned, 0.5).unwrap_err();
            assert!(refused.contains(error), "{returned}: {refused}");
        }
    }

    #[test]
    fn reason_and_feedback_replace_each_other() {
        let of = |returned| normalized(&returned, 0.5).unwrap();
        let one = of(json!({"score": 1, "reason": "a"}));
        assert_eq!((one.reason.as_deref(), one.feedback.as_deref()), (Some("a"), Some("a")));
        let other = of(json!({"score": 1, "feedback": "b"}));
        assert_eq!((other.reason.as_deref(), other.feedback.as_deref()), (Some("b"), Some("b")));
        let all = of(
            json!({"score": 0, "reason": "a", "feedback": "b", "targets": {"tone": "kinder", "x": 1}, "metrics": {"n": 3}}),
        );
        assert_eq!((all.reason.as_deref(), all.feedback.as_deref()), (Some("a"), Some("b")));
        assert_eq!(all.targets.into_iter().collect::<Vec<_>>(), [("tone".into(), "kinder".into())]);
        assert_eq!(all.metrics["n"], 3);
        assert!(of(json!({"skip": true})).skip);
    }
}
