//! `reply`: writes to the turn's message.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::template::{as_text, fill};

/// Longest pause between two pieces, milliseconds.
const LONGEST_PAUSE: f64 = 60_000.0;
/// Fields of the format that this version does not execute.
const LATER: [&str; 2] = ["annotations", "widget"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "reply",
    group: "chat",
    summary: "Writes text to the assistant's message.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{text}`",
    members: &["text"],
    example: || {
        json!({"name": "answer", "type": "reply", "text": "You said: {{ inputs.message }}", "pieces": "words",
               "pause_ms": 30})
    },
    build,
};

struct Reply {
    text: Value,
    words: bool,
    pause: Duration,
    new_message: bool,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string", "description": "The text; a template."},
        "pieces": {"enum": ["words", "whole"], "default": "whole", "description": "How to split the text for streaming."},
        "pause_ms": {"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE, "default": 0,
                     "description": "Pause between two pieces, in milliseconds."},
        "new_message": {"type": "boolean", "default": false,
                        "description": "Start another message instead of continuing the turn's message."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let text = text_field(fields, "text", check);
    let pieces = fields.word("pieces", &["words", "whole"], &mut check.problems);
    let pause = fields.number("pause_ms", 0.0..=LONGEST_PAUSE, &mut check.problems).unwrap_or(0.0);
    let new_message = fields.boolean("new_message", &mut check.problems).unwrap_or(false);
    let pause = Duration::from_secs_f64(pause / 1000.0);
    fields.refuse_later(&LATER, &mut check.problems);
    Some(Box::new(Reply { text: text?, words: pieces == Some("words"), pause, new_message }))
}

#[async_trait]
impl Node for Reply {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.text, scope).map(|text| Value::String(as_text(&text)))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let text = as_text(&input);
        if self.new_message {
            call.new_message().await;
        }
        if self.words {
            for (index, word) in text.split_inclusive(char::is_whitespace).enumerate() {
                if index > 0 && !self.pause.is_zero() {
                    call.clock().sleep(self.pause).await;
                }
                call.say(word).await;
            }
        } else {
            call.say(&text).await;
        }
        Ok(json!({"text": text}))
    }

    fn streams(&self) -> bool {
        true
    }

    async fn say_again(
        &self,
        result: &Value,
        call: &Call<'_>,
        _input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        if self.new_message {
            call.new_message().await;
        }
        call.say(result.get("text").and_then(Value::as_str).unwrap_or_default()).await;
        Ok(())
    }
}
