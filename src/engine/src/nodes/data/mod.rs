//! Nodes that read documents and search indexes.

pub(crate) mod chunk;
pub(crate) mod document_read;
pub(crate) mod index_search;
pub(crate) mod index_upsert;
