//! Validates a version's `runnable_config`. Pure.
//!
//! The config is an open object: unknown members are plain data that templates read as `config.*`. The service itself
//! reads the known members, so a wrong type is refused on save, rather than when a visitor chats with the version.

use serde_json::{Map, Value, json};
use wire::{FieldError, MOST_PROBLEMS, escape, nearest, shortened};

const AT: &str = "/runnable_config";
/// Maximum demos per prompt, and their maximum total bytes as JSON.
const MOST_DEMOS: usize = 16;
const LARGEST_DEMOS: usize = 64 << 10;

/// The required type of a member.
#[derive(Clone, Copy)]
enum MemberType {
    Text,
    Flag,
    Object,
    Array,
    /// Every entry has the other kind.
    Entries(&'static MemberType),
    TextOrTexts,
    /// An integer within bounds.
    Whole(u64, u64),
    /// Exactly this word.
    Word(&'static str),
    /// `[{inputs, output}]`.
    Demos,
}

const TEXTS: MemberType = MemberType::Entries(&MemberType::Text);

const MEMBERS: [(&str, MemberType); 7] = [
    ("prompts", MemberType::Object),
    ("configurable", MemberType::Object),
    ("tags", TEXTS),
    ("metadata", MemberType::Object),
    ("recursion_limit", MemberType::Whole(1, 250)),
    ("max_concurrency", MemberType::Whole(1, 32)),
    ("run_name", MemberType::Text),
];

/// Prompt members; only `text` is required.
const PROMPT: [(&str, MemberType); 11] = [
    ("text", MemberType::Text),
    ("type", MemberType::Word("TextTensor")),
    ("requires_grad", MemberType::Flag),
    ("metadata", MemberType::Object),
    ("model_kwargs", MemberType::Object),
    ("role", MemberType::Text),
    ("constraints", MemberType::TextOrTexts),
    ("max_chars", MemberType::Whole(1, 10_000_000)),
    ("frozen_spans", MemberType::Array),
    ("demos", MemberType::Demos),
    ("demos_trainable", MemberType::Flag),
];

/// Returns every problem; pointers begin with `/runnable_config`.
#[must_use]
pub fn check(config: &Map<String, Value>) -> Vec<FieldError> {
    let mut problems = Vec::new();
    members(AT, config, &MEMBERS, &mut problems);
    for (at, prompt) in prompts(config) {
        if problems.len() > MOST_PROBLEMS {
            break;
        }
        match prompt {
            Value::Object(prompt) => {
                if !prompt.contains_key("text") {
                    problems.push(FieldError::new(format!("{at}/text"), "required", "is required"));
                }
                members(&at, prompt, &PROMPT, &mut problems);
            }
            Value::String(text) => {
                let problem = FieldError::new(at, "type", "must be an object with the member `text`");
                problems.push(problem.suggest(json!({"text": shortened(text)}).to_string()));
            }
            _ => problems.push(FieldError::new(at, "type", "must be an object with the member `text`")),
        }
    }
    problems
}

/// Returns warnings for names that are plain data but look like misspelt known members.
#[must_use]
pub fn warnings(config: &Map<String, Value>) -> Vec<FieldError> {
    let mut warnings = Vec::new();
    lookalikes(AT, config, &MEMBERS, &mut warnings);
    for (at, prompt) in prompts(config) {
        if let Value::Object(prompt) = prompt {
            lookalikes(&at, prompt, &PROMPT, &mut warnings);
        }
    }
    warnings
}

fn prompts(config: &Map<String, Value>) -> impl Iterator<Item = (String, &Value)> {
    let prompts = config.get("prompts").and_then(Value::as_object).into_iter().flatten();
    prompts.map(|(name, prompt)| (format!("{AT}/prompts/{}", escape(name)), prompt))
}

fn members(
    at: &str,
    object: &Map<String, Value>,
    known: &'static [(&'static str, MemberType)],
    problems: &mut Vec<FieldError>,
) {
    for (name, kind) in known {
        if let Some(value) = object.get(*name) {
            kind.check(&format!("{at}/{name}"), value, problems);
        }
    }
}

