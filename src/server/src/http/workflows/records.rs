//! Maps rows to API records.

use store::{ListedVersion, StoredVersion, StoredWorkflow};
use wire::{PublicWorkflow, VersionRecord, VersionSummary, WorkflowRecord};

use crate::http::time;

pub(super) fn share_url(base: &str, id: uuid::Uuid) -> String {
    format!("{base}/chat/{id}")
}

pub(super) fn workflow(row: StoredWorkflow, base: &str) -> WorkflowRecord {
    WorkflowRecord {
        share_url: row.is_public.then(|| share_url(base, row.id)),
        id: row.id.to_string(),
        handle: row.handle,
        name: row.name,
        description: row.description,
        tags: row.tags,
        workspace_id: row.workspace_id.to_string(),
        is_public: row.is_public,
        require_login: row.require_login,
        published_at: row.published_at.map(time),
        published_by: row.published_by,
        is_archived: row.archived_at.is_some(),
        latest_version: row.latest_version,
        live_version: row.live_version,
        chat: row.chat,
        max_concurrent_runs: row.max_concurrent_runs,
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    }
}

pub(in crate::http) fn public(row: StoredWorkflow, base: &str) -> PublicWorkflow {
    PublicWorkflow {
        share_url: share_url(base, row.id),
        id: row.id.to_string(),
        name: row.name,
        description: row.description,
        require_login: row.require_login,
        chat: row.chat.into(),
    }
}

pub(super) fn version(row: StoredVersion) -> VersionRecord {
    VersionRecord {
        id: row.id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        version: row.number,
        draft: row.number.is_none(),
        digest: hex::encode(row.digest),
        graph: row.graph,
        runnable_config: row.runnable_config,
        metadata: row.metadata,
        notes: row.notes,
        created_by: row.created_by,
        created_at: time(row.created_at),
        gate: None,
    }
}

pub(super) fn version_summary(row: ListedVersion) -> VersionSummary {
    VersionSummary {
        id: row.id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        version: row.number,
        draft: row.number.is_none(),
        digest: hex::encode(row.digest),
        notes: row.notes,
        created_by: row.created_by,
        created_at: time(row.created_at),
        gate: None,
    }
}
