//! Public access to the catalogue: finds a type by name, and describes it.

use wire::{NodeTypeRecord, nearest};

use super::{CATALOGUE, Effect, NodeType};

/// An unknown type; the text suggests the most likely one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unknown {
    message: String,
    /// The most similar known type.
    pub near: Option<&'static str>,
}

/// Finds the type with this name.
///
/// # Errors
/// [`Unknown`], with the most similar name.
pub fn find(name: &str) -> Result<&'static NodeType, Unknown> {
    if let Some(found) = CATALOGUE.iter().find(|kind| kind.name == name) {
        return Ok(found);
    }
    let near = nearest(&name.to_lowercase(), CATALOGUE.iter().map(|kind| kind.name));
    let shown: String = name.chars().filter(|letter| !letter.is_control()).take(60).collect();
    let message = match near {
        Some(near) => format!("unknown node type '{shown}'; did you mean '{near}'?"),
        None => {
            let known: Vec<&str> = CATALOGUE.iter().map(|kind| kind.name).collect();
            format!("unknown node type '{shown}'; known types: {}", known.join(", "))
        }
    };
    Err(Unknown { message, near })
}

impl Effect {
    /// Returns its wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Wait => "wait",
            Self::Speaks => "speaks",
            Self::Reads => "reads",
            Self::Model => "model",
            Self::Outbound => "outbound",
            Self::Nested => "nested",
        }
    }

    /// Explains the effect in one sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pure => "The same input returns the same result, without external effects.",
            Self::Wait => "It only waits.",
            Self::Speaks => "It sends a message to the readers of the run.",
            Self::Reads => "It reads external data that may change; it has no external effects.",
            Self::Model => {
                "It calls a language model, which may cost money and return a different result each time."
            }
            Self::Outbound => {
                "It may have external effects. If a crash makes the outcome unknown, it fails and is not retried, unless the node has `idempotent: true`."
            }
            Self::Nested => "It has the effects of the nodes inside it.",
        }
    }
}

impl NodeType {
    /// Returns its description for the HTTP API.
    #[must_use]
    pub fn record(&self) -> NodeTypeRecord {
        NodeTypeRecord {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            summary: self.summary.to_owned(),
            effect: self.effect.as_str().to_owned(),
            schema: self.whole_schema(),
            result: self.result.to_owned(),
            example: (self.example)(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_type_names_the_nearest_one() {
        assert_eq!(find("reply").map(|kind| kind.name), Ok("reply"));
        for (name, near) in
            [("replay", Some("reply")), ("LLM", Some("llm")), ("subworkflow", Some("sub_workflow"))]
        {
            let unknown = find(name).err().unwrap();
            assert_eq!(unknown.near, near, "{name}");
            assert!(unknown.to_string().contains("did you mean"), "{unknown}");
        }
        assert!(find("zebra").err().unwrap().to_string().ends_with("client_tool, client_effect"));
        assert_eq!(find("collection_qery").err().unwrap().near, Some("collection_query"));
        assert!(!find("\u{1b}[31m").err().unwrap().to_string().contains('\u{1b}'));
    }

    #[test]
    fn every_example_matches_its_schema_and_passes_the_check() {
        for kind in CATALOGUE {
            let record = kind.record();
            let schema = jsonschema::validator_for(&record.schema).unwrap();
            let problems: Vec<String> =
                schema.iter_errors(&record.example).map(|error| error.to_string()).collect();
            assert_eq!(problems, [""; 0], "{}", kind.name);
            let name = record.example["name"].clone();
            // Some examples read an earlier node.
            let graph = json!({
                "format": "graph/1",
                "nodes": [{"name": "defaults", "type": "set", "values": {}}, record.example],
                "edges": [{"from": "START", "to": "defaults"}, {"from": "defaults", "to": name}, {"from": name, "to": "END"}],
            });
            assert_eq!(crate::check(&graph).err(), None, "{}", kind.name);
        }
    }
}
