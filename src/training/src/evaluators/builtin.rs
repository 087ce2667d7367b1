//! The table of built-in evaluators.

use engine::Reference;
use serde_json::{Map, Value};
use wire::{FieldError, nearest};

use super::asking::{
    Checklist, Cosine, FunctionJudge, FunctionName, Pairwise, PostJudge, Rubric, WorkflowJudge,
};
use super::combine::{Combined, Rule};
use super::config::Config;
use super::json;
use super::judge::{Asking, Judge, Judging};
use super::measures::{Limit, LimitedQuantity, Numeric, ToolCalls};
use super::overlap::{self, Overlap, SetF1};
use super::text::{Contains, ContainsMode, Exact, Length, Pattern, StartsWith};
use super::versions;

/// A built-in evaluator.
pub struct BuiltinType {
    /// The name after `builtin:`.
    pub name: &'static str,
    /// The summary, one line.
    pub summary: &'static str,
    /// The fields of `config`.
    pub config: &'static str,
    read: ConfigReader,
}

impl BuiltinType {
    /// Whether it calls a model itself.
    #[must_use]
    pub fn calls_model(&self) -> bool {
        matches!(self.read, ConfigReader::Asking(_))
    }
}

/// Reads an evaluator's `config`.
#[derive(Clone, Copy)]
enum ConfigReader {
    Pure(fn(&mut Config<'_, '_>) -> Option<Box<dyn Judge>>),
    Asking(fn(&mut Config<'_, '_>) -> Option<Box<dyn Asking>>),
    Combined(Rule),
}

const CHECKLIST: &str =
    "`points`: 1 to 20 texts; `model` (`models.judge`), `base_url`, `credential`, `temperature`";
const MEASURE: &str = "`expected` (the case's), `case_sensitive` (false)";

