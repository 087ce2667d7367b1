//! Computes updates between two states of an open item. Pure.

use serde_json::{Map, Value};
use wire::chat::{ItemBody, ItemUpdate, TaskList};

/// Returns the updates that readers receive for an open item's next state. Applied to the known state, they give the
/// new one, except for content that updates cannot express: that is sent with the complete item.
pub(super) fn between(known: &ItemBody, next: &ItemBody) -> Vec<ItemUpdate> {
    match (known, next) {
        (ItemBody::Widget { widget: known, .. }, ItemBody::Widget { widget: next, .. }) => {
            let update = match change(&known.0, &next.0) {
                ComponentChange::None => return Vec::new(),
                ComponentChange::Text { component_id, delta, done } => {
                    ItemUpdate::ComponentText { component_id, delta, done }
                }
                ComponentChange::Component(id, component) if name(&next.0) != Some(&id) => {
                    ItemUpdate::ComponentUpdated { component_id: id, component }
                }
                ComponentChange::Component(..) | ComponentChange::Unnamed => {
                    ItemUpdate::WidgetUpdated { widget: next.clone() }
                }
            };
            vec![update]
        }
        (ItemBody::Workflow { workflow: known }, ItemBody::Workflow { workflow: next }) => tasks(known, next),
        (ItemBody::GeneratedImage { .. }, ItemBody::GeneratedImage { image: Some(image), progress })
            if known != next =>
        {
            vec![ItemUpdate::ImageUpdated { image: image.clone(), progress: *progress }]
        }
        _ => Vec::new(),
    }
}

fn tasks(known: &TaskList, next: &TaskList) -> Vec<ItemUpdate> {
    if next.tasks.len() < known.tasks.len() {
        return Vec::new();
    }
    let told = known.tasks.iter().map(Some).chain(std::iter::repeat(None));
    let changed = (0_u32..).zip(next.tasks.iter().zip(told)).filter(|(_, (task, told))| Some(*task) != *told);
    changed
        .map(|(task_index, (task, told))| match told {
            Some(_) => ItemUpdate::TaskUpdated { task_index, task: task.clone() },
            None => ItemUpdate::TaskAdded { task_index, task: task.clone() },
        })
        .collect()
}

/// The difference between two states of a component.
enum ComponentChange {
    None,
    /// Only one component's text has grown.
    Text {
        component_id: String,
        delta: String,
        done: bool,
    },
    /// Only the component with this id differs.
    Component(String, Map<String, Value>),
    /// A component without an id differs, or several do.
    Unnamed,
}

fn change(known: &Map<String, Value>, next: &Map<String, Value>) -> ComponentChange {
    if known == next {
        return ComponentChange::None;
    }
    let inner = match same_but(&["children"], known, next) {
        true => change_inside(known, next),
        false => grown(known, next).unwrap_or(ComponentChange::Unnamed),
    };
    match (inner, name(next)) {
        (ComponentChange::Unnamed, Some(id)) if name(known) == Some(id) => {
            ComponentChange::Component(id.to_owned(), next.clone())
        }
        (inner, _) => inner,
    }
}

/// The difference within the only child that differs.
fn change_inside(known: &Map<String, Value>, next: &Map<String, Value>) -> ComponentChange {
    let (Some(known), Some(next)) = (children(known), children(next)) else {
        return ComponentChange::Unnamed;
    };
    let mut differing = known.iter().zip(next).filter(|(known, next)| known != next);
    match (differing.next(), differing.next()) {
        (Some((Value::Object(was), Value::Object(is))), None) if known.len() == next.len() => change(was, is),
        _ => ComponentChange::Unnamed,
    }
}

/// The text appended to a component, if it is equal otherwise.
fn grown(known: &Map<String, Value>, next: &Map<String, Value>) -> Option<ComponentChange> {
    let id = name(next).filter(|id| name(known) == Some(id))?;
    let is_text = matches!(next.get("type").and_then(Value::as_str), Some("Text" | "Markdown"));
    if !is_text || !same_but(&["value", "streaming"], known, next) {
        return None;
    }
    let delta = text(next)?.strip_prefix(text(known)?)?.to_owned();
    let done = match next.get("streaming") {
        None => true,
        Some(Value::Bool(true)) => false,
        Some(_) => return None,
    };
    Some(ComponentChange::Text { component_id: id.to_owned(), delta, done })
}

fn children(component: &Map<String, Value>) -> Option<&Vec<Value>> {
    component.get("children")?.as_array()
}

fn text(component: &Map<String, Value>) -> Option<&str> {
    component.get("value")?.as_str()
}

fn name(component: &Map<String, Value>) -> Option<&str> {
    component.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// Whether two components are equal except for these members.
fn same_but(members: &[&str], known: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let is_other = |name: &String| !members.contains(&name.as_str());
    let equal = |(name, value): (&String, &Value)| next.get(name) == Some(value);
    let others = |of: &Map<String, Value>| of.keys().filter(|name| is_other(name)).count();
    others(known) == others(next) && known.iter().filter(|(name, _)| is_other(name)).all(equal)
}

#[cfg(test)]
mod tests;