fn lookalikes(
    at: &str,
    object: &Map<String, Value>,
    known: &[(&'static str, MemberType)],
    warnings: &mut Vec<FieldError>,
) {
    let names = || known.iter().map(|(name, _)| *name);
    for name in object.keys().filter(|name| names().all(|known| known != name.as_str())) {
        // A member that exists under its right name was not misspelt.
        let missing = names().filter(|known| !object.contains_key(*known));
        if warnings.len() >= MOST_PROBLEMS {
            break;
        }
        if let Some(near) = nearest(name, missing) {
            let warning = FieldError::new(
                format!("{at}/{}", escape(name)),
                "lookalike",
                format!("'{}' is treated as plain data", shortened(name)),
            );
            warnings.push(warning.suggest(format!("did you mean '{near}'?")));
        }
    }
}

/// Checks a prompt's demos.
fn demos(at: &str, demos: &Value, problems: &mut Vec<FieldError>) {
    let entries = demos.as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.len() > MOST_DEMOS {
        let message = format!("has {} demos; a prompt may have {MOST_DEMOS}", entries.len());
        problems.push(FieldError::new(at, "too_many", message));
        return;
    }
    let size = demos.to_string().len();
    if size > LARGEST_DEMOS {
        let message = format!("has {size} bytes as JSON; the demos of a prompt may have 64 KiB");
        problems.push(FieldError::new(at, "too_large", message));
    }
    for (index, demo) in entries.iter().enumerate() {
        let at = format!("{at}/{index}");
        let Value::Object(demo) = demo else {
            problems.push(FieldError::new(at, "type", "must be an object"));
            continue;
        };
        for name in ["inputs", "output"] {
            if !demo.contains_key(name) {
                let problem = FieldError::new(format!("{at}/{name}"), "required", "is required");
                problems
                    .push(problem.suggest(r#"{"inputs": {"user": "Where is it?"}, "output": "shipping"}"#));
            }
        }
        members(&at, demo, &[("inputs", MemberType::Object)], problems);
    }
}

impl MemberType {
    fn check(self, at: &str, value: &Value, problems: &mut Vec<FieldError>) {
        if !self.fits(value) {
            let code = match self {
                Self::Whole(..) if value.is_number() => "range",
                Self::Word(_) => "choice",
                _ => "type",
            };
            problems.push(FieldError::new(at, code, format!("must be {}", self.name())));
            return;
        }
        let entry = match self {
            Self::Entries(entry) => *entry,
            Self::TextOrTexts => Self::Text,
            Self::Demos => return demos(at, value, problems),
            _ => return,
        };
        for (index, value) in value.as_array().into_iter().flatten().enumerate() {
            if problems.len() > MOST_PROBLEMS {
                break;
            }
            entry.check(&format!("{at}/{index}"), value, problems);
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array | Self::Entries(_) | Self::Demos => value.is_array(),
            Self::TextOrTexts => value.is_string() || value.is_array(),
            Self::Whole(least, most) => value.as_u64().is_some_and(|number| (least..=most).contains(&number)),
            Self::Word(word) => value.as_str() == Some(word),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Array => "an array".to_owned(),
            Self::Entries(Self::Text) => "an array of strings".to_owned(),
            Self::Entries(_) | Self::Demos => "an array of objects".to_owned(),
            Self::TextOrTexts => "a string or an array of strings".to_owned(),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Word(word) => format!("\"{word}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(problems: Vec<FieldError>) -> Vec<String> {
        let line = |problem: FieldError| {
            let suggestion = problem.suggestion.map(|text| format!(" ({text})")).unwrap_or_default();
            format!("{} {}: {}{suggestion}", problem.pointer, problem.code, problem.message)
        };
        problems.into_iter().map(line).collect()
    }

    fn checked(config: &Value) -> Vec<String> {
        lines(check(config.as_object().unwrap()))
    }

    #[test]
    fn documented_members_are_accepted() {
        let config = json!({
            "prompts": {
                "short": {"text": ""},
                "a/b": {"text": "You sort {{ inputs.message }}.", "type": "TextTensor", "requires_grad": true,
                        "metadata": {}, "model_kwargs": {"temperature": 0}, "role": "system",
                        "constraints": ["be brief"], "max_chars": 400, "frozen_spans": ["You"],
                        "demos": [{"inputs": {}, "output": "x"}], "demos_trainable": false,
                        "mine": [null]},
                "one": {"text": "x", "constraints": "be brief"}
            },
            "configurable": {"thread_id": "t"}, "tags": ["a"], "metadata": {"b": null},
            "recursion_limit": 250, "max_concurrency": 32, "run_name": "n",
            "models": {"fast": "practice/echo"}, "anything": null
        });
        assert_eq!(checked(&config), [""; 0]);
        assert_eq!(checked(&json!({})), [""; 0]);
        assert_eq!(checked(&json!({"prompts": {}, "recursion_limit": 1})), [""; 0]);
    }

    #[test]
    fn every_config_problem_has_a_pointer() {
        let config = json!({
            "prompts": {
                "a/b": "You are a desk.",
                "c": {"txet": "x", "requires_grad": "yes", "type": "Tensor", "max_chars": 0},
                "d": {"text": null, "metadata": [], "model_kwargs": "x", "role": 1, "constraints": [1, "x"],
                      "demos": [{"inputs": "x"}, "x"], "demos_trainable": 1, "frozen_spans": "x"},
                "e": 7
            },
            "configurable": [], "tags": ["a", 1], "metadata": "x", "recursion_limit": 251,
            "max_concurrency": "4", "run_name": null
        });
        assert_eq!(
            checked(&config),
            [
                "/runnable_config/configurable type: must be an object",
                "/runnable_config/tags/1 type: must be a string",
                "/runnable_config/metadata type: must be an object",
                "/runnable_config/recursion_limit range: must be a whole number from 1 to 250",
                "/runnable_config/max_concurrency type: must be a whole number from 1 to 32",
                "/runnable_config/run_name type: must be a string",
                "/runnable_config/prompts/a~1b type: must be an object with the member `text` ({\"text\":\"You are a desk.\"})",
                "/runnable_config/prompts/c/text required: is required",
                "/runnable_config/prompts/c/type choice: must be \"TextTensor\"",
                "/runnable_config/prompts/c/requires_grad type: must be true or false",
                "/runnable_config/prompts/c/max_chars range: must be a whole number from 1 to 10000000",
                "/runnable_config/prompts/d/text type: must be a string",
                "/runnable_config/prompts/d/metadata type: must be an object",
                "/runnable_config/prompts/d/model_kwargs type: must be an object",
                "/runnable_config/prompts/d/role type: must be a string",
                "/runnable_config/prompts/d/constraints/0 type: must be a string",
                "/runnable_config/prompts/d/frozen_spans type: must be an array",
                "/runnable_config/prompts/d/demos/0/output required: is required ({\"inputs\": {\"user\": \"Where is it?\"}, \"output\": \"shipping\"})",
                "/runnable_config/prompts/d/demos/0/inputs type: must be an object",
                "/runnable_config/prompts/d/demos/1 type: must be an object",
                "/runnable_config/prompts/d/demos_trainable type: must be true or false",
                "/runnable_config/prompts/e type: must be an object with the member `text`",
            ]
        );
        assert_eq!(checked(&json!({"prompts": ["x"]})), ["/runnable_config/prompts type: must be an object"]);
        for limit in [json!(0), json!(-1), json!(1.5)] {
            assert_eq!(checked(&json!({"recursion_limit": limit})).len(), 1);
        }
    }

    #[test]
    fn a_prompt_has_at_most_16_demos_of_64_kib() {
        let of = |demos: Vec<Value>| checked(&json!({"prompts": {"p": {"text": "x", "demos": demos}}}));
        let demo = |output: usize| json!({"inputs": {"user": "u"}, "output": "x".repeat(output)});
        assert_eq!(of(vec![demo(1); 16]), [""; 0]);
        let many = "/runnable_config/prompts/p/demos too_many: has 17 demos; a prompt may have 16";
        assert_eq!(of(vec![demo(1); 17]), [many]);
        let around = json!([demo(0)]).to_string().len();
        assert_eq!(of(vec![demo(LARGEST_DEMOS - around)]), [""; 0]);
        let large = "/runnable_config/prompts/p/demos too_large: has 65537 bytes as JSON; the demos of a prompt may have 64 KiB";
        assert_eq!(of(vec![demo(LARGEST_DEMOS - around + 1)]), [large]);
        assert_eq!(of(vec![json!({"inputs": {}, "output": null, "note": 1})]), [""; 0]);
    }

    #[test]
    fn misspelt_members_have_a_warning() {
        let config = json!({"promts": {}, "recursionLimit": 3, "models": {}, "tag": 1, "tags": [],
                            "prompts": {"a": {"text": "x", "requires_gard": true, "mine": 1}}});
        assert_eq!(
            lines(warnings(config.as_object().unwrap())),
            [
                "/runnable_config/recursionLimit lookalike: 'recursionLimit' is treated as plain data (did you mean 'recursion_limit'?)",
                "/runnable_config/prompts/a/requires_gard lookalike: 'requires_gard' is treated as plain data (did you mean 'requires_grad'?)",
            ]
        );
        let config = json!({"promts": {}});
        assert_eq!(warnings(config.as_object().unwrap()).len(), 1);
        assert_eq!(checked(&json!({"promts": 1})), [""; 0]);
    }
}
