//! Bundles built field by field, and bundles from common writers.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod ambiguous;
mod archives;
mod bombs;
mod boundaries;
mod build;
mod build_tools;
mod declared;
mod document_limits;
mod documentation;
mod documents;
mod hostile;
mod kinds;
mod manifest;
mod markup;
mod names;
mod policies;
mod random;
mod structure;
mod writers;
