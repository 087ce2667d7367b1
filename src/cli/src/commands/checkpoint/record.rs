//! Reads checkpoint records. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wire::CheckpointRecord;

/// The prompt texts in a runnable config, by name.
pub(in crate::commands) fn prompt_texts(config: &Map<String, Value>) -> BTreeMap<&str, &str> {
    let prompts = config.get("prompts").and_then(Value::as_object).into_iter().flatten();
    prompts
        .filter_map(|(name, prompt)| Some((name.as_str(), prompt.get("text").unwrap_or(prompt).as_str()?)))
        .collect()
}

/// The prompts in a runnable config for people, by name: the text, and a JSON line per demo.
pub(super) fn written_prompts(config: &Map<String, Value>) -> BTreeMap<&str, String> {
    let demos = |name: &str| config.get("prompts")?.get(name)?.get("demos")?.as_array();
    let written = |(name, text): (_, &str)| {
        let lines = demos(name).into_iter().flatten().map(Value::to_string);
        (name, std::iter::once(text.to_owned()).chain(lines).collect::<Vec<_>>().join("\n"))
    };
    prompt_texts(config).into_iter().map(written).collect()
}

/// The score of its prompts on the scoring cases.
pub(in crate::commands) fn score_of(checkpoint: &CheckpointRecord) -> Option<f64> {
    checkpoint.metadata.get("score").and_then(Value::as_f64)
}

/// The epoch in which it was written.
pub(in crate::commands) fn epoch_of(checkpoint: &CheckpointRecord) -> Option<u64> {
    checkpoint.metadata.get("epoch").and_then(Value::as_u64)
}

/// A test checkpoint with these prompts.
#[cfg(test)]
pub(super) fn example(number: i64, prompts: Value) -> CheckpointRecord {
    CheckpointRecord {
        id: format!("id-{number}"),
        workflow_id: "w".into(),
        config_version: number,
        runnable_config: Map::from_iter([("prompts".to_owned(), prompts)]),
        metrics: Map::from_iter([("exact".to_owned(), Value::from(0.7))]),
        metadata: Map::from_iter([
            ("epoch".to_owned(), Value::from(2)),
            ("score".to_owned(), Value::from(0.7)),
            ("run_id".to_owned(), Value::from("r1")),
        ]),
        artifact_url: None,
        is_best: true,
        created_at: "2026-11-26T09:00:00.000000Z".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prompts_are_objects_or_texts() {
        let prompts =
            json!({"a": {"text": "A.", "requires_grad": true}, "b": "B.", "c": {"text": 1}, "d": null});
        let checkpoint = example(1, prompts);
        let texts = prompt_texts(&checkpoint.runnable_config);
        assert_eq!(texts.into_iter().collect::<Vec<_>>(), [("a", "A."), ("b", "B.")]);
        assert!(prompt_texts(&Map::new()).is_empty());
    }

    #[test]
    fn demos_are_lines_below_the_text() {
        let demos = json!([{"inputs": {"user": "u"}, "output": "o"}, {"inputs": {}, "output": 1}]);
        let checkpoint = example(1, json!({"a": {"text": "A.", "demos": demos}, "b": "B."}));
        let written = written_prompts(&checkpoint.runnable_config);
        let first = r#"{"inputs":{"user":"u"},"output":"o"}"#;
        assert_eq!(written["a"], format!("A.\n{first}\n{}", r#"{"inputs":{},"output":1}"#));
        assert_eq!(written["b"], "B.");
    }

    #[test]
    fn score_and_epoch_are_in_the_metadata() {
        let mut checkpoint = example(1, json!({}));
        assert_eq!((score_of(&checkpoint), epoch_of(&checkpoint)), (Some(0.7), Some(2)));
        checkpoint.metadata.clear();
        assert_eq!((score_of(&checkpoint), epoch_of(&checkpoint)), (None, None));
    }
}
