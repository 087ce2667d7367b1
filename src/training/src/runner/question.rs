//! Asks the optimizer's model under the rules for case calls: same budget, same call journal.

use std::time::Duration;

use engine::Plan;
use engine::ports::Ports;
use serde_json::{Map, Value, json};

use super::{CaseError, CaseSettings, run_case};
use crate::calls::{Calls, Role};
use crate::case::Case;
use crate::optimize::Question;

/// Maximum duration of a reply, without the time in which the call waits.
const LIMIT: Duration = Duration::from_secs(180);

/// The optimizer's model did not reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReply {
    /// The run's budget is spent.
    Exhausted,
    /// The endpoint failed, for this reason.
    Failed(String),
}

/// Asks a question and returns the reply. `model`: node fields; `place`: the prompt's position among the trained
/// prompts.
///
/// # Errors
/// [`NoReply`].
pub async fn ask(
    calls: &Calls,
    settings: &CaseSettings,
    ports: Ports<'_>,
    model: &Map<String, Value>,
    question: &Question,
    place: usize,
) -> Result<String, NoReply> {
    let Question { proposal, ordinal, messages, .. } = question;
    // The seed of a call depends on its node, so each question of a run needs its own node name.
    let node = format!("proposal_{proposal}_{place}_{ordinal}");
    let plan = plan(&node, model).map_err(NoReply::Failed)?;
    let case = Case {
        id: node.clone(),
        index: 0,
        inputs: Map::from_iter([("messages".to_owned(), json!(messages))]),
        expected_output: Value::Null,
        metadata: Map::new(),
    };
    let settings = CaseSettings { inputs: Map::new(), mocks: None, limit: LIMIT, ..settings.clone() };
    let scope = calls.scope(Role::Optimizer, 0, node);
    let ran = run_case(&plan, &Map::new(), &case, &settings, &scope, ports).await;
    match ran.error {
        None => Ok(ran.output.as_str().unwrap_or_default().to_owned()),
        Some(CaseError::Exhausted) => Err(NoReply::Exhausted),
        Some(error) => Err(NoReply::Failed(error.message())),
    }
}

/// A single-node graph that sends the messages unchanged.
fn plan(name: &str, model: &Map<String, Value>) -> Result<Plan, String> {
    let mut node = model.clone();
    for (field, value) in
        [("name", name), ("type", "llm"), ("messages", "{{ inputs.messages }}"), ("attachments", "none")]
    {
        node.insert(field.to_owned(), json!(value));
    }
    let edges = json!([{"from": "START", "to": name}, {"from": name, "to": "END"}]);
    let output = format!("{{{{ results.{name}.text }}}}");
    let graph = json!({"format": "graph/1", "nodes": [node], "edges": edges, "output": output});
    engine::check(&graph).map_err(|problems| {
        let messages = problems.iter().map(|problem| problem.message.as_str());
        format!("the model of the optimizer cannot be used: {}", messages.collect::<Vec<_>>().join("; "))
    })
}

/// The problem with the optimizer's model, if any.
#[must_use]
pub fn optimizer_problem(model: &Map<String, Value>) -> Option<String> {
    plan("proposal", model).err()
}
