//! Edges have no names: those with the same sources count as the same edge, in order.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::Change;

use super::{change, same};

const FIELD: Option<&str> = Some("edges");

pub(super) fn compare(base: &[Value], target: &[Value], changes: &mut Vec<Change>) {
    // An edge in both graphs is unchanged, wherever its position.
    let mut left: Vec<Option<&Value>> = base.iter().map(Some).collect();
    let mut new = Vec::new();
    let mut kept = Vec::new();
    for edge in target {
        match left.iter().position(|other| other.is_some_and(|other| same(other, edge))) {
            Some(index) => {
                if let Some(place) = left.get_mut(index) {
                    *place = None;
                }
                kept.push(index);
            }
            None => new.push(edge),
        }
    }
    let mut gone: BTreeMap<Vec<&str>, Vec<&Value>> = BTreeMap::new();
    for edge in left.into_iter().flatten().rev() {
        gone.entry(sources(edge)).or_default().push(edge);
    }
    for edge in new {
        let before = gone.get_mut(&sources(edge)).and_then(Vec::pop);
        changes.push(change(None, FIELD, before, Some(edge)));
    }
    let rest = base.iter().filter(|edge| take(&mut gone, edge));
    changes.extend(rest.map(|edge| change(None, FIELD, Some(edge), None)));
    if !kept.is_sorted() {
        let these = |places: &[usize]| -> Value {
            places.iter().filter_map(|place| base.get(*place)).cloned().collect::<Vec<_>>().into()
        };
        let after = these(&kept);
        kept.sort_unstable();
        changes.push(change(None, Some("edges.order"), Some(&these(&kept)), Some(&after)));
    }
}

/// Whether this edge was removed; each removal counts once.
fn take<'a>(gone: &mut BTreeMap<Vec<&'a str>, Vec<&'a Value>>, edge: &'a Value) -> bool {
    let Some(edges) = gone.get_mut(&sources(edge)) else { return false };
    let index = edges.iter().position(|other| std::ptr::eq(*other, edge));
    index.map(|index| edges.remove(index)).is_some()
}

/// Returns an edge's sources, sorted: a join's order has no meaning.
fn sources(edge: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = match edge.get("from") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.sort_unstable();
    names
}
