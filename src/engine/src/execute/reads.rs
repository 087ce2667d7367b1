//! Tracks which config prompts a visit reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use minijinja::Value as View;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use models::Message;
use parking_lot::Mutex;

use super::scope::Prompts;
use crate::template::overlay;

/// The prompts that templates have read. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptReads(Arc<Mutex<Reads>>);

#[derive(Debug, Default)]
struct Reads {
    names: BTreeSet<String>,
    /// Prompts that a model's instructions read and whose demos can be trained.
    trained_by_demos: BTreeSet<String>,
    /// Number of demo messages after the instructions.
    demo_messages: usize,
}

impl PromptReads {
    /// Returns a scope with the same names whose `config.prompts` records reads here.
    pub(super) fn recording(&self, scope: &View) -> View {
        let Ok(config) = scope.get_attr("config") else { return scope.clone() };
        let prompts = config.get_attr("prompts").ok().filter(|prompts| prompts.kind() == ValueKind::Map);
        let Some(prompts) = prompts else { return scope.clone() };
        let recorded = View::from_object(Recorded { prompts, reads: self.clone() });
        let config = overlay(&config, View::from_pairs([("prompts", recorded)]));
        overlay(scope, View::from_pairs([("config", config)]))
    }

    /// The names read so far, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().names.iter().cloned().collect()
    }

    /// The prompts with `demos_trainable` that a model's instructions have read, sorted, and their number of demo
    /// messages.
    pub(super) fn trained_by_demos(&self) -> (Vec<String>, usize) {
        let reads = self.0.lock();
        (reads.trained_by_demos.iter().cloned().collect(), reads.demo_messages)
    }
}

/// Fills a model's instructions with `fill`. Returns the result, and the messages that `demos` builds from the
/// prompts read, in name order. Records both for the visit.
pub(crate) fn reading_instructions<T>(
    scope: &View,
    fill: impl FnOnce(&View) -> T,
    demos: impl FnOnce(&[View]) -> Vec<Message>,
) -> (T, Vec<Message>) {
    let reads = PromptReads::default();
    let filled = fill(&reads.recording(scope));
    let Some(all) = prompts_of(scope) else { return (filled, Vec::new()) };
    let names = reads.names();
    let prompts: Vec<View> =
        names.iter().map(|name| all.get_item(&View::from(name.as_str())).unwrap_or_default()).collect();
    let messages = demos(&prompts);
    if let Some(visit) = all.downcast_object_ref::<Recorded>() {
        let is_trained = |(_, prompt): &(String, &View)| {
            prompt.get_attr("demos_trainable").is_ok_and(|trainable| trainable == View::from(true))
        };
        let trained = names.into_iter().zip(&prompts).filter(is_trained).map(|(name, _)| name);
        let mut reads = visit.reads.0.lock();
        reads.trained_by_demos.extend(trained);
        reads.demo_messages += messages.len();
    }
    (filled, messages)
}

fn prompts_of(scope: &View) -> Option<View> {
    let prompts = scope.get_attr("config").ok()?.get_attr("prompts").ok()?;
    (prompts.kind() == ValueKind::Map).then_some(prompts)
}

/// `config.prompts` for one visit, or for one of its templates.
#[derive(Debug)]
struct Recorded {
    prompts: View,
    reads: PromptReads,
}

/// Returns the prompts that this prompt's text has read.
fn read_by(prompts: &View, name: &View) -> Vec<String> {
    if let Some(recorded) = prompts.downcast_object_ref::<Recorded>() {
        return read_by(&recorded.prompts, name);
    }
    prompts.downcast_object_ref::<Prompts>().map(|prompts| prompts.read_by(name)).unwrap_or_default()
}

impl Object for Recorded {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, name: &View) -> Option<View> {
        let prompt = self.prompts.get_item(name).ok().filter(|prompt| !prompt.is_undefined())?;
        let inside = read_by(&self.prompts, name);
        let mut reads = self.reads.0.lock();
        reads.names.extend(name.as_str().map(str::to_owned));
        // A prompt's text may read other prompts.
        reads.names.extend(inside);
        Some(prompt)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.prompts.try_iter() {
            Ok(names) => Enumerator::Values(names.collect()),
            Err(_) => Enumerator::Empty,
        }
    }
}
