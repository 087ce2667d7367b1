//! Finds the undefined names in a template.

use std::collections::{BTreeSet, HashSet};

use minijinja::Value as View;
use minijinja::value::ValueKind;

use crate::NodeError;
use crate::template::ENVIRONMENT;

/// Maximum listed names per object.
const MOST_LISTED: usize = 12;

/// Builds the error for a template that uses these dotted names, at least one of them undefined in the scope.
pub(crate) fn error(names: HashSet<String>, scope: &View) -> NodeError {
    let missing: BTreeSet<String> = names.iter().filter_map(|name| first_missing(name, scope)).collect();
    let missing: Vec<&String> = missing.iter().collect();
    NodeError::failed(match missing[..] {
        [] => "a value is not defined".to_owned(),
        [one] => format!("'{one}' is not defined{}", siblings(one, scope)),
        _ => {
            let named: Vec<String> = missing.iter().map(|name| format!("'{name}'")).collect();
            format!("{} is not defined", named.join(" or "))
        }
    })
}

/// Returns a dotted name up to its first undefined part.
fn first_missing(name: &str, scope: &View) -> Option<String> {
    let mut value = scope.clone();
    let mut end = 0_usize;
    for part in name.split('.') {
        let is_global = end == 0 && ENVIRONMENT.globals().any(|(global, _)| global == part);
        if is_global {
            return None;
        }
        end = end.saturating_add(part.len());
        value = value
            .get_attr(part)
            .ok()
            .filter(|value| !value.is_undefined())
            .or_else(|| value.get_item(&View::from(part)).ok().filter(|value| !value.is_undefined()))
            .unwrap_or_default();
        if value.is_undefined() {
            return name.get(..end).map(str::to_owned);
        }
        end = end.saturating_add(1);
    }
    None
}

/// Lists the siblings of a missing name.
fn siblings(name: &str, scope: &View) -> String {
    let Some((parent, _)) = name.rsplit_once('.') else { return String::new() };
    let value = parent.split('.').try_fold(scope.clone(), |value, part| value.get_attr(part).ok());
    let Some(value) = value.filter(|value| value.kind() == ValueKind::Map) else { return String::new() };
    let Ok(keys) = value.try_iter() else { return String::new() };
    let known: BTreeSet<String> = keys.filter_map(|key| key.as_str().map(|key| format!("'{key}'"))).collect();
    if known.is_empty() || known.len() > MOST_LISTED {
        return String::new();
    }
    format!("; '{parent}' has {}", known.into_iter().collect::<Vec<_>>().join(", "))
}
