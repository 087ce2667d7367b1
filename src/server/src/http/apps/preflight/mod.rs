//! Checks whether the workflows of bindings can run for an app. They must exist, compile on this instance, name
//! existing credentials, fix all versions, and never wait for a person or a page. The same walk collects the contents
//! and permissions for a release.

mod graph;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bundle::MAX_FINDINGS;
use engine::NodeEffect;
use kernel::Clock;
use serde_json::{Map, Value};
use store::{Store, StoredWorkflow, WorkflowRef};
use uuid::Uuid;
use wire::{
    AppBinding, AppCollection, BundleFinding, CollectionVerb, ErrorCode, FrozenInclude, OutboundNode,
    PermissionWorkflow, shortened,
};

use super::upload::busy;
use crate::http::error::ApiResult;
use graph::Facts;

/// Maximum nesting depth of workflows, including the binding's own.
const MAX_DEPTH: usize = 8;
/// Maximum workflow versions for all bindings together.
const MAX_VERSIONS: usize = 200;
/// Timeout for the check.
const TIME: Duration = Duration::from_secs(10);
/// Nodes and tools whose result comes from a person or a page.
const FORBIDDEN: [&str; 4] = ["wait_for_input", "ask", "client_tool", "client_effect"];

/// The result for all bindings.
#[derive(Debug, Default)]
pub(super) struct Preflight {
    /// All reasons why bindings cannot run, at most [`MAX_FINDINGS`].
    pub(super) findings: Vec<BundleFinding>,
    /// The workflows run by each binding. Complete unless there are findings.
    pub(super) bindings: BTreeMap<String, Walked>,
    /// All workflows involved, by id.
    pub(super) workflows: BTreeMap<Uuid, PermissionWorkflow>,
}

/// The workflows that a binding runs.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) workflow: Uuid,
    pub(super) handle: String,
    pub(super) version: i32,
    pub(super) version_id: Uuid,
    /// The graph's SHA-256 in hexadecimal.
    pub(super) digest: String,
    pub(super) runnable_config: Option<Map<String, Value>>,
    /// The versions that run as sub-workflows, at any depth.
    pub(super) includes: BTreeSet<FrozenInclude>,
    /// All nodes and tools that act outside the service.
    pub(super) outbound: BTreeSet<OutboundNode>,
    /// All credentials named.
    pub(super) credentials: BTreeSet<String>,
    /// All operations on collections, by collection name.
    pub(super) data: BTreeMap<String, BTreeSet<CollectionVerb>>,
}

/// Checks bindings. `path` is the location of their declaration.
///
/// # Errors
/// [`crate::http::error::ApiError`] if the database does not answer, 503 if the check takes too long.
pub(super) async fn preflight(
    store: &Store,
    workspace: Uuid,
    bindings: &BTreeMap<String, AppBinding>,
    collections: &BTreeMap<String, AppCollection>,
    path: &'static str,
    clock: &dyn Clock,
) -> ApiResult<Preflight> {
    if bindings.is_empty() {
        return Ok(Preflight::default());
    }
    let credentials = store.credential_names(workspace).await?.into_iter().collect();
    let mut walk = Walk {
        store,
        workspace,
        path,
        credentials,
        collections,
        clock,
        end: clock.monotonic().saturating_add(TIME),
        known: HashMap::new(),
        found: Preflight::default(),
    };
    for (name, binding) in bindings {
        walk.binding(name, binding).await?;
    }
    walk.found.findings.truncate(MAX_FINDINGS);
    Ok(walk.found)
}

struct Walk<'a> {
    store: &'a Store,
    workspace: Uuid,
    path: &'static str,
    credentials: HashSet<String>,
    /// The collections of the release.
    collections: &'a BTreeMap<String, AppCollection>,
    clock: &'a dyn Clock,
    /// The deadline, in monotonic time.
    end: Duration,
    /// Facts about versions already read.
    known: HashMap<(Uuid, i32), Arc<Facts>>,
    found: Preflight,
}

/// A version named by a binding or by a node below it.
struct Step {
    workflow: String,
    version: i64,
    depth: usize,
    /// The binding or node that names it.
    named_by: String,
}

