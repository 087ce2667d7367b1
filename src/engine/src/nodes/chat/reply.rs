//! `reply`: writes to the turn's message.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;
use wire::chat::{Annotation, ContentPart, ItemBody, OutputText};

use super::widget::{self, WidgetContent};
use super::{annotations, content, key};
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::{SentAnnotation, SentItem};
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::nodes::models::asking;
use crate::template::{as_text, fill};

/// Maximum pause between two pieces, in milliseconds.
const LONGEST_PAUSE: f64 = 60_000.0;
const HELP: &str = "`callboard node show reply` lists the members";

pub(crate) const TYPE: NodeType = NodeType {
    name: "reply",
    group: "chat",
    summary: "Writes text to the assistant's message.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{text, key}`; `key` if it is set",
    members: &["text", "key"],
    example: || {
        json!({"name": "answer", "type": "reply", "text": "You said: {{ inputs.message }}", "pieces": "words",
               "pause_ms": 30})
    },
    build,
};

struct Reply {
    /// `None` writes nothing, or removes the message with the key.
    text: Option<Value>,
    words: bool,
    pause: Duration,
    new_message: bool,
    key: Option<Value>,
    annotations: Option<Value>,
    widget: Option<WidgetContent>,
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "text": {"type": ["string", "null"], "description": "The text; a template. Required unless there is a widget; null with a `key` removes the message."},
        "pieces": {"enum": ["words", "whole"], "default": "whole", "description": "How to split the text for streaming."},
        "pause_ms": {"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE, "default": 0,
                     "description": "Pause between two pieces, in milliseconds."},
        "new_message": {"type": "boolean", "default": false,
                        "description": "Start another message instead of continuing the turn's message."},
        "annotations": annotations::schema(),
        "widget": widget::root_schema("it follows the text."),
        "copy_text": widget::copy_text_schema(),
        "key": key::schema_with("Name of the message, unique in its thread; a template. The text is a separate message, sent whole, which a later text with the same key replaces.")}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let key = key::field(fields, check);
    let widget = fields.value("widget");
    let is_text_needed = widget.is_none() && (key.is_none() || fields.given("text").is_none());
    let text = match is_text_needed || fields.value("text").is_some() {
        true => Some(text_field(fields, "text", check)),
        false => None,
    };
    let pieces = fields.word("pieces", &["words", "whole"], &mut check.problems);
    let pause = fields.number("pause_ms", 0.0..=LONGEST_PAUSE, &mut check.problems).unwrap_or(0.0);
    let new_message = fields.boolean("new_message", &mut check.problems).unwrap_or(false);
    for name in ["pieces", "pause_ms", "new_message"] {
        if key.is_some() && fields.value(name).is_some() {
            let problem = FieldError::new(
                fields.at(name),
                "key",
                "cannot be combined with 'key': the text is sent as a whole",
            );
            check.note(problem.suggest("remove it, or the key"));
        }
    }
    let pause = Duration::from_secs_f64(pause / 1000.0);
    let annotations = match fields.value("annotations") {
        Some(list) => {
            let at = fields.at("annotations");
            Some(content::read(list, &at, annotations::problems, HELP, check)?)
        }
        None => None,
    };
    let widget = match widget {
        Some(_) => Some(WidgetContent::read(widget, fields, check)?),
        None => {
            if fields.value("copy_text").is_some() {
                let problem = FieldError::new(fields.at("copy_text"), "widget", "requires 'widget'");
                check.note(problem.suggest("\"widget\": {\"type\": \"Card\", \"children\": []}"));
            }
            None
        }
    };
    let text = match text {
        Some(text) => Some(text?),
        None => None,
    };
    Some(Box::new(Reply {
        text,
        words: pieces == Some("words"),
        pause,
        new_message,
        key,
        annotations,
        widget,
    }))
}

