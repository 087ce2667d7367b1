//! The built-in evaluators that call no model, in one table.

use serde_json::{Map, Value};
use wire::{FieldError, nearest};

use super::combine::{Combined, Rule};
use super::config::Config;
use super::json;
use super::measures::{Limit, Measured, Numeric, ToolCalls};
use super::overlap::{self, Overlap, SetF1};
use super::subject::Subject;
use super::text::{Contains, Exact, Length, Pattern, StartsWith, Wanted};
use super::verdict::Verdict;

/// Judges the result of a case. Pure.
pub(super) trait Judge: Send + Sync {
    /// `threshold`: if the request has one.
    ///
    /// # Errors
    /// Why the case cannot be judged.
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String>;
}

/// A built-in evaluator.
pub struct BuiltinType {
    /// What stands after `builtin:`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The fields of `config`.
    pub config: &'static str,
    read: fn(&mut Config<'_, '_>, u32) -> Option<Box<dyn Judge>>,
}

const MEASURE: &str = "`expected` (the case's), `case_sensitive` (false)";

/// All of them, in the order of the documentation.
pub const BUILTINS: &[BuiltinType] = &[
    BuiltinType {
        name: "exact_match",
        summary: "The text is the expected one; an expected output that is not a text is compared as JSON.",
        config: "`expected` (the case's), `case_sensitive` (true), `whitespace` (false: runs of blanks are one blank)",
        read: |config, _| Exact::read(config),
    },
    BuiltinType {
        name: "contains",
        summary: "The text contains each of these texts; the score is the share of them.",
        config: "`values` (a text or a list; the expected output), `case_sensitive` (true), `whitespace` (false)",
        read: |config, _| Contains::read(config, Wanted::All),
    },
    BuiltinType {
        name: "contains_all",
        summary: "As `contains`.",
        config: "as `contains`",
        read: |config, _| Contains::read(config, Wanted::All),
    },
    BuiltinType {
        name: "contains_any",
        summary: "The text contains at least one of these texts.",
        config: "as `contains`",
        read: |config, _| Contains::read(config, Wanted::Any),
    },
    BuiltinType {
        name: "not_contains",
        summary: "The text contains none of these texts.",
        config: "`values` (required), `case_sensitive` (true), `whitespace` (false)",
        read: |config, _| Contains::read(config, Wanted::No),
    },
    BuiltinType {
        name: "starts_with",
        summary: "The text starts with one of these texts.",
        config: "as `contains`",
        read: |config, _| StartsWith::read(config),
    },
    BuiltinType {
        name: "regex",
        summary: "The text matches a regular expression.",
        config: "`pattern` (required), `whole` (false: anywhere), `case_sensitive` (true)",
        read: |config, _| Pattern::read(config),
    },
    BuiltinType {
        name: "numeric",
        summary: "The last number of the text is the expected one.",
        config: "`expected` (the case's), `tolerance` (1e-9), `relative` (0, a part of the expected number), `which` (`last` or `first`)",
        read: |config, _| Numeric::read(config),
    },
    BuiltinType {
        name: "json_valid",
        summary: "The output is JSON.",
        config: "none",
        read: |config, _| json::Valid::read(config),
    },
    BuiltinType {
        name: "json_schema",
        summary: "The output matches a JSON Schema.",
        config: "`schema` (required)",
        read: |config, _| json::Fits::read(config),
    },
    BuiltinType {
        name: "json_path",
        summary: "The output has the expected value at a JSONPath, or any value if none is expected.",
        config: "`path` (required), `expected` (what the case's expected output has there)",
        read: |config, _| json::AtPath::read(config),
    },
    BuiltinType {
        name: "json_equal",
        summary: "The output is the expected JSON; the score is the share of equal leaves.",
        config: "`expected` (the case's), `allow_extra` (false)",
        read: |config, _| json::Equal::read(config),
    },
    BuiltinType {
        name: "set_f1",
        summary: "F1 of the entries of two lists, in any order; a text has an entry in each line or between commas.",
        config: "none",
        read: |config, _| SetF1::read(config),
    },
    BuiltinType {
        name: "token_f1",
        summary: "F1 of the words.",
        config: MEASURE,
        read: |config, _| Overlap::read(config, overlap::token_f1),
    },
    BuiltinType {
        name: "levenshtein",
        summary: "One less the edit distance, in parts of the longer text; of the first 4,000 characters.",
        config: MEASURE,
        read: |config, _| Overlap::read(config, overlap::levenshtein),
    },
    BuiltinType {
        name: "bleu",
        summary: "BLEU-4 of one text, smoothed; of the first 2,000 words.",
        config: MEASURE,
        read: |config, _| Overlap::read(config, overlap::bleu),
    },
    BuiltinType {
        name: "rouge_l",
        summary: "F1 of the longest common subsequence of the first 2,000 words.",
        config: MEASURE,
        read: |config, _| Overlap::read(config, overlap::rouge_l),
    },
    BuiltinType {
        name: "chrf",
        summary: "F2 of the character n-grams (chrF, n = 6) of the first 4,000 characters.",
        config: MEASURE,
        read: |config, _| Overlap::read(config, overlap::chrf),
    },
    BuiltinType {
        name: "length",
        summary: "The text is neither too short nor too long; outside, the score is the ratio to the limit.",
        config: "`min`, `max`, `unit` (`characters`, `words` or `lines`)",
        read: |config, _| Length::read(config),
    },
    BuiltinType {
        name: "latency",
        summary: "The case was fast enough; beyond the limit, the score is the ratio to it.",
        config: "`max_ms` (required)",
        read: |config, _| Limit::read(config, Measured::Time),
    },
    BuiltinType {
        name: "cost",
        summary: "The case was cheap enough; beyond the limit, the score is the ratio to it.",
        config: "`max_usd` (required)",
        read: |config, _| Limit::read(config, Measured::Money),
    },
    BuiltinType {
        name: "tool_calls",
        summary: "Agents have called these tools; the score is the F1 of the calls.",
        config: "`tools` (the expected output, a list of names), `in_order` (false)",
        read: |config, _| ToolCalls::read(config),
    },
    BuiltinType {
        name: "all",
        summary: "The lowest score of several evaluators; passed if each has passed.",
        config: "`evaluators`: a list of `{entrypoint, config?}`",
        read: |config, depth| Combined::read(config, Rule::All, depth),
    },
    BuiltinType {
        name: "any",
        summary: "The highest score of several evaluators; passed if one has passed.",
        config: "as `all`",
        read: |config, depth| Combined::read(config, Rule::Any, depth),
    },
    BuiltinType {
        name: "weighted",
        summary: "The mean score of several evaluators.",
        config: "`evaluators`: a list of `{entrypoint, config?, weight?}`",
        read: |config, depth| Combined::read(config, Rule::Weighted, depth),
    },
];

