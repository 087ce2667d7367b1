//! Maps rows to API records.

use auth::principal::Principal;
use chrono::{DateTime, Utc};
use store::{StoredMember, StoredWorkspace, WorkspaceUsage};
use wire::{MemberRecord, TrainingCalls, WorkspaceRecord, WorkspaceStorage};

use crate::http::time;

pub(super) fn workspace(workspace: StoredWorkspace, to: &Principal) -> WorkspaceRecord {
    WorkspaceRecord {
        role: to.role_in(workspace.id).map(|role| role.as_str().to_owned()),
        id: workspace.id.to_string(),
        slug: workspace.slug,
        name: workspace.name,
        created_at: time(workspace.created_at),
        training_calls: TrainingCalls::from_name(&workspace.training_calls).unwrap_or_default(),
        storage: None,
    }
}

pub(super) fn storage(usage: WorkspaceUsage, limit: Option<i64>) -> WorkspaceStorage {
    WorkspaceStorage { bytes: usage.bytes, limit, measured_at: time(usage.measured_at) }
}

pub(super) fn member(member: StoredMember, now: DateTime<Utc>) -> MemberRecord {
    MemberRecord {
        status: member.state(now).as_str().to_owned(),
        user_id: member.user_id.to_string(),
        email: member.email,
        name: member.name,
        role: member.role,
        invited_until: member.invited_until.map(time),
        created_at: time(member.created_at),
    }
}
