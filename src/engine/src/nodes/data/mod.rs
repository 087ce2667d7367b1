//! Nodes for documents, search indexes and app collections.

pub(crate) mod chunk;
pub(crate) mod collection;
pub(crate) mod collection_get;
pub(crate) mod collection_put;
pub(crate) mod collection_query;
pub(crate) mod document_read;
pub(crate) mod index_search;
pub(crate) mod index_upsert;
