//! The node catalogue.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, get, json, operations};
use crate::{ErrorCode, Listed, NodeTypeRecord, Scope};

operations! {
    LIST = get("/api/nodes", "list_nodes", "Lists the types of nodes, in the order of the documentation.")
        .needs_anywhere(Scope::WorkflowsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<NodeTypeRecord>))]);

    READ = get("/api/nodes/{type}", "read_node", "Reads a type of node; for a wrong name the error has the most similar one.")
        .needs_anywhere(Scope::WorkflowsRead)
        .answers(&[Answer::new(200, json!(NodeTypeRecord))])
        .errors(&[ErrorCode::NodeTypeNotFound]);
}