impl Walk<'_> {
    async fn binding(&mut self, name: &str, binding: &AppBinding) -> ApiResult<()> {
        let named_by = format!("Binding '{name}'");
        let (workflow, version) = (binding.workflow.clone(), i64::from(binding.version));
        let mut waiting = vec![Step { workflow, version, depth: 1, named_by }];
        // The depth is stored because another path to a version may be longer.
        let mut seen: HashMap<(Uuid, i32), usize> = HashMap::new();
        while let Some(step) = waiting.pop() {
            if self.found.findings.len() >= MAX_FINDINGS {
                return Ok(());
            }
            if self.clock.monotonic() >= self.end {
                return Err(busy());
            }
            self.step(name, &step, &mut seen, &mut waiting).await?;
        }
        Ok(())
    }

    async fn step(
        &mut self,
        binding: &str,
        step: &Step,
        seen: &mut HashMap<(Uuid, i32), usize>,
        waiting: &mut Vec<Step>,
    ) -> ApiResult<()> {
        let Step { workflow, version, depth, named_by } = step;
        let shown = shortened(workflow);
        let found = self.store.workflow(&WorkflowRef::parse(workflow), self.workspace).await?;
        let Some(found) = found.filter(|found| found.workspace_id == self.workspace) else {
            self.note(format!("{named_by}: the workspace has no workflow '{shown}'."));
            return Ok(());
        };
        if found.archived_at.is_some() {
            self.note(format!("{named_by}: the workflow '{shown}' is archived."));
            return Ok(());
        }
        let Some((number, facts)) = self.facts(found.id, *version).await? else {
            self.note(format!("{named_by}: the workflow '{shown}' has no version {version}."));
            return Ok(());
        };
        let known = seen.insert((found.id, number), *depth);
        if let Some(known) = known.filter(|known| known >= depth) {
            seen.insert((found.id, number), known);
            return Ok(());
        }
        if self.known.len() > MAX_VERSIONS {
            waiting.clear();
            self.note(format!(
                "Binding '{binding}': the app needs more than {MAX_VERSIONS} versions of workflows."
            ));
            return Ok(());
        }
        let place = format!("Binding '{binding}', workflow '{}' version {number}", found.handle);
        if known.is_none() {
            self.graph(&place, &facts);
            self.keep(binding, &found, number, &facts);
        }
        for node in facts.nodes.iter().filter(|node| node.kind == "sub_workflow") {
            let named_by = format!("{place}, node '{}'", shortened(&node.node));
            match fixed_version(node) {
                Some(_) if *depth >= MAX_DEPTH => {
                    self.note(format!("{named_by}: workflows run each other more than {MAX_DEPTH} levels deep."));
                }
                Some((workflow, version)) => {
                    waiting.push(Step { workflow, version, depth: depth + 1, named_by });
                }
                None => self.note(format!(
                    "{named_by}: 'workflow' and 'version' must name a fixed version, or the app would change with the workflow."
                )),
            }
        }
        Ok(())
    }

    /// Returns a version's facts; `None` if the workflow has no such version.
    async fn facts(&mut self, workflow: Uuid, version: i64) -> ApiResult<Option<(i32, Arc<Facts>)>> {
        let Ok(number) = i32::try_from(version) else { return Ok(None) };
        if let Some(known) = self.known.get(&(workflow, number)) {
            return Ok(Some((number, Arc::clone(known))));
        }
        let Some(stored) = self.store.version(workflow, number).await? else { return Ok(None) };
        let facts = Arc::new(Facts::read(stored).await?);
        self.known.insert((workflow, number), Arc::clone(&facts));
        Ok(Some((number, facts)))
    }

    /// Adds a version to a binding's result; the first one is the binding's own.
    fn keep(&mut self, binding: &str, workflow: &StoredWorkflow, number: i32, facts: &Facts) {
        let shown = PermissionWorkflow { handle: workflow.handle.clone(), name: workflow.name.clone() };
        self.found.workflows.insert(workflow.id, shown);
        let credentials = facts.credentials.iter().map(|(_, credential)| credential.clone());
        match self.found.bindings.get_mut(binding) {
            Some(walked) => {
                walked.includes.insert(facts.include(workflow.id, number));
                walked.credentials.extend(credentials);
                facts.outbound(workflow.id, number, &mut walked.outbound);
                facts.data(&mut walked.data);
            }
            None => {
                let mut walked = Walked {
                    workflow: workflow.id,
                    handle: workflow.handle.clone(),
                    version: number,
                    version_id: facts.id,
                    digest: facts.digest.clone(),
                    runnable_config: facts.runnable_config.clone(),
                    includes: BTreeSet::new(),
                    outbound: BTreeSet::new(),
                    credentials: credentials.collect(),
                    data: BTreeMap::new(),
                };
                facts.outbound(workflow.id, number, &mut walked.outbound);
                facts.data(&mut walked.data);
                self.found.bindings.insert(binding.to_owned(), walked);
            }
        }
    }

    /// Reports problems in a version's own graph.
    fn graph(&mut self, place: &str, facts: &Facts) {
        if let Some(problem) = &facts.problem {
            self.note(format!("{place}: the graph does not compile: {problem}."));
        }
        for (node, credential) in &facts.credentials {
            if !self.credentials.contains(credential) {
                let (node, credential) = (shortened(node), shortened(credential));
                self.note(format!("{place}, node '{node}': the workspace has no credential '{credential}'."));
            }
        }
        for used in &facts.collections {
            let node = shortened(&used.node);
            match &used.collection {
                None => self.note(format!(
                    "{place}, node '{node}': 'collection' must name a collection, not a template."
                )),
                Some(name) if !self.collections.contains_key(name) => {
                    self.note(format!(
                        "{place}, node '{node}': the app has no collection '{}'.",
                        shortened(name)
                    ));
                }
                Some(_) => {}
            }
        }
        for node in facts.nodes.iter().filter(|node| FORBIDDEN.contains(&node.kind.as_str())) {
            let name = shortened(&node.node);
            self.note(format!(
                "{place}, node '{name}': an app cannot run '{}', which waits for a person or a page.",
                node.kind
            ));
        }
    }

    fn note(&mut self, detail: String) {
        let code = ErrorCode::WorkflowPreflightFailed.as_str().to_owned();
        self.found.findings.push(BundleFinding {
            code,
            path: Some(self.path.to_owned()),
            line: None,
            detail,
        });
    }
}

/// Returns the version that a node runs, if it is fixed.
fn fixed_version(node: &NodeEffect) -> Option<(String, i64)> {
    let reference = node.workflow.as_ref()?;
    let version = i64::try_from(reference.version?).ok()?;
    Some((reference.workflow.clone(), version))
}
