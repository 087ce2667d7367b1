//! Search indexes, as nodes access them. Vectors are scored off the actor threads, one page at a time.

use std::sync::Arc;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{FoundChunk, SearchIndex};
use engine::search::{Best, ChunkLocation, IndexedChunk, Ranked, cosine, packed};
use serde_json::{Map, Value};
use store::{IndexRefusal, MOST_INDEXED_CHUNKS, NewChunk, Store, StoreError, StoredIndex};
use uuid::Uuid;
use wire::ErrorCode;

use super::shares::WorkspaceShare;
use crate::run::quota::{Quota, WorkspaceFull};

/// Maximum bytes of vectors in memory at once.
const PAGE_BYTES: usize = 4 << 20;

/// Indexes in one workspace.
pub(super) struct SearchOf<'a> {
    pub(super) workspace: Uuid,
    pub(super) store: &'a Store,
    pub(super) reads: WorkspaceShare,
    pub(super) quota: &'a Quota,
}

impl SearchOf<'_> {
    async fn found(&self, index: &str) -> Result<StoredIndex, NodeError> {
        let found =
            self.store.search_index(self.workspace, index).await.map_err(|error| unreadable(&error))?;
        found.ok_or_else(|| {
            let message = format!("this workspace has no search index '{index}'");
            NodeError::new(ErrorCode::IndexNotFound, message)
        })
    }
}

#[async_trait]
impl SearchIndex for SearchOf<'_> {
    async fn upsert(&self, index: &str, document: &str, chunks: Vec<IndexedChunk>) -> Result<u64, NodeError> {
        // A document without chunks is deleted.
        if !chunks.is_empty() {
            let full = |full: WorkspaceFull| NodeError::new(ErrorCode::WorkspaceFull, full.to_string());
            self.quota.room(self.workspace).map_err(full)?;
        }
        let _permit = self.reads.permit().await;
        let dimensions = chunks.iter().find_map(|chunk| chunk.vector.as_ref()).map(Vec::len);
        let dimensions = dimensions.and_then(|dimensions| i32::try_from(dimensions).ok());
        let chunks: Vec<NewChunk> = chunks.into_iter().map(stored).collect();
        let written = self.store.index_document(self.workspace, index, document, &chunks, dimensions).await;
        match written.map_err(|error| unreadable(&error))? {
            Ok(replaced) => Ok(u64::try_from(replaced).unwrap_or_default()),
            Err(IndexRefusal::Full(would)) => {
                let message = format!("'{index}' would have {would} chunks; at most {MOST_INDEXED_CHUNKS}");
                Err(NodeError::new(ErrorCode::IndexFull, message))
            }
            Err(IndexRefusal::Dimensions(known)) => Err(other_dimensions(index, known, dimensions)),
        }
    }

    async fn text(
        &self,
        index: &str,
        terms: &[String],
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        let _permit = self.reads.permit().await;
        let index = self.found(index).await?;
        let filter = filter.map(|filter| Value::Object(filter.clone()));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found = self.store.search_text(index.id, terms, filter.as_ref(), most).await;
        let found = found.map_err(|error| unreadable(&error))?;
        let ranked =
            |((document, number), score)| Ranked { place: ChunkLocation { document, number }, score };
        Ok(found.into_iter().map(ranked).collect())
    }

    async fn vector(
        &self,
        index: &str,
        vector: Vec<f32>,
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError> {
        let _permit = self.reads.permit().await;
        let known = self.found(index).await?;
        let dimensions = i32::try_from(vector.len()).ok();
        match known.dimensions {
            Some(_) if known.vectors == 0 => return Ok(Vec::new()),
            None => return Ok(Vec::new()),
            Some(known) if Some(known) != dimensions => {
                return Err(other_dimensions(index, known, dimensions));
            }
            Some(_) => {}
        }
        let filter = filter.map(|filter| Value::Object(filter.clone()));
        let page = (PAGE_BYTES / (vector.len() * 4).max(1)).clamp(16, 8_192);
        let (vector, mut best, mut after) = (Arc::new(vector), Best::new(most), (0, 0));
        loop {
            let rows = i64::try_from(page).unwrap_or(1);
            let vectors = self.store.search_vectors(known.id, after, filter.as_ref(), rows).await;
            let vectors = vectors.map_err(|error| unreadable(&error))?;
            let Some((last, _)) = vectors.last() else { break };
            after = *last;
            let (is_last, vector) = (vectors.len() < page, Arc::clone(&vector));
            let scoring = tokio::task::spawn_blocking(move || {
                for ((document, number), packed) in vectors {
                    best.add(ChunkLocation { document, number }, cosine(&vector, &packed));
                }
                best
            });
            let panicked = |_| NodeError::new(ErrorCode::Internal, "scoring vectors panicked");
            best = scoring.await.map_err(panicked)?;
            if is_last {
                break;
            }
        }
        Ok(best.sorted())
    }

    async fn chunks(&self, index: &str, places: &[ChunkLocation]) -> Result<Vec<FoundChunk>, NodeError> {
        let _permit = self.reads.permit().await;
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let index = self.found(index).await?;
        let places: Vec<_> = places.iter().map(|place| (place.document, place.number)).collect();
        let found = self.store.search_chunks(index.id, &places).await.map_err(|error| unreadable(&error))?;
        let read = |chunk: store::StoredChunk| FoundChunk {
            place: ChunkLocation { document: chunk.document_id, number: chunk.number },
            document: chunk.document,
            text: chunk.text,
            metadata: chunk.metadata,
        };
        Ok(found.into_iter().map(read).collect())
    }
}

fn stored(chunk: IndexedChunk) -> NewChunk {
    let whole = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    NewChunk {
        length: whole(chunk.terms.values().sum()),
        terms: chunk.terms.into_iter().map(|(term, count)| (term, whole(count))).collect(),
        vector: chunk.vector.map(|vector| packed(&vector)),
        metadata: Value::Object(chunk.metadata),
        text: chunk.text,
    }
}

fn other_dimensions(index: &str, known: i32, given: Option<i32>) -> NodeError {
    let given = given.unwrap_or_default();
    let message = format!("the vectors of '{index}' have {known} numbers, this one has {given}");
    NodeError::new(ErrorCode::IndexDimensions, message)
}

fn unreadable(error: &StoreError) -> NodeError {
    tracing::warn!(%error, "failed to read or store a search index");
    NodeError::retryable(error.code(), error.code().message())
}