#[async_trait]
impl Node for Reply {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let text = self.text.as_ref().map(|text| fill(text, scope).map(|text| as_text(&text))).transpose()?;
        if let (Some(text), None, None, None) = (&text, &self.key, &self.annotations, &self.widget) {
            return Ok(Value::String(text.clone()));
        }
        let mut input = match &self.widget {
            Some(widget) => widget.filled(scope)?,
            None => Map::new(),
        };
        input.insert("text".to_owned(), json!(text));
        input.insert("key".to_owned(), json!(key::filled(self.key.as_ref(), scope)?));
        if let Some(list) = &self.annotations {
            input.insert("annotations".to_owned(), fill(list, scope)?);
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let parts = Parts::from_input(&input)?;
        let result = match parts.key {
            Some(key) => json!({"text": parts.text, "key": key}),
            None => json!({"text": parts.text}),
        };
        let shows_nothing = parts.widget.is_none() && parts.text.is_some_and(|text| text.trim().is_empty());
        self.write(parts, call, self.words).await?;
        if shows_nothing {
            asking::notify_of_missing_answer(call).await;
        }
        Ok(result)
    }

    fn streams(&self) -> bool {
        true
    }

    async fn say_again(
        &self,
        result: &Value,
        call: &Call<'_>,
        input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        let text = result.get("text").and_then(Value::as_str);
        let mut input = match input {
            Ok(Value::Object(input)) => input.clone(),
            _ => Map::new(),
        };
        // The result has the text and its key; everything else is sent as filled now.
        let key = result.get("key").and_then(Value::as_str);
        input.extend([("text".to_owned(), json!(text)), ("key".to_owned(), json!(key))]);
        let input = Value::Object(input);
        match Parts::from_input(&input) {
            Ok(parts) => self.write(parts, call, false).await,
            Err(_) => self.write(Parts { text, key, ..Parts::default() }, call, false).await,
        }
    }
}

/// The parts of a filled input.
#[derive(Default)]
struct Parts<'a> {
    text: Option<&'a str>,
    key: Option<&'a str>,
    annotations: Vec<SentAnnotation>,
    widget: Option<ItemBody>,
}

impl<'a> Parts<'a> {
    fn from_input(input: &'a Value) -> Result<Self, NodeError> {
        let text = match input {
            Value::String(text) => Some(text.as_str()),
            input => input.get("text").and_then(Value::as_str),
        };
        let list = input.get("annotations").unwrap_or(&Value::Null);
        if !list.is_null() {
            content::refuse(annotations::problems(list, "/annotations"))?;
        }
        let annotations = annotations::from_list(list, text.unwrap_or_default())?;
        let key = input.get("key").and_then(Value::as_str);
        Ok(Self { text, key, annotations, widget: widget::body(input)? })
    }
}

impl Reply {
    /// `words`: word by word, with pauses.
    async fn write(&self, parts: Parts<'_>, call: &Call<'_>, words: bool) -> Result<(), Failure> {
        let Parts { text, key, annotations, widget } = parts;
        match key {
            // In a rehearsal nothing is sent, so an item is ordinary text.
            Some(_) if call.rehearses() => {
                call.new_message().await;
                call.say(text.unwrap_or_default()).await;
                call.new_message().await;
            }
            Some(key) => {
                let body = text.map(|text| message(text, annotations));
                call.send(SentItem { key: Some(key.to_owned()), body, more: false }).await?;
            }
            None => {
                if let Some(text) = text {
                    if self.new_message && !text.is_empty() {
                        call.count_message()?;
                    }
                    self.say(text, call, words).await;
                }
                if text.is_some_and(|text| !text.is_empty()) && !annotations.is_empty() {
                    call.annotate(annotations).await?;
                }
            }
        }
        if widget.is_some() {
            call.send_new(SentItem { key: Some(key::derived(call)), body: widget, more: false }).await?;
        }
        Ok(())
    }

    async fn say(&self, text: &str, call: &Call<'_>, words: bool) {
        if self.new_message {
            call.new_message().await;
        }
        if !words {
            call.say(text).await;
            return;
        }
        for (index, word) in text.split_inclusive(char::is_whitespace).enumerate() {
            if index > 0 && !self.pause.is_zero() && !call.rehearses() {
                call.clock().sleep(self.pause).await;
            }
            call.say(word).await;
        }
    }
}

/// A complete message.
fn message(text: &str, annotations: Vec<SentAnnotation>) -> ItemBody {
    let length = text.chars().count();
    let annotation = |SentAnnotation { source, from_end }| Annotation {
        source,
        index: u64::try_from(length.saturating_sub(from_end)).ok(),
    };
    let annotations = annotations.into_iter().map(annotation).collect();
    let content = vec![ContentPart::OutputText(OutputText { text: text.to_owned(), annotations })];
    ItemBody::AssistantMessage { content, status: None, reason: None }
}
