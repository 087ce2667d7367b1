//! `:batchEmbedContents`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::usage;
use crate::{EmbedRequest, Embeddings};

#[derive(Deserialize)]
struct Document {
    embeddings: Vec<Entry>,
    #[serde(default, rename = "usageMetadata")]
    usage: Value,
}

#[derive(Deserialize)]
struct Entry {
    values: Vec<f64>,
}

/// Builds a request body.
pub(super) fn write(request: &EmbedRequest, resource: &str) -> Value {
    let one = |text: &String| {
        let mut one = json!({"model": resource, "content": {"parts": [{"text": text}]}});
        if let (Some(dimensions), Some(members)) = (request.dimensions, one.as_object_mut()) {
            members.insert("outputDimensionality".to_owned(), json!(dimensions));
        }
        one
    };
    json!({"requests": request.texts.iter().map(one).collect::<Vec<_>>()})
}

/// Reads the vectors, in text order.
pub(super) fn read(document: Value, request: &EmbedRequest) -> Result<Embeddings, String> {
    let document: Document =
        serde_json::from_value(document).map_err(|why| format!("the answer cannot be read: {why}"))?;
    let vectors: Vec<Vec<f64>> = document.embeddings.into_iter().map(|entry| entry.values).collect();
    let count = request.texts.len();
    if vectors.len() != count {
        return Err(format!("the answer has {} vectors for {count} texts", vectors.len()));
    }
    Ok(Embeddings { vectors, usage: usage(&document.usage), model: Some(request.model.clone()) })
}
