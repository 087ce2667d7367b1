//! The rows for an action's start. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use wire::chat::ThreadItem;

use super::events::Widget;
use super::kind::{ActionData, ActionRuns};
use crate::kinds::turn::chat::ActionInput;
use crate::plans::LoadedVersion;
use crate::run::kind::{Run, RunProgress, RunStart};
use crate::run::start::StartRows;

/// The trigger of action runs.
pub(super) const TRIGGER: &str = "action";

/// An action to execute.
pub struct NewAction {
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// The workflow.
    pub workflow: Uuid,
    /// The version to run.
    pub version: Arc<LoadedVersion>,
    /// The widget's thread.
    pub thread: ThreadId,
    /// The stored widget, with its key; `None` if the page itself acts.
    pub widget: Option<(ItemKey, ThreadItem)>,
    /// The action in the form that graphs receive.
    pub action: ActionInput,
    /// Arbitrary client data.
    pub metadata: Map<String, Value>,
    /// The session whose limits apply to its models.
    pub session: Option<String>,
}

/// All rows for an action's start.
pub(super) fn rows(new: NewAction, id: Uuid, now: DateTime<Utc>) -> (StartRows, Run<ActionRuns>) {
    let inputs = json!({
        "message": "",
        "thread_id": new.thread.to_string(),
        "attachments": [],
        "quoted_text": null,
        "inference_options": {},
        "metadata": new.metadata,
        "action": new.action,
    });
    let options = new.session.as_ref().map(|session| json!({"session": session}).to_string());
    let start = RunStart {
        id,
        stream: id,
        workspace: new.workspace,
        workflow: new.workflow,
        version: new.version,
        trigger: TRIGGER,
        thread: Some(new.thread),
        dialect: None,
        inputs,
        options,
    };
    let batch = start.batch(now);
    let key = new.action.key;
    let widget = new.widget.zip(key).map(|((id, item), key)| Widget { thread: new.thread, id, item, key });
    let own = ActionData { thread: new.thread, widget, accepted: now, session: new.session };
    let run = start.run(RunProgress::New { next_seq: 1 }, own);
    (StartRows { workspace: new.workspace, stream: id, batch, events: None, queued: false }, run)
}
