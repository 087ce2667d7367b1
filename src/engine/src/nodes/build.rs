//! Builds executable nodes from their text.

use serde_json::Value;
use wire::FieldError;

use super::CATALOGUE;
use crate::check::Check;
use crate::execute::{Effect, Node, NodeType, PlanNode};
use crate::graph::fields::{Fields, nearest};
use crate::graph::{NodeSpec, common};
use crate::template::functions::ids;

/// Builds a node without graph-only features; also for a `for_each` body.
pub(crate) fn plan_body(spec: &NodeSpec, check: &mut Check) -> Option<PlanNode> {
    if spec.kind.is_empty() {
        return None;
    }
    let Some(kind) = CATALOGUE.iter().find(|kind| kind.name == spec.kind) else {
        check.note(no_such_type(spec));
        return None;
    };
    if spec.common.cache.is_some() && kind.effect != Effect::Pure {
        let message = format!("the result of '{}' is not kept: it depends on more than its input", kind.name);
        let problem = FieldError::new(format!("{}/cache_seconds", spec.pointer), "not_pure", message);
        check.note(problem.suggest("remove 'cache_seconds'"));
    }
    let node = build(kind, spec, check)?;
    let fields = Value::Object(spec.fields.clone());
    let text = fields.to_string();
    Some(PlanNode {
        name: spec.name.clone(),
        node_type: kind.name,
        effect: kind.effect,
        common: spec.common.clone(),
        node,
        identity: identity(kind, &text, check),
        makes_ids: ids::are_made_in(&text)
            || spec.common.state.iter().any(|(_, write)| ids::are_made_in(&write.to_string())),
    })
}

/// A code node's behaviour also depends on its modules.
fn identity(kind: &NodeType, fields: &str, check: &Check) -> [u8; 32] {
    let mut parts = vec![kind.name.as_bytes(), b"\n", fields.as_bytes()];
    if kind.name == "code" {
        for (name, source) in &*check.modules {
            parts.extend([b"\0", name.as_bytes(), b"\0", source.as_bytes()]);
        }
    }
    crate::canonical::sha256(&parts)
}

fn no_such_type(spec: &NodeSpec) -> FieldError {
    let pointer = format!("{}/type", spec.pointer);
    let names = CATALOGUE.iter().map(|kind| kind.name);
    let known = format!("known types: {}", names.clone().collect::<Vec<_>>().join(", "));
    let problem = FieldError::new(pointer, "unknown_type", format!("unknown node type '{}'", spec.kind));
    match nearest(&spec.kind, names) {
        Some(near) => problem.suggest(format!("did you mean '{near}'?")),
        None => problem.suggest(known),
    }
}

/// Builds a node of a known type.
fn build(kind: &NodeType, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let document = Value::Object(spec.fields.clone());
    let mut fields = Fields::from_value(&spec.pointer, &document, &mut check.problems)?;
    let node = (kind.build)(&mut fields, spec, check);
    fields.read_elsewhere(&common::NAMES);
    fields.refuse_others(&mut check.problems);
    node
}
