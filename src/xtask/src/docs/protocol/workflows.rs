//! Workflow examples.

use anyhow::Result;
use serde_json::{Map, Value, json};
use wire::{
    BusyThread, Change, ChatSettings, Checked, CreateVersion, CreateWorkflow, FieldError, Listed,
    NodeTypeRecord, PublicWorkflow, PublishRequest, Published, UpdateChatSettings, UpdateWorkflow,
    VersionDiff, VersionRecord, VersionSummary, WorkflowRecord,
};

use super::block;
use super::chat::WORKFLOW;

const AT: &str = "2026-01-01T12:00:00.000Z";

pub(super) fn create_workflow() -> Result<String> {
    block(&CreateWorkflow {
        name: "Order desk".into(),
        handle: Some("order-desk".into()),
        description: Some("Says where an order is.".into()),
        tags: vec!["support".into()],
    })
}

pub(super) fn update_workflow() -> Result<String> {
    block(&UpdateWorkflow {
        description: Some(None),
        chat: Some(UpdateChatSettings {
            busy: Some(BusyThread::Interrupt),
            start_prompts: Some(vec![json!({"label": "My order", "prompt": "Where is my order?"})]),
            models: Some(vec![json!({"id": "openai/gpt-4o-mini", "label": "Quick"})]),
        }),
        max_concurrent_runs: Some(Some(8)),
        ..UpdateWorkflow::default()
    })
}

fn record() -> WorkflowRecord {
    WorkflowRecord {
        id: WORKFLOW.into(),
        handle: "order-desk".into(),
        name: "Order desk".into(),
        description: Some("Says where an order is.".into()),
        tags: vec!["support".into()],
        workspace_id: "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b".into(),
        is_public: true,
        require_login: false,
        published_at: Some(AT.into()),
        published_by: None,
        share_url: Some(share_url()),
        is_archived: false,
        latest_version: Some(1),
        live_version: Some(1),
        chat: ChatSettings::default(),
        max_concurrent_runs: None,
        created_at: AT.into(),
        updated_at: AT.into(),
    }
}

fn share_url() -> String {
    format!("http://localhost:8000/chat/{WORKFLOW}")
}

pub(super) fn workflow() -> Result<String> {
    block(&record())
}

pub(super) fn public_workflow() -> Result<String> {
    let WorkflowRecord { id, name, description, require_login, chat, .. } = record();
    block(&PublicWorkflow { id, name, description, require_login, share_url: share_url(), chat })
}

fn graph() -> Value {
    json!({
        "format": "graph/1",
        "nodes": [{"name": "answer", "type": "reply", "text": "You said: {{ inputs.message }}"}],
        "edges": [{"from": "START", "to": "answer"}, {"from": "answer", "to": "END"}],
    })
}

pub(super) fn create_version() -> Result<String> {
    block(&CreateVersion {
        graph: graph(),
        runnable_config: None,
        metadata: None,
        notes: Some("First.".into()),
    })
}

pub(super) fn version() -> Result<String> {
    block(&VersionRecord {
        id: "0198c2e9-0c44-7f21-a3b2-4d5e6f708192".into(),
        workflow_id: WORKFLOW.into(),
        version: Some(1),
        draft: false,
        digest: "9f2c…".into(),
        graph: graph(),
        runnable_config: None,
        metadata: Map::new(),
        notes: Some("First.".into()),
        created_by: None,
        created_at: AT.into(),
    })
}

pub(super) fn versions() -> Result<String> {
    let summary = VersionSummary {
        id: "0198c2e9-0c44-7f21-a3b2-4d5e6f708192".into(),
        workflow_id: WORKFLOW.into(),
        version: Some(1),
        draft: false,
        digest: "9f2c…".into(),
        notes: Some("First.".into()),
        created_by: None,
        created_at: AT.into(),
    };
    block(&Listed { data: vec![summary], next_cursor: None })
}

pub(super) fn publish() -> Result<String> {
    let request = serde_json::to_string_pretty(&PublishRequest { require_login: Some(false) })?;
    let published = serde_json::to_value(Published { workflow: record(), share_url: share_url() })?;
    let members = published.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    let members = members.unwrap_or_default().join("` and `");
    Ok(format!(
        "```json\n{request}\n```\n\nThe answer has the members `{members}`; the share address ends with the \
         workflow's id."
    ))
}

pub(super) fn check() -> Result<String> {
    let problem = FieldError::new("/nodes/0/type", "unknown_type", "unknown node type 'replay'")
        .suggest("did you mean 'reply'?");
    let warning =
        FieldError::new("/nodes/1/workflow", "unknown_workflow", "this workspace has no workflow 'refnud'")
            .suggest("did you mean 'refund'?");
    block(&Checked { valid: false, errors: vec![problem], warnings: vec![warning] })
}

pub(super) fn diff() -> Result<String> {
    let change = |node: Option<&str>, field: Option<&str>, before: Value, after: Value| Change {
        node: node.map(str::to_owned),
        field: field.map(str::to_owned),
        before,
        after,
    };
    let edge = |to: &str| json!({"from": "START", "to": to});
    block(&VersionDiff {
        base: Some(1),
        target: Some(2),
        changes: vec![
            change(
                Some("answer"),
                Some("text"),
                json!("You said: {{ inputs.message }}"),
                json!("Thank you."),
            ),
            change(Some("note"), None, Value::Null, json!({"name": "note", "type": "log", "message": "x"})),
            change(None, Some("edges"), edge("answer"), edge("note")),
            change(None, Some("edges"), Value::Null, json!({"from": "note", "to": "answer"})),
            change(None, Some("runnable_config.prompts.sort.text"), json!("Be kind."), json!("Be brief.")),
        ],
    })
}

pub(super) fn node() -> Result<String> {
    let set = engine::nodes::find("set").map_err(|unknown| anyhow::anyhow!(unknown))?;
    let NodeTypeRecord { schema, .. } = set.record();
    let mut record = serde_json::to_value(set.record())?;
    // The whole schema would hide the rest.
    if let Some(place) = record.get_mut("schema") {
        *place = json!({"type": schema.get("type"), "required": schema.get("required"), "…": "…"});
    }
    block(&record)
}