/// What stands before the name of a built-in evaluator.
const PREFIX: &str = "builtin:";

/// Reads a built-in evaluator. `at`: where its entrypoint and its config stand.
pub(super) fn read(
    entrypoint: &str,
    config: Option<&Value>,
    at: (String, String),
    problems: &mut Vec<FieldError>,
    depth: u32,
) -> Option<Box<dyn Judge>> {
    let name = entrypoint.strip_prefix(PREFIX).unwrap_or(entrypoint);
    let Some(found) = BUILTINS.iter().find(|known| known.name == name && entrypoint.starts_with(PREFIX))
    else {
        problems.push(unknown(entrypoint, name, at.0));
        return None;
    };
    let none = Value::Object(Map::new());
    let before = problems.len();
    let mut config = Config::of(at.1, config.unwrap_or(&none), problems)?;
    let judge = (found.read)(&mut config, depth);
    config.finish();
    judge.filter(|_| problems.len() == before)
}

fn unknown(entrypoint: &str, name: &str, at: String) -> FieldError {
    let known = || BUILTINS.iter().map(|known| known.name);
    let message = format!(
        "'{entrypoint}' is not known; the built-in ones are {}",
        known().collect::<Vec<_>>().join(", ")
    );
    let problem = FieldError::new(at, "evaluator_not_found", message);
    match nearest(name, known()) {
        Some(near) => problem.suggest(format!("did you mean '{PREFIX}{near}'?")),
        None => problem,
    }
}