/// All built-in evaluators, in documentation order.
pub const BUILTINS: &[BuiltinType] = &[
    BuiltinType {
        name: "exact_match",
        summary: "The text is the expected one; an expected output that is not a text is compared as JSON.",
        config: "`expected` (the case's), `case_sensitive` (true), `whitespace` (false: runs of blanks are one blank)",
        read: ConfigReader::Pure(Exact::read),
    },
    BuiltinType {
        name: "contains",
        summary: "The text contains each of these texts; the score is the share of them.",
        config: "`values` (a text or a list; the expected output), `case_sensitive` (true), `whitespace` (false)",
        read: ConfigReader::Pure(|config| Contains::read(config, ContainsMode::All)),
    },
    BuiltinType {
        name: "contains_all",
        summary: "As `contains`.",
        config: "as `contains`",
        read: ConfigReader::Pure(|config| Contains::read(config, ContainsMode::All)),
    },
    BuiltinType {
        name: "contains_any",
        summary: "The text contains at least one of these texts.",
        config: "as `contains`",
        read: ConfigReader::Pure(|config| Contains::read(config, ContainsMode::Any)),
    },
    BuiltinType {
        name: "not_contains",
        summary: "The text contains none of these texts.",
        config: "`values` (required), `case_sensitive` (true), `whitespace` (false)",
        read: ConfigReader::Pure(|config| Contains::read(config, ContainsMode::No)),
    },
    BuiltinType {
        name: "starts_with",
        summary: "The text starts with one of these texts.",
        config: "as `contains`",
        read: ConfigReader::Pure(StartsWith::read),
    },
    BuiltinType {
        name: "regex",
        summary: "The text matches a regular expression.",
        config: "`pattern` (required), `whole` (false: anywhere), `case_sensitive` (true)",
        read: ConfigReader::Pure(Pattern::read),
    },
    BuiltinType {
        name: "numeric",
        summary: "The last number of the text is the expected one.",
        config: "`expected` (the case's), `tolerance` (1e-9), `relative` (0, a part of the expected number), `which` (`last` or `first`)",
        read: ConfigReader::Pure(Numeric::read),
    },
    BuiltinType {
        name: "json_valid",
        summary: "The output is JSON.",
        config: "none",
        read: ConfigReader::Pure(json::Valid::read),
    },
    BuiltinType {
        name: "json_schema",
        summary: "The output matches a JSON Schema.",
        config: "`schema` (required)",
        read: ConfigReader::Pure(json::Fits::read),
    },
    BuiltinType {
        name: "json_path",
        summary: "The output has the expected value at a JSONPath, or any value if none is expected.",
        config: "`path` (required), `expected` (what the case's expected output has there)",
        read: ConfigReader::Pure(json::AtPath::read),
    },
    BuiltinType {
        name: "json_equal",
        summary: "The output is the expected JSON; the score is the share of equal leaves.",
        config: "`expected` (the case's), `allow_extra` (false)",
        read: ConfigReader::Pure(json::Equal::read),
    },
    BuiltinType {
        name: "set_f1",
        summary: "F1 of the entries of two lists, in any order; a text has an entry in each line or between commas.",
        config: "none",
        read: ConfigReader::Pure(SetF1::read),
    },
    BuiltinType {
        name: "token_f1",
        summary: "F1 of the words.",
        config: MEASURE,
        read: ConfigReader::Pure(|config| Overlap::read(config, overlap::token_f1)),
    },
    BuiltinType {
        name: "levenshtein",
        summary: "One minus the edit distance relative to the longer text; of the first 4,000 characters.",
        config: MEASURE,
        read: ConfigReader::Pure(|config| Overlap::read(config, overlap::levenshtein)),
    },
    BuiltinType {
        name: "bleu",
        summary: "BLEU-4 of one text, smoothed; of the first 2,000 words.",
        config: MEASURE,
        read: ConfigReader::Pure(|config| Overlap::read(config, overlap::bleu)),
    },
    BuiltinType {
        name: "rouge_l",
        summary: "F1 of the longest common subsequence of the first 2,000 words.",
        config: MEASURE,
        read: ConfigReader::Pure(|config| Overlap::read(config, overlap::rouge_l)),
    },
    BuiltinType {
        name: "chrf",
        summary: "F2 of the character n-grams (chrF, n = 6) of the first 4,000 characters.",
        config: MEASURE,
        read: ConfigReader::Pure(|config| Overlap::read(config, overlap::chrf)),
    },
    BuiltinType {
        name: "length",
        summary: "The text is neither too short nor too long; outside, the score is the ratio to the limit.",
        config: "`min`, `max`, `unit` (`characters`, `words` or `lines`)",
        read: ConfigReader::Pure(Length::read),
    },
    BuiltinType {
        name: "latency",
        summary: "The case was fast enough; beyond the limit, the score is the ratio to it.",
        config: "`max_ms` (required)",
        read: ConfigReader::Pure(|config| Limit::read(config, LimitedQuantity::Time)),
    },
    BuiltinType {
        name: "cost",
        summary: "The case was cheap enough; beyond the limit, the score is the ratio to it.",
        config: "`max_usd` (required)",
        read: ConfigReader::Pure(|config| Limit::read(config, LimitedQuantity::Money)),
    },
    BuiltinType {
        name: "tool_calls",
        summary: "Agents have called these tools; the score is the F1 of the calls.",
        config: "`tools` (the expected output, a list of names), `in_order` (false)",
        read: ConfigReader::Pure(ToolCalls::read),
    },
    BuiltinType {
        name: "embedding_cosine",
        summary: "Cosine similarity of the text and the expected text, by their vectors.",
        config: "`model` (required, one that computes embeddings), `base_url`, `credential`, `expected` (the case's)",
        read: ConfigReader::Asking(Cosine::read),
    },
    BuiltinType {
        name: "llm_judge",
        summary: "A model scores the text by a rubric, by the expected output, or by both: the median of the samples.",
        config: "`rubric`, `samples` (1 to 9; 1), and the model as in `checklist`",
        read: ConfigReader::Asking(Rubric::read),
    },
    BuiltinType {
        name: "checklist",
        summary: "A model checks the text point by point; the score is the share of the points that are met.",
        config: CHECKLIST,
        read: ConfigReader::Asking(Checklist::read),
    },
    BuiltinType {
        name: "pairwise",
        summary: "A model compares the text with another one, in both orders: 1 for better, 0.5 for as good.",
        config: "`reference` (the case's expected output), `criteria`, and the model as in `checklist`",
        read: ConfigReader::Asking(Pairwise::read),
    },
    BuiltinType {
        name: "all",
        summary: "The lowest score of several evaluators; passed if each has passed.",
        config: "`evaluators`: a list of `{entrypoint, config?}`",
        read: ConfigReader::Combined(Rule::All),
    },
    BuiltinType {
        name: "any",
        summary: "The highest score of several evaluators; passed if one has passed.",
        config: "as `all`",
        read: ConfigReader::Combined(Rule::Any),
    },
    BuiltinType {
        name: "weighted",
        summary: "The mean score of several evaluators.",
        config: "`evaluators`: a list of `{entrypoint, config?, weight?}`",
        read: ConfigReader::Combined(Rule::Weighted),
    },
];

