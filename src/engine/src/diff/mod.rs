//! Compares two versions by node and field. Pure, with a fixed order.
//!
//! The graph's general parts come first, then the nodes in target order, then removed nodes, then node order, edges
//! and output. Equivalent values count as equal: `1` and `1.0`, a null member and an absent one.

mod edges;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wire::Change;

/// Parts compared after the nodes; all others come before them.
const LAST: [&str; 1] = ["output"];
/// Parts that are compared member by member.
const BY_MEMBER: [&str; 2] = ["state", "modules"];

/// Returns the differences between two graphs.
#[must_use]
pub fn diff(base: &Value, target: &Value) -> Vec<Change> {
    let empty = Map::new();
    let (base, target) = (base.as_object().unwrap_or(&empty), target.as_object().unwrap_or(&empty));
    let mut changes = Vec::new();
    let parts = union(base, target).into_iter().filter(|part| !matches!(*part, "nodes" | "edges"));
    let (last, first): (Vec<&str>, Vec<&str>) = parts.partition(|part| LAST.contains(part));
    for part in first {
        if BY_MEMBER.contains(&part) {
            members(part, base.get(part), target.get(part), 1, &mut changes);
        } else {
            compare(part, base.get(part), target.get(part), 0, &mut changes);
        }
    }
    nodes(list(base, "nodes"), list(target, "nodes"), &mut changes);
    edges::compare(list(base, "edges"), list(target, "edges"), &mut changes);
    for part in last {
        compare(part, base.get(part), target.get(part), 0, &mut changes);
    }
    changes
}

/// Returns the differences between two runnable configs: by member, and prompts by their own members.
#[must_use]
pub fn diff_config(base: Option<&Map<String, Value>>, target: Option<&Map<String, Value>>) -> Vec<Change> {
    let empty = Map::new();
    let (base, target) = (base.unwrap_or(&empty), target.unwrap_or(&empty));
    let mut changes = Vec::new();
    for member in union(base, target) {
        let field = format!("runnable_config.{member}");
        if member == "prompts" {
            members(&field, base.get(member), target.get(member), 2, &mut changes);
        } else {
            compare(&field, base.get(member), target.get(member), 0, &mut changes);
        }
    }
    changes
}

/// As [`compare`], for a part that counts as empty if absent.
fn members(
    field: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    let empty = Value::Object(Map::new());
    let there = |value: Option<&'_ Value>| value.is_some_and(|value| !value.is_null());
    let before = if there(before) { before } else { Some(&empty) };
    let after = if there(after) { after } else { Some(&empty) };
    compare(field, before, after, depth, changes);
}

/// Records a difference; compares two objects by member down to `depth`.
fn compare(
    field: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    if let (1.., Some(Value::Object(base)), Some(Value::Object(target))) = (depth, before, after) {
        for member in union(base, target) {
            let field = format!("{field}.{member}");
            compare(&field, base.get(member), target.get(member), depth - 1, changes);
        }
    } else if !same_member(before, after) {
        changes.push(change(None, Some(field), before, after));
    }
}

fn nodes(base: &[Value], target: &[Value], changes: &mut Vec<Change>) {
    let find = |nodes: &'_ [Value], name: &str| nodes.iter().position(|node| name_of(node) == name);
    for node in target {
        let name = name_of(node);
        match find(base, name).and_then(|index| base.get(index)) {
            Some(before) => fields(name, before, node, changes),
            None => changes.push(change(Some(name), None, None, Some(node))),
        }
    }
    let gone = |node: &&Value| find(target, name_of(node)).is_none();
    changes.extend(base.iter().filter(gone).map(|node| change(Some(name_of(node)), None, Some(node), None)));
    // Compares only common nodes: added and removed nodes are reported above.
    let common = |these: &[Value], those: &[Value]| -> Vec<Value> {
        let names = these.iter().map(name_of).filter(|name| find(those, name).is_some());
        names.map(Value::from).collect()
    };
    let (before, after) = (common(base, target), common(target, base));
    if before != after {
        changes.push(change(None, Some("nodes.order"), Some(&before.into()), Some(&after.into())));
    }
}

/// Compares the fields of a node that exists in both graphs.
fn fields(name: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(base), Value::Object(target)) => {
            for field in union(base, target) {
                let (before, after) = (base.get(field), target.get(field));
                if !same_member(before, after) {
                    changes.push(change(Some(name), Some(field), before, after));
                }
            }
        }
        _ if same(before, after) => {}
        _ => changes.push(change(Some(name), None, Some(before), Some(after))),
    }
}

fn change(node: Option<&str>, field: Option<&str>, before: Option<&Value>, after: Option<&Value>) -> Change {
    let value = |value: Option<&Value>| value.cloned().unwrap_or_default();
    Change {
        node: node.map(str::to_owned),
        field: field.map(str::to_owned),
        before: value(before),
        after: value(after),
    }
}

fn name_of(node: &Value) -> &str {
    node.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(graph: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    graph.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the names in both, sorted.
fn union<'a>(base: &'a Map<String, Value>, target: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    base.keys().chain(target.keys()).map(String::as_str).collect()
}

/// Compares two members; null counts as absent.
fn same_member(before: Option<&Value>, after: Option<&Value>) -> bool {
    let there = |value: Option<&'_ Value>| value.is_some_and(|value| !value.is_null());
    match (before, after) {
        (Some(before), Some(after)) => same(before, after),
        _ => there(before) == there(after),
    }
}

/// Whether two values have the same canonical form.
fn same(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Number(before), Value::Number(after)) => {
            before == after || before.as_f64().is_some_and(|number| after.as_f64() == Some(number))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| same(before, after))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .all(|(name, before)| after.get(name).is_some_and(|after| same(before, after)))
        }
        _ => before == after,
    }
}
