//! Applies updates to an unfinished item. Source: openai-chatkit 1.6.5 (`server.py`, pending items).

use serde_json::{Map, Value};

use super::content::{ContentPart, OutputText};
use super::event::ItemUpdate;
use super::item::ItemBody;

impl ItemUpdate {
    /// Changes an unfinished item. An update for another item kind, or for a missing part, changes nothing.
    pub fn apply(&self, body: &mut ItemBody) {
        match body {
            ItemBody::AssistantMessage { content, .. } => self.apply_to_message(content),
            ItemBody::Widget { widget, .. } => self.apply_to_widget(&mut widget.0),
            ItemBody::Workflow { workflow } => match self {
                Self::TaskAdded { task_index, task } => {
                    let at = index(*task_index).min(workflow.tasks.len());
                    workflow.tasks.insert(at, task.clone());
                }
                Self::TaskUpdated { task_index, task } => {
                    if let Some(known) = workflow.tasks.get_mut(index(*task_index)) {
                        known.clone_from(task);
                    }
                }
                _ => {}
            },
            ItemBody::GeneratedImage { image, progress } => {
                if let Self::ImageUpdated { image: new, progress: now } = self {
                    (*image, *progress) = (Some(new.clone()), *now);
                }
            }
            _ => {}
        }
    }

    fn apply_to_message(&self, content: &mut Vec<ContentPart>) {
        let (Self::PartAdded { content_index, .. }
        | Self::TextDelta { content_index, .. }
        | Self::AnnotationAdded { content_index, .. }
        | Self::PartDone { content_index, .. }) = self
        else {
            if let Self::PieceAdded { part: piece } = self
                && let Some(part) = part_of(content, 0)
            {
                part.text.push_str(&piece.text);
            }
            return;
        };
        let Some(part) = part_of(content, index(*content_index)) else { return };
        match self {
            Self::PartAdded { content: ContentPart::OutputText(new), .. }
            | Self::PartDone { content: ContentPart::OutputText(new), .. } => part.clone_from(new),
            Self::TextDelta { delta, .. } => part.text.push_str(delta),
            Self::AnnotationAdded { annotation_index, annotation, .. } => {
                let at = index(*annotation_index).min(part.annotations.len());
                part.annotations.insert(at, annotation.clone());
            }
            _ => {}
        }
    }

    fn apply_to_widget(&self, root: &mut Map<String, Value>) {
        match self {
            Self::WidgetUpdated { widget } => root.clone_from(&widget.0),
            Self::ComponentUpdated { component_id, component } => {
                if let Some(known) = component_of(root, component_id) {
                    known.clone_from(component);
                }
            }
            Self::ComponentText { component_id, delta, done } => {
                let Some(known) = component_of(root, component_id) else { return };
                if let Some(Value::String(text)) = known.get_mut("value") {
                    text.push_str(delta);
                }
                match done {
                    true => known.shift_remove("streaming"),
                    false => known.insert("streaming".to_owned(), Value::Bool(true)),
                };
            }
            _ => {}
        }
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A message part; appends a new one if missing.
fn part_of(content: &mut Vec<ContentPart>, at: usize) -> Option<&mut OutputText> {
    if at >= content.len() {
        content.push(ContentPart::text(""));
    }
    let at = at.min(content.len() - 1);
    content.get_mut(at).map(|ContentPart::OutputText(part)| part)
}

/// The component with this id, the root included.
fn component_of<'a>(root: &'a mut Map<String, Value>, id: &str) -> Option<&'a mut Map<String, Value>> {
    if root.get("id").and_then(Value::as_str) == Some(id) {
        return Some(root);
    }
    let children = root.get_mut("children")?.as_array_mut()?;
    children.iter_mut().filter_map(Value::as_object_mut).find_map(|child| component_of(child, id))
}
