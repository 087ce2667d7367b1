//! `reply`: writes to the turn's message.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use super::{Call, Node, template_field};
use crate::fields::Fields;
use crate::template::{as_text, fill};
use crate::{NodeError, Problems};

/// Longest pause between two pieces, milliseconds.
const LONGEST_PAUSE: f64 = 60_000.0;

struct Reply {
    text: Value,
    words: bool,
    pause: Duration,
}

/// Fields of the format that this version does not execute.
const LATER: [&str; 3] = ["new_message", "annotations", "widget"];

pub(super) fn schema() -> Value {
    json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string", "description": "What to say; a template."},
        "pieces": {"enum": ["words", "whole"], "default": "whole", "description": "How to cut it for streaming."},
        "pause_ms": {"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE, "default": 0,
                     "description": "Pause between two pieces, milliseconds."}}})
}

pub(super) fn build(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Box<dyn Node>> {
    let text = template_field(fields, "text", problems);
    let pieces = fields.word("pieces", &["words", "whole"], problems);
    let pause = fields.number("pause_ms", 0.0..=LONGEST_PAUSE, problems).unwrap_or(0.0);
    let pause = Duration::from_secs_f64(pause / 1000.0);
    fields.refuse_later(&LATER, problems);
    Some(Box::new(Reply { text: text?, words: pieces == Some("words"), pause }))
}

#[async_trait]
impl Node for Reply {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.text, scope).map(|text| Value::String(as_text(&text)))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, NodeError> {
        let text = as_text(&input);
        if self.words {
            for (index, word) in text.split_inclusive(char::is_whitespace).enumerate() {
                if index > 0 && !self.pause.is_zero() {
                    call.clock.sleep(self.pause).await;
                }
                call.write(word).await;
            }
        } else {
            call.write(&text).await;
        }
        Ok(json!({"text": text}))
    }

    fn streams(&self) -> bool {
        true
    }

    fn written(&self, result: &Value) -> Option<String> {
        result.get("text").and_then(Value::as_str).map(str::to_owned)
    }
}
