//! Maps rows to API records.

use chrono::{DateTime, Utc};
use store::{StoredAudit, StoredServiceToken};
use wire::{AuditActor, AuditObject, AuditRecord, ServiceTokenRecord};

use crate::http::time;

pub(super) fn token(token: StoredServiceToken, now: DateTime<Utc>) -> ServiceTokenRecord {
    ServiceTokenRecord {
        status: token.status(now).as_str().to_owned(),
        id: token.id.to_string(),
        name: token.name,
        scopes: token.scopes,
        workspaces: token.workspaces,
        issued: time(token.issued_at),
        expires: token.expires_at.map(time),
        created_by: token.created_by,
        last_used: token.last_used_at.map(time),
        revoked: token.revoked_at.map(time),
        revoked_reason: token.revoked_reason,
    }
}

pub(super) fn audit(row: StoredAudit) -> AuditRecord {
    let target = row.target_kind.zip(row.target_id).map(|(kind, id)| AuditObject { kind, id });
    AuditRecord {
        id: row.id.to_string(),
        at: time(row.at),
        actor: AuditActor { kind: row.actor_kind, id: row.actor_id },
        action: row.action,
        target,
        workspace_id: row.workspace_id.map(|id| id.to_string()),
        outcome: row.outcome,
        reason: row.reason,
        address: row.address,
        request_id: row.request_id,
    }
}
