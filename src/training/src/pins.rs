//! The versions of other workflows that a run executes: the versions that were live at its start, pinned for all
//! cases and after each crash.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use async_trait::async_trait;
use engine::ports::{Resolved, Workflows};
use engine::{NodeError, Reference, references};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wire::{ErrorCode, FieldError};

use crate::calls::PricedModel;
use crate::prices::models_of_graph;
use crate::prompts::has_trainable;

/// Maximum versions per run.
const MOST: usize = 500;

/// A workflow that a graph or an evaluator names, and its pinned version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The handle or id, as written in the reference.
    pub workflow: String,
    /// The requested version; `None`: the live one.
    pub asked: Option<u64>,
    /// The version number.
    pub version: Option<u64>,
    /// The version id.
    pub version_id: String,
}

/// A stored workflow version.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundVersion {
    /// The version id.
    pub id: String,
    /// The version number.
    pub number: Option<u64>,
    /// The graph.
    pub graph: Value,
    /// The runnable config.
    pub config: Map<String, Value>,
}

/// Looks up workflow versions in a workspace.
#[async_trait]
pub trait Versions: Send + Sync {
    /// The lookup error.
    type Error;

    /// Finds a version by the workflow's handle or id; without a version, the live one.
    async fn find(&self, workflow: &str, version: Option<u64>) -> Result<Option<FoundVersion>, Self::Error>;
}

/// A run's pinned versions, stored as `pins` in its row and in `training_started`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pins(Vec<Pin>);

/// A starting run's pinned versions, with their graphs.
#[derive(Debug, Default, PartialEq)]
pub struct Resolution {
    /// The pinned versions.
    pub pins: Pins,
    /// Workflows, as named in the references, whose configs have trainable prompts.
    pub with_trainable: Vec<String>,
    graphs: BTreeMap<String, Value>,
    /// The models that each graph names, by version id.
    models: BTreeMap<String, BTreeSet<PricedModel>>,
}

impl Resolution {
    /// The graph that a node or an evaluator executes.
    #[must_use]
    pub fn graph(&self, reference: &Reference) -> Option<&Value> {
        self.version(reference).map(|(_, graph)| graph)
    }

    /// All graphs.
    pub(crate) fn graphs(&self) -> impl Iterator<Item = &Value> {
        self.graphs.values()
    }

    /// The models that the named workflows use, directly or through the workflows they name.
    pub(crate) fn models_of(&self, named: Vec<Reference>) -> BTreeSet<PricedModel> {
        let (mut left, mut seen, mut found) = (named, BTreeSet::new(), BTreeSet::new());
        while let Some(reference) = left.pop() {
            let Some((id, graph)) = self.version(&reference) else { continue };
            if seen.insert(id) {
                found.extend(self.models.get(id).into_iter().flatten().cloned());
                left.extend(references(graph));
            }
        }
        found
    }

    /// A pinned version's id and graph.
    pub(crate) fn version(&self, reference: &Reference) -> Option<(&str, &Value)> {
        let id = &self.pins.find(&reference.workflow, reference.version)?.version_id;
        Some((id, self.graphs.get(id)?))
    }
}

/// Resolves the versions of all named workflows and, transitively, of the workflows that they name. A missing
/// workflow is a problem at the pointer of the reference that led to it.
///
/// # Errors
/// The database did not answer.
pub async fn resolve<E>(
    named: Vec<Reference>,
    versions: &dyn Versions<Error = E>,
    problems: &mut Vec<FieldError>,
) -> Result<Resolution, E> {
    let mut resolution = Resolution::default();
    let mut named = VecDeque::from(named);
    let mut missing = BTreeSet::new();
    while let Some(Reference { pointer, workflow, version: asked }) = named.pop_front() {
        if resolution.pins.find(&workflow, asked).is_some() || missing.contains(&(workflow.clone(), asked)) {
            continue;
        }
        if resolution.pins.0.len() + missing.len() >= MOST {
            let message = format!("needs more than {MOST} versions of other workflows");
            problems.push(FieldError::new(pointer, "too_large", message));
            break;
        }
        let Some(found) = versions.find(&workflow, asked).await? else {
            problems.push(not_found(pointer, &workflow, asked));
            missing.insert((workflow, asked));
            continue;
        };
        // Pointers into other graphs mean nothing to the caller.
        let inside = references(&found.graph).into_iter();
        named.extend(inside.map(|reference| Reference { pointer: pointer.clone(), ..reference }));
        if has_trainable(&found.config) && !resolution.with_trainable.contains(&workflow) {
            resolution.with_trainable.push(workflow.clone());
        }
        let (version, version_id) = (found.number, found.id);
        resolution.models.insert(version_id.clone(), models_of_graph(&found.graph, &found.config));
        resolution.graphs.insert(version_id.clone(), found.graph);
        resolution.pins.0.push(Pin { workflow, asked, version, version_id });
    }
    Ok(resolution)
}

fn not_found(pointer: String, workflow: &str, version: Option<u64>) -> FieldError {
    let version = match version {
        Some(version) => format!("a version {version}"),
        None => "a version".to_owned(),
    };
    let message = format!("this workspace has no workflow '{workflow}' with {version}");
    FieldError::new(pointer, "workflow_not_found", message)
}

impl Pins {
    fn find(&self, workflow: &str, asked: Option<u64>) -> Option<&Pin> {
        self.0.iter().find(|pin| pin.workflow == workflow && pin.asked == asked)
    }

