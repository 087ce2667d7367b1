//! Search indexes.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, delete, get, json, operations};
use crate::{ErrorCode, IndexRecord, Listed, Scope};

operations! {
    LIST = get("/api/indexes", "list_indexes", "Lists the indexes of the workspace by name.")
        .needs(Scope::WorkflowsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<IndexRecord>, examples::LIST))]);

    DELETE = delete("/api/indexes/{name}", "delete_index", "Deletes an index with all its documents.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .answers(&[Answer::empty(204)])
        .errors(&[ErrorCode::IndexNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const LIST: &str = r#"{
  "data": [
    {
      "name": "manuals",
      "documents": 12,
      "chunks": 431,
      "vectors": 431,
      "dimensions": 768
    }
  ],
  "next_cursor": null
}"#;
}
