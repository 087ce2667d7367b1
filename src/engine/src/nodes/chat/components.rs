//! Widget components that every client can read. Source: openai-chatkit 1.6.5, `widgets.py`.

use std::collections::HashSet;

use serde_json::{Map, Value};
use wire::FieldError;

use super::icons;

/// Root components that a graph may send; `Basic` is for entity previews.
const ROOTS: [&str; 2] = ["Card", "ListView"];
/// Maximum widget size in JSON bytes.
const LARGEST: usize = 256 << 10;
/// Maximum component nesting.
const DEEPEST: usize = 32;
/// Maximum components per widget.
const MOST: usize = 2_000;

/// Checks a widget. Returns problems with pointers below `base`.
pub(super) fn problems(widget: &Value, base: &str) -> Vec<FieldError> {
    let bytes = widget.to_string().len();
    if bytes > LARGEST {
        let most = LARGEST >> 10;
        return vec![FieldError::new(
            base,
            "length",
            format!("must have at most {most} KiB, not {bytes} bytes"),
        )];
    }
    let mut reader = ComponentChecker::default();
    match widget.as_object() {
        Some(root) => {
            let is_root = |kind: &Value| kind.as_str().is_some_and(|kind| ROOTS.contains(&kind));
            if root.get("type").is_some_and(|kind| kind.is_string() && !is_root(kind)) {
                let text = format!("must be {}", ROOTS.join(" or "));
                reader.problems.push(FieldError::new(format!("{base}/type"), "choice", text));
            }
            reader.component(root, base, 1);
        }
        None => {
            reader.problems.push(FieldError::new(base, "type", "must be an object: the root of a widget"))
        }
    }
    reader.problems
}

#[derive(Default)]
struct ComponentChecker<'a> {
    problems: Vec<FieldError>,
    ids: HashSet<&'a str>,
    components: usize,
}

impl<'a> ComponentChecker<'a> {
    fn component(&mut self, component: &'a Map<String, Value>, at: &str, depth: usize) {
        self.components += 1;
        if self.components == MOST + 1 {
            self.report(at, "length", format!("more than {MOST} components"));
        }
        if depth > DEEPEST {
            self.report(at, "depth", format!("more than {DEEPEST} components inside one another"));
            return;
        }
        if !component.contains_key("type") {
            self.report(at, "required", "has no \"type\"".to_owned());
        }
        for name in ["type", "id", "key"] {
            let Some(value) = component.get(name).filter(|value| !value.is_null()) else { continue };
            match value.as_str() {
                None => self.report(&format!("{at}/{name}"), "type", "must be a string".to_owned()),
                Some(id) if name == "id" && !self.ids.insert(id) => {
                    self.report(&format!("{at}/id"), "unique", "is the id of another component".to_owned());
                }
                Some(_) => {}
            }
        }
        let icon =
            if component.get("type").and_then(Value::as_str) == Some("Icon") { "name" } else { "icon" };
        for name in [icon, "iconStart", "iconEnd"] {
            self.icon(component.get(name), &format!("{at}/{name}"));
        }
        self.icon(
            component.get("status").and_then(|status| status.get("icon")),
            &format!("{at}/status/icon"),
        );
        let at = format!("{at}/children");
        match component.get("children") {
            Some(Value::Array(children)) => {
                for (index, child) in children.iter().enumerate() {
                    self.child(child, &format!("{at}/{index}"), depth);
                }
            }
            None | Some(Value::Null) => {}
            Some(child) => self.child(child, &at, depth),
        }
    }

    fn child(&mut self, child: &'a Value, at: &str, depth: usize) {
        match child {
            Value::Object(component) => self.component(component, at, depth + 1),
            _ => self.report(at, "type", "must be a component: an object with a \"type\"".to_owned()),
        }
    }

    fn icon(&mut self, name: Option<&Value>, at: &str) {
        let Some(name) = name.filter(|name| !name.is_null()) else { return };
        if !name.as_str().is_some_and(icons::is_known) {
            let text =
                "must be an icon of ChatKit, or a name with the prefix `lucide:` or `vendor:`".to_owned();
            self.report(at, "choice", text);
        }
    }

    fn report(&mut self, at: &str, code: &'static str, message: String) {
        self.problems.push(FieldError::new(at, code, message));
    }
}

/// The widget as sent: unset members are absent, and so is `streaming` on a complete text.
pub(super) fn as_sent(widget: Value) -> Value {
    match widget {
        Value::Object(component) => {
            Value::Object(component.into_iter().filter_map(|(name, value)| member(name, value)).collect())
        }
        other => other,
    }
}

fn member(name: String, value: Value) -> Option<(String, Value)> {
    let value = match (name.as_str(), value) {
        (_, Value::Null) | ("streaming", Value::Bool(false)) => return None,
        ("children", Value::Array(children)) => children.into_iter().map(as_sent).collect(),
        ("children", child) => as_sent(child),
        (_, value) => value,
    };
    Some((name, value))
}

#[cfg(test)]
mod tests;
