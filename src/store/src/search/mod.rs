//! Search indexes and their chunks.

mod chunks;
mod indexes;

pub use chunks::{ChunkPlace, IndexRefusal, MOST_INDEXED_CHUNKS, NewChunk, StoredChunk, StoredIndex};
pub use indexes::NamedIndex;