/// Entrypoint prefixes: for a built-in evaluator, a workflow handle and a credential name.
const PREFIX: &str = "builtin:";
pub(super) const WORKFLOW: &str = "workflow:";
const HTTP: &str = "http:";

/// Reads an evaluator by its entrypoint. `entrypoint_at` and `config_at`: pointers to its entrypoint and its
/// config.
pub(super) fn read(
    entrypoint: &str,
    config: Option<&Value>,
    entrypoint_at: String,
    config_at: String,
    problems: &mut Vec<FieldError>,
    depth: u32,
) -> Option<Judging> {
    let none = Value::Object(Map::new());
    let config = config.unwrap_or(&none);
    let named = |prefix: &str| entrypoint.strip_prefix(prefix).filter(|name| !name.is_empty());
    if let Some((workflow, version)) = versions::named(entrypoint) {
        let number = version.and_then(versions::number);
        if version.is_some() && number.is_none() {
            let message = "the version after '@' must be a number from 1";
            let problem = FieldError::new(entrypoint_at, "range", message);
            problems.push(problem.suggest(format!("{WORKFLOW}{workflow}@1")));
            return None;
        }
        let (workflow, version) = (workflow.to_owned(), number.map(u64::from));
        let reference = Reference { pointer: entrypoint_at, workflow, version };
        return Some(Judging::Asking(Box::new(WorkflowJudge { reference, config: config.clone() })));
    }
    if let Some(credential) = named(HTTP) {
        let judge = PostJudge::read(credential, config, entrypoint_at, config_at, problems)?;
        return Some(Judging::Asking(Box::new(judge)));
    }
    if !entrypoint.starts_with(PREFIX)
        && let Some(name) = FunctionName::read(entrypoint, &entrypoint_at)
    {
        // Its members are only for the function.
        Config::from_value(config_at, config, problems)?;
        return Some(Judging::Asking(Box::new(FunctionJudge { name, config: config.clone() })));
    }
    let name = entrypoint.strip_prefix(PREFIX).unwrap_or(entrypoint);
    let Some(found) = BUILTINS.iter().find(|known| known.name == name && entrypoint.starts_with(PREFIX))
    else {
        problems.push(unknown(entrypoint, name, entrypoint_at));
        return None;
    };
    let before = problems.len();
    let mut config = Config::from_value(config_at, config, problems)?;
    let judging = match found.read {
        ConfigReader::Pure(read) => read(&mut config).map(Judging::Pure),
        ConfigReader::Asking(read) => read(&mut config).map(Judging::Asking),
        ConfigReader::Combined(rule) => {
            Combined::read(&mut config, rule, depth).map(|combined| Judging::Combined(Box::new(combined)))
        }
    };
    config.finish();
    judging.filter(|_| problems.len() == before)
}

fn unknown(entrypoint: &str, name: &str, at: String) -> FieldError {
    let message = format!("'{entrypoint}' is not known; {}", known_evaluators(&[]));
    let problem = FieldError::new(at, "evaluator_not_found", message);
    match nearest(name, BUILTINS.iter().map(|known| known.name)) {
        Some(near) => problem.suggest(format!("did you mean '{PREFIX}{near}'?")),
        None => problem,
    }
}

/// Lists the valid entrypoints. `functions`: entrypoints of the graph's functions, if known.
pub(super) fn known_evaluators(functions: &[String]) -> String {
    let builtins: Vec<&str> = BUILTINS.iter().map(|known| known.name).collect();
    let functions = if functions.is_empty() { String::new() } else { format!(" ({})", functions.join(", ")) };
    format!(
        "it may be {PREFIX} and one of {}; <module>:<function> of the graph{functions}; {WORKFLOW}<handle>; or {HTTP}<credential>",
        builtins.join(", ")
    )
}
