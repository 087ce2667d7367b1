//! The rows for an action's start. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use store::batch::{Batch, RunRow, StreamRow};
use uuid::Uuid;
use wire::chat::ThreadItem;

use super::events::Widget;
use super::kind::{ActionData, ActionRuns};
use crate::kinds::turn::chat::ActionInput;
use crate::plans::LoadedVersion;
use crate::run::kind::{Progress, Run};
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
    let batch = Batch {
        runs: vec![RunRow {
            id,
            workspace_id: new.workspace,
            workflow_id: new.workflow,
            version_id: new.version.id,
            trigger: TRIGGER,
            thread_id: Some(new.thread),
            stream_id: Some(id),
            inputs: inputs.to_string(),
            options: new.session.as_ref().map(|session| json!({"session": session}).to_string()),
            created_at: now,
        }],
        // Without the thread, because only the service reads this stream.
        streams: vec![StreamRow {
            id,
            run_id: id,
            workflow_id: new.workflow,
            thread_id: None,
            dialect: None,
        }],
        ..Batch::default()
    };
    let key = new.action.key;
    let widget = new.widget.zip(key).map(|((id, item), key)| Widget { thread: new.thread, id, item, key });
    let run = Run {
        id,
        stream: id,
        workspace: new.workspace,
        workflow: new.workflow,
        version: Some(new.version),
        inputs,
        trigger: Cow::Borrowed(TRIGGER),
        placed: false,
        parked: 0,
        progress: Progress::New { next_seq: 1 },
        early: Mutex::default(),
        own: ActionData { thread: new.thread, widget, accepted: now, session: new.session },
    };
    (StartRows { workspace: new.workspace, stream: id, batch, events: None, queued: false }, run)
}
