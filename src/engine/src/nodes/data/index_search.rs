//! `index_search`: finds the chunks in a search index that match a query best.

use std::collections::BTreeSet;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::data::index_upsert::{name_of, note_object, read_vector};
use crate::nodes::fields::{list_field, optional_text_field, text_field};
use crate::search::{ChunkLocation, Fused, Ranked, fused, terms};
use crate::template::{as_text, fill, has_holes};

/// Maximum hits.
const MOST_HITS: u32 = 50;
/// Ranks that count in each ranking.
const DEPTH: usize = 200;
/// Maximum distinct query terms.
const MOST_TERMS: usize = 64;
/// Maximum query bytes that are searched for terms.
const MOST_QUERY: usize = 16 << 10;
const MODES: [&str; 3] = ["hybrid", "text", "vector"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "index_search",
    group: "data",
    summary: "Finds the chunks of a search index that best match a query: by words, by a vector, or by both.",
    effect: Effect::Reads,
    secrets: &[],
    schema,
    result: "`{hits: [{document, chunk, text, score, rank_text, rank_vector, metadata}]}`, best first; `score` is BM25, the \
             cosine, or, for `hybrid`, the sum of 1 / (60 + rank) of both rankings; a rank is present only if that ranking has the \
             chunk; `metadata` may list its members in another order.",
    members: &["hits"],
    example: || {
        json!({"name": "found", "type": "index_search", "index": "handbook", "query": "{{ inputs.question }}",
               "vector": "{{ inputs.vector }}", "limit": 5, "filter": {"language": "en"}})
    },
    build,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Hybrid,
    Text,
    Vector,
}

struct IndexSearch {
    index: Value,
    query: Option<Value>,
    vector: Option<Value>,
    limit: usize,
    mode: Mode,
    filter: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["index"], "properties": {
        "index": {"type": "string", "description": "Name of the index in the workspace; a template."},
        "query": {"type": "string", "description": "Words to search for; a template. Required unless the mode is `vector`."},
        "vector": {"type": ["string", "array"],
                   "description": "The query's vector, from the same model as those of the chunks, or a template of it; \
                                   required for the mode `vector`."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 10, "description": "Maximum number of hits."},
        "mode": {"enum": MODES, "default": "hybrid", "description": "Search mode; `hybrid` without a vector searches only by words."},
        "filter": {"type": "object",
                   "description": "Members that a chunk's metadata must have: strings, numbers, true, false or null; strings \
                                   are templates."}},
        "anyOf": [{"required": ["query"]}, {"required": ["vector", "mode"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let index = text_field(fields, "index", check);
    let query = optional_text_field(fields, "query", check);
    let limit = fields.whole("limit", 1..=MOST_HITS, &mut check.problems).unwrap_or(10);
    let mode = match fields.word("mode", &MODES, &mut check.problems) {
        Some("text") => Mode::Text,
        Some("vector") => Mode::Vector,
        _ => Mode::Hybrid,
    };
    let vector = match fields.value("vector") {
        Some(Value::String(text)) if !has_holes(text) => {
            let problem =
                wire::FieldError::new(fields.at("vector"), "type", "must be a list, or a template of one");
            check.note(problem.suggest("\"vector\": \"{{ results.embed.vector }}\""));
            None
        }
        Some(_) => list_field(fields, "vector", check),
        None => None,
    };
    let needed = if mode == Mode::Vector { "vector" } else { "query" };
    if fields.value(needed).is_none() {
        let problem = wire::FieldError::new(fields.at(needed), "required", format!("needs '{needed}'"));
        check.note(problem.suggest(format!("\"{needed}\": \"{{{{ inputs.{needed} }}}}\"")));
    }
    let filter = match fields.value("filter") {
        Some(filter @ Value::Object(_)) => {
            check.templates(filter, &fields.at("filter")).then(|| filter.clone())
        }
        Some(_) => {
            note_object(fields, "filter", check);
            None
        }
        None => None,
    };
    let limit = usize::try_from(limit).unwrap_or(1);
    Some(Box::new(IndexSearch { index: index?, query, vector, limit, mode, filter }))
}

#[async_trait]
impl Node for IndexSearch {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = Map::new();
        for (name, field) in [
            ("index", Some(&self.index)),
            ("query", self.query.as_ref()),
            ("vector", self.vector.as_ref()),
            ("filter", self.filter.as_ref()),
        ] {
            if let Some(field) = field {
                input.insert(name.to_owned(), fill(field, scope)?);
            }
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let index = name_of("index", &input)?;
        let filter = input.get("filter").map(read_filter).transpose()?;
        let (mut text, mut vector) = (Vec::new(), Vec::new());
        if self.mode != Mode::Vector {
            let query = as_text(input.get("query").unwrap_or(&Value::Null));
            let query =
                query.get(..query.floor_char_boundary(MOST_QUERY.min(query.len()))).unwrap_or_default();
            // The first terms, in query order.
            let mut seen = BTreeSet::new();
            let mut wanted: Vec<String> =
                terms(query).into_iter().filter(|term| seen.insert(term.clone())).collect();
            wanted.truncate(MOST_TERMS);
            text = call.search().text(&index, &wanted, filter, DEPTH).await?;
        }
        let given = input.get("vector").filter(|vector| !vector.is_null());
        match given {
            Some(given) if self.mode != Mode::Text => {
                vector = call.search().vector(&index, read_vector(given)?, filter, DEPTH).await?;
            }
            None if self.mode == Mode::Vector => {
                return Err(NodeError::failed("the vector is missing").into());
            }
            _ => {}
        }
        let mut found = self.ranked(&text, &vector);
        found.truncate(self.limit);
        let places: Vec<ChunkLocation> = found.iter().map(|one| one.place).collect();
        let chunks = call.search().chunks(&index, &places).await?;
        let hit = |one: &Fused| {
            let chunk = chunks.iter().find(|chunk| chunk.place == one.place)?;
            let mut hit = json!({"document": chunk.document, "chunk": chunk.place.number, "text": chunk.text,
                                 "score": one.score, "metadata": chunk.metadata});
            for (name, rank) in [("rank_text", one.rank_text), ("rank_vector", one.rank_vector)] {
                if let (Some(rank), Some(members)) = (rank, hit.as_object_mut()) {
                    members.insert(name.to_owned(), json!(rank));
                }
            }
            Some(hit)
        };
        Ok(json!({"hits": found.iter().filter_map(hit).collect::<Vec<_>>()}))
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }
}

impl IndexSearch {
    /// Merges both rankings, or returns the only one with its own scores.
    fn ranked(&self, text: &[Ranked], vector: &[Ranked]) -> Vec<Fused> {
        let mut all = fused(text, vector);
        if self.mode != Mode::Hybrid {
            for (one, own) in all.iter_mut().zip(text.iter().chain(vector)) {
                one.score = own.score;
            }
        }
        all
    }
}

/// Reads a filter whose members are compared literally.
fn read_filter(filter: &Value) -> Result<&Map<String, Value>, NodeError> {
    let Some(members) = filter.as_object() else {
        return Err(NodeError::failed(format!("the filter must be an object, not {}", kind(filter))));
    };
    for (name, value) in members {
        if value.is_array() || value.is_object() {
            let message = format!(
                "the filter's '{name}' must be a string, a number, true, false or null, not {}",
                kind(value)
            );
            return Err(NodeError::failed(message));
        }
    }
    if filter.to_string().contains("\\u0000") {
        return Err(NodeError::failed("the filter contains U+0000"));
    }
    Ok(members)
}