    /// Restricts a workflow lookup to the pinned versions.
    #[must_use]
    pub fn over<'a>(&'a self, workflows: &'a dyn Workflows) -> PinnedWorkflows<'a> {
        PinnedWorkflows { pins: self, workflows }
    }
}

/// Finds only a run's pinned versions.
pub struct PinnedWorkflows<'a> {
    pins: &'a Pins,
    workflows: &'a dyn Workflows,
}

#[async_trait]
impl Workflows for PinnedWorkflows<'_> {
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError> {
        match self.pins.find(workflow, version.map(u64::from)) {
            Some(pin) => self.workflows.version(&pin.version_id).await,
            None => {
                let message = format!("the run has started without a version of the workflow '{workflow}'");
                Err(NodeError::new(ErrorCode::WorkflowNotFound, message))
            }
        }
    }

    async fn version(&self, id: &str) -> Result<Resolved, NodeError> {
        self.workflows.version(id).await
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    /// Workflows by handle; the last version is live.
    #[derive(Default)]
    struct Stored(Mutex<Vec<(&'static str, u64, Value)>>);

    #[async_trait]
    impl Versions for Stored {
        type Error = Infallible;

        async fn find(
            &self,
            workflow: &str,
            version: Option<u64>,
        ) -> Result<Option<FoundVersion>, Infallible> {
            let stored = self.0.lock();
            let is_wanted = |(handle, number, _): &&(&str, u64, Value)| {
                *handle == workflow && version.is_none_or(|version| version == *number)
            };
            Ok(stored.iter().rev().find(is_wanted).map(|(handle, number, graph)| FoundVersion {
                id: format!("{handle}@{number}"),
                number: Some(*number),
                graph: graph.clone(),
                config: Map::new(),
            }))
        }
    }

    /// One workflow with this graph.
    pub(crate) fn resolution(workflow: &'static str, graph: Value) -> Resolution {
        let stored = Stored::default();
        stored.0.lock().push((workflow, 1, graph));
        let named = vec![Reference { pointer: String::new(), workflow: workflow.into(), version: None }];
        resolve(named, &stored, &mut Vec::new()).now_or_never().unwrap().unwrap()
    }

    fn naming(workflows: &[(&str, Option<u64>)]) -> Value {
        let node = |(place, (workflow, version)): (usize, &(&str, Option<u64>))| json!({"name": format!("n{place}"), "type": "sub_workflow", "workflow": workflow, "version": version});
        json!({"nodes": workflows.iter().enumerate().map(node).collect::<Vec<_>>()})
    }

    fn resolved(graph: &Value, stored: &Stored) -> (Vec<String>, Vec<String>) {
        let mut problems = Vec::new();
        let found = resolve(references(graph), stored, &mut problems).now_or_never().unwrap().unwrap();
        let pins = found.pins.0.iter().map(|pin| pin.version_id.clone()).collect();
        (pins, problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect())
    }

    #[test]
    fn live_versions_are_found_through_all_workflows_once() {
        let stored = Stored::default();
        let inner = naming(&[("leaf", None), ("root", None)]);
        stored.0.lock().extend([
            ("leaf", 1, json!({"nodes": []})),
            ("leaf", 2, json!({"nodes": []})),
            ("root", 1, inner),
        ]);
        let graph = naming(&[("root", None), ("leaf", Some(1)), ("root", None)]);
        assert_eq!(
            resolved(&graph, &stored),
            (vec!["root@1".into(), "leaf@1".into(), "leaf@2".into()], vec![])
        );
    }

    #[test]
    fn missing_workflows_are_reported_at_their_references() {
        let stored = Stored::default();
        stored.0.lock().push(("root", 1, naming(&[("gone", None)])));
        let graph = naming(&[("none", None), ("root", None), ("root", Some(7))]);
        let problems =
            ["/nodes/0 workflow_not_found", "/nodes/2 workflow_not_found", "/nodes/1 workflow_not_found"];
        assert_eq!(resolved(&graph, &stored), (vec!["root@1".into()], problems.map(String::from).to_vec()));
    }

    #[test]
    fn too_many_versions_are_rejected() {
        let stored = Stored::default();
        for number in 1..=u64::try_from(MOST).unwrap() + 1 {
            stored.0.lock().push(("many", number, json!({"nodes": []})));
        }
        let all: Vec<_> =
            (1..=u64::try_from(MOST).unwrap() + 1).map(|number| ("many", Some(number))).collect();
        let (pins, problems) = resolved(&naming(&all), &stored);
        assert_eq!((pins.len(), problems), (MOST, vec![format!("/nodes/{MOST} too_large")]));
    }

    #[test]
    fn written_pins_are_read_back() {
        let stored = Stored::default();
        stored.0.lock().push(("leaf", 3, json!({"nodes": []})));
        let mut problems = Vec::new();
        let named = vec![Reference { pointer: String::new(), workflow: "leaf".into(), version: None }];
        let found = resolve(named.clone(), &stored, &mut problems).now_or_never().unwrap().unwrap();
        let written = serde_json::to_value(&found.pins).unwrap();
        assert_eq!(
            written,
            json!([{"workflow": "leaf", "asked": null, "version": 3, "version_id": "leaf@3"}])
        );
        assert_eq!(serde_json::from_value::<Pins>(written).unwrap(), found.pins);
        assert_eq!(found.graph(&named[0]), Some(&json!({"nodes": []})));
    }
}
