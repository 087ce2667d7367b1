//! `index_upsert`: writes a document's chunks to a search index and replaces its previous ones.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::{list, list_field, text_field};
use crate::search::{IndexedChunk, normalised};
use crate::template::{as_text, fill};

/// Maximum characters in an index or document name.
const MOST_NAME: usize = 200;
/// Maximum vector dimensions.
pub(crate) const MOST_DIMENSIONS: usize = 4_096;
/// Maximum metadata bytes per chunk.
const MOST_METADATA: usize = 8 * 1024;
/// Maximum chunks per document.
const MOST_CHUNKS: usize = 10_000;

pub(crate) const TYPE: NodeType = NodeType {
    name: "index_upsert",
    group: "data",
    summary: "Writes a document's chunks to a search index of the workspace and replaces its previous chunks.",
    effect: Effect::Outbound,
    secrets: &[],
    schema,
    result: "`{index, document, chunks, replaced}`: the number of chunks now and before.",
    members: &["index", "document", "chunks", "replaced"],
    example: || {
        json!({"name": "keep", "type": "index_upsert", "index": "handbook", "document": "{{ inputs.path }}",
               "chunks": "{{ inputs.chunks }}", "vectors": "{{ inputs.vectors }}"})
    },
    build,
};

struct IndexUpsert {
    index: Value,
    document: Value,
    chunks: Value,
    vectors: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["index", "document", "chunks"], "properties": {
        "index": {"type": "string", "description": "Name of the index in the workspace; a template. It is created if it does not exist."},
        "document": {"type": "string", "description": "Id of the document; a template."},
        "chunks": {"type": ["string", "array"],
                   "description": "Strings, or objects `{text, metadata, vector}` as `chunk` returns them; a template. An empty \
                                   list deletes the document. At most 50,000 in an index."},
        "vectors": {"type": ["string", "array"],
                    "description": "A vector for each chunk, as `embed` returns them, if the chunks contain none; a \
                                    template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let index = text_field(fields, "index", check);
    let document = text_field(fields, "document", check);
    let chunks = list_field(fields, "chunks", check);
    let vectors =
        if fields.value("vectors").is_some() { Some(list_field(fields, "vectors", check)?) } else { None };
    Some(Box::new(IndexUpsert { index: index?, document: document?, chunks: chunks?, vectors }))
}

#[async_trait]
impl Node for IndexUpsert {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = Map::new();
        for (name, field) in [
            ("index", Some(&self.index)),
            ("document", Some(&self.document)),
            ("chunks", Some(&self.chunks)),
            ("vectors", self.vectors.as_ref()),
        ] {
            if let Some(field) = field {
                input.insert(name.to_owned(), fill(field, scope)?);
            }
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let index = name_of("index", &input)?;
        let document = name_of("document", &input)?;
        // Tokenizes texts of up to 8 MiB, so it runs outside the actors.
        let reading = tokio::task::spawn_blocking(move || read(input));
        let panicked = |_| NodeError::new(ErrorCode::Internal, "reading the chunks panicked");
        let chunks = reading.await.map_err(panicked)??;
        let count = chunks.len();
        let replaced = call.search().upsert(&index, &document, chunks).await?;
        Ok(json!({"index": index, "document": document, "chunks": count, "replaced": replaced}))
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }
}

/// Returns a name that the database can store.
pub(crate) fn name_of(field: &str, input: &Value) -> Result<String, NodeError> {
    let name = as_text(input.get(field).unwrap_or(&Value::Null));
    // "." and ".." cannot appear in an address.
    let is_bad = matches!(name.as_str(), "" | "." | "..") || name.chars().any(char::is_control);
    if is_bad || name.chars().count() > MOST_NAME {
        let message = format!(
            "'{field}' must have 1 to {MOST_NAME} characters, no control characters, and not be '.' or '..'"
        );
        return Err(NodeError::failed(message));
    }
    Ok(name)
}

fn read(mut input: Value) -> Result<Vec<IndexedChunk>, NodeError> {
    let chunks = list(input.get_mut("chunks").map(Value::take).unwrap_or_default())?;
    if chunks.len() > MOST_CHUNKS {
        let message = format!("{} chunks; a document has at most {MOST_CHUNKS}", chunks.len());
        return Err(NodeError::failed(message));
    }
    let vectors = match input.get_mut("vectors").map(Value::take) {
        None => None,
        Some(vectors) => Some(list(vectors)?),
    };
    if let Some(vectors) = &vectors
        && vectors.len() != chunks.len()
    {
        let message = format!("{} vectors for {} chunks; each chunk needs one", vectors.len(), chunks.len());
        return Err(NodeError::failed(message));
    }
    let vectors = vectors.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
    let mut read: Vec<IndexedChunk> = Vec::with_capacity(chunks.len());
    let mut dimensions = None;
    for (number, (chunk, vector)) in chunks.into_iter().zip(vectors).enumerate() {
        let bad = |error: NodeError| NodeError { message: format!("chunk {number}: {error}"), ..error };
        let chunk = one(chunk, vector).map_err(bad)?;
        if let Some(vector) = &chunk.vector {
            let first = *dimensions.get_or_insert(vector.len());
            if first != vector.len() {
                let message = format!("its vector has {} numbers, the first has {first}", vector.len());
                return Err(bad(NodeError::new(ErrorCode::IndexDimensions, message)));
            }
        }
        read.push(chunk);
    }
    Ok(read)
}

fn one(chunk: Value, vector: Option<Value>) -> Result<IndexedChunk, NodeError> {
    let mut members = match chunk {
        Value::String(text) => Map::from_iter([("text".to_owned(), Value::String(text))]),
        Value::Object(members) => members,
        other => {
            let message = format!("must be a string or {{text, metadata, vector}}, not {}", kind(&other));
            return Err(NodeError::failed(message));
        }
    };
    let Some(Value::String(text)) = members.shift_remove("text") else {
        return Err(NodeError::failed("has no 'text'"));
    };
    let metadata = match members.shift_remove("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            return Err(NodeError::failed(format!("'metadata' must be an object, not {}", kind(&other))));
        }
    };
    let written = serde_json::to_string(&metadata).unwrap_or_default();
    if written.len() > MOST_METADATA {
        return Err(NodeError::failed(format!("'metadata' has more than {MOST_METADATA} bytes")));
    }
    // PostgreSQL cannot store NUL.
    if written.contains("\\u0000") {
        return Err(NodeError::failed("'metadata' contains U+0000"));
    }
    let text = text.replace('\0', "\u{fffd}");
    let vector = vector.or_else(|| members.shift_remove("vector")).filter(|vector| !vector.is_null());
    let vector = vector.map(|vector| read_vector(&vector)).transpose()?;
    Ok(IndexedChunk::new(text, metadata, vector))
}

/// Reads a vector and normalizes its length to 1.
pub(crate) fn read_vector(vector: &Value) -> Result<Vec<f32>, NodeError> {
    let entries = vector.as_array();
    let numbers: Option<Vec<f64>> = entries.and_then(|entries| entries.iter().map(Value::as_f64).collect());
    let Some(numbers) = numbers else {
        return Err(NodeError::failed("the vector must be a list of numbers"));
    };
    if numbers.len() > MOST_DIMENSIONS {
        let message = format!("the vector has {} numbers; at most {MOST_DIMENSIONS}", numbers.len());
        return Err(NodeError::failed(message));
    }
    normalised(&numbers).ok_or_else(|| NodeError::failed("the vector is empty or all zeros"))
}

/// Reports a field that must be an object.
pub(crate) fn note_object(fields: &Fields<'_>, name: &'static str, check: &mut Check) {
    let problem = FieldError::new(fields.at(name), "type", "must be an object");
    check.note(problem.suggest(format!("\"{name}\": {{\"source\": \"…\"}}")));
}
