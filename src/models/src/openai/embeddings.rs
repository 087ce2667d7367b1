//! `POST <base>/embeddings`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::usage;
use crate::{EmbedRequest, Embeddings};

#[derive(Deserialize)]
struct Document {
    data: Vec<Entry>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f64>,
}

/// Builds a request body.
pub(super) fn write(request: &EmbedRequest) -> Value {
    let mut body = json!({"model": request.model, "input": request.texts, "encoding_format": "float"});
    if let (Some(dimensions), Some(members)) = (request.dimensions, body.as_object_mut()) {
        members.insert("dimensions".to_owned(), json!(dimensions));
    }
    body
}

/// Reads the vectors of `count` texts, in text order.
pub(super) fn read(document: Value, count: usize) -> Result<Embeddings, String> {
    let mut document: Document =
        serde_json::from_value(document).map_err(|why| format!("the answer cannot be read: {why}"))?;
    document.data.sort_by_key(|entry| entry.index);
    let vectors: Vec<Vec<f64>> = document.data.into_iter().map(|entry| entry.embedding).collect();
    if vectors.len() != count {
        return Err(format!("the answer has {} vectors for {count} texts", vectors.len()));
    }
    Ok(Embeddings { vectors, usage: usage(&document.usage), model: document.model })
}
