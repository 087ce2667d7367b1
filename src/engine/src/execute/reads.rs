//! Which prompts of the config a visit reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use minijinja::Value as View;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use parking_lot::Mutex;

use super::scope::Prompts;
use crate::template::overlay;

/// The names of prompts that templates have read. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptReads(Arc<Mutex<BTreeSet<String>>>);

impl PromptReads {
    /// The same names, with `config.prompts` that adds to these reads.
    pub(super) fn recording(&self, scope: &View) -> View {
        let Ok(config) = scope.get_attr("config") else { return scope.clone() };
        let prompts = config.get_attr("prompts").ok().filter(|prompts| prompts.kind() == ValueKind::Map);
        let Some(prompts) = prompts else { return scope.clone() };
        let recorded = View::from_object(Recorded { prompts, reads: self.clone() });
        let config = overlay(&config, View::from_pairs([("prompts", recorded)]));
        overlay(scope, View::from_pairs([("config", config)]))
    }

    /// The names so far, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

/// `config.prompts` of one visit.
#[derive(Debug)]
struct Recorded {
    prompts: View,
    reads: PromptReads,
}

impl Object for Recorded {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, name: &View) -> Option<View> {
        let prompt = self.prompts.get_item(name).ok().filter(|prompt| !prompt.is_undefined())?;
        let inside = self.prompts.downcast_object_ref::<Prompts>().map(|prompts| prompts.read_by(name));
        let mut names = self.reads.0.lock();
        names.extend(name.as_str().map(str::to_owned));
        // A prompt's text may read others.
        names.extend(inside.into_iter().flatten());
        Some(prompt)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.prompts.try_iter() {
            Ok(names) => Enumerator::Values(names.collect()),
            Err(_) => Enumerator::Empty,
        }
    }
}
