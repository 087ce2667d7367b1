//! `chunk`: cuts a text into pieces that fit a model or an index.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::cut::{Cut, CutUnit, cut};
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::template::fill;

/// Maximum chunk size that a node may set.
const LARGEST: u32 = 100_000;
/// Maximum chunks per text.
const MOST_CHUNKS: usize = 10_000;
/// Text bytes above which cutting runs outside the actors.
const LONG: usize = 64 * 1024;
const WAYS: [&str; 4] = ["paragraphs", "sentences", "words", "characters"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "chunk",
    group: "data",
    summary: "Splits a text into chunks of whole paragraphs, sentences, words or characters for a search index.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "`{chunks: [{text, index, start, end, metadata}], count}`; `start` and `end` are positions in the text, in \
             characters; `metadata` only if it was given.",
    members: &["chunks", "count"],
    example: || {
        json!({"name": "parts", "type": "chunk", "text": "{{ inputs.text }}", "by": "sentences", "size": 1200,
               "overlap": 200, "metadata": {"source": "{{ inputs.source }}"}})
    },
    build,
};

struct Chunk {
    text: Value,
    by: CutUnit,
    size: usize,
    overlap: usize,
    metadata: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["text", "size"], "properties": {
        "text": {"type": "string", "description": "The text; a template."},
        "by": {"enum": WAYS, "default": "sentences",
               "description": "The unit that is kept whole if it fits into a chunk; larger units are split into the next smaller unit."},
        "size": {"type": "integer", "minimum": 1, "maximum": LARGEST,
                 "description": "Maximum size of a chunk: in words if `by` is words, else in characters."},
        "overlap": {"type": "integer", "minimum": 0, "maximum": LARGEST / 2, "default": 0,
                    "description": "Maximum overlap between a chunk and the next one; at most half of `size`."},
        "metadata": {"type": "object", "description": "Metadata for every chunk; strings inside are templates."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let text = text_field(fields, "text", check);
    let by = fields.word("by", &WAYS, &mut check.problems);
    fields.required("size", &mut check.problems);
    let size = fields.whole("size", 1..=LARGEST, &mut check.problems);
    let overlap = fields.whole("overlap", 0..=LARGEST / 2, &mut check.problems).unwrap_or(0);
    if let Some(size) = size
        && overlap > size / 2
    {
        let problem = FieldError::new(fields.at("overlap"), "range", "must be at most half of 'size'");
        check.note(problem.suggest(format!("\"overlap\": {}", size / 2)));
    }
    let metadata = match fields.value("metadata") {
        Some(metadata @ Value::Object(_)) => {
            check.templates(metadata, &fields.at("metadata")).then(|| metadata.clone())
        }
        Some(_) => {
            let problem = FieldError::new(fields.at("metadata"), "type", "must be an object");
            check.note(problem.suggest("\"metadata\": {\"source\": \"…\"}"));
            None
        }
        None => None,
    };
    let by = match by {
        Some("paragraphs") => CutUnit::Paragraphs,
        Some("words") => CutUnit::Words,
        Some("characters") => CutUnit::Characters,
        _ => CutUnit::Sentences,
    };
    let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Some(Box::new(Chunk { text: text?, by, size: whole(size?), overlap: whole(overlap), metadata }))
}

#[async_trait]
impl Node for Chunk {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let text = match fill(&self.text, scope)? {
            Value::String(text) => text,
            other => {
                return Err(NodeError::failed(format!("the text must be a string, not {}", kind(&other))));
            }
        };
        let mut input = Map::new();
        input.insert("text".to_owned(), Value::String(text));
        if let Some(metadata) = &self.metadata {
            input.insert("metadata".to_owned(), fill(metadata, scope)?);
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, mut input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        let text = match input.get_mut("text").map(Value::take) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let how = Cut { by: self.by, size: self.size, overlap: self.overlap };
        let made = if text.len() < LONG {
            written(&text, how, input.get("metadata"))
        } else {
            let work = move || written(&text, how, input.get("metadata"));
            let done = tokio::task::spawn_blocking(work).await;
            done.unwrap_or_else(|_| Err(NodeError::new(ErrorCode::Internal, "splitting a text panicked")))
        };
        Ok(made?)
    }
}

fn written(text: &str, how: Cut, metadata: Option<&Value>) -> Result<Value, NodeError> {
    let pieces = cut(text, how, MOST_CHUNKS).ok_or_else(|| {
        NodeError::failed(format!(
            "the text has more than {MOST_CHUNKS} chunks; raise 'size' or lower 'overlap'"
        ))
    })?;
    let chunks: Vec<Value> = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| {
            let mut chunk =
                json!({"text": piece.text, "index": index, "start": piece.start, "end": piece.end});
            if let (Some(metadata), Some(members)) = (metadata, chunk.as_object_mut()) {
                members.insert("metadata".to_owned(), metadata.clone());
            }
            chunk
        })
        .collect();
    Ok(json!({"count": chunks.len(), "chunks": chunks}))
}
