//! The audit trail: completed and denied actions. Rows are only added, in the transaction of the change.

use auth::principal::Actor;
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;
use wire::AuditAction;

use crate::schema::audit_log;
use crate::{Changes, Store, StoreError};

/// The outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// The action was done.
    Success,
    /// The action was denied.
    Denied,
}

impl AuditOutcome {
    /// The stored and sent name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Denied => "denied",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Success, Self::Denied].into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// The target of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTarget {
    /// `service_token`, `workflow`, `workspace`, …
    pub kind: &'static str,
    /// Its id; for a route, the method and pattern.
    pub id: String,
}

/// A row to add. Its texts contain no secrets, and identify people only by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The actor.
    pub actor: Actor,
    /// The action, as `noun.verb`.
    pub action: AuditAction,
    /// The target.
    pub target: Option<AuditTarget>,
    /// The workspace.
    pub workspace: Option<Uuid>,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// The reason, in the caller's words or as an error code.
    pub reason: Option<String>,
    /// The client's address.
    pub address: Option<String>,
    /// The request id.
    pub request_id: Option<String>,
}

/// A stored row.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = audit_log)]
pub struct StoredAudit {
    /// UUIDv7, in time order.
    pub id: Uuid,
    /// The time.
    pub at: DateTime<Utc>,
    /// The actor kind.
    pub actor_kind: String,
    /// The actor id.
    pub actor_id: Option<String>,
    /// The action.
    pub action: String,
    /// The target kind.
    pub target_kind: Option<String>,
    /// The target id.
    pub target_id: Option<String>,
    /// The workspace.
    pub workspace_id: Option<Uuid>,
    /// `success` or `denied`.
    pub outcome: String,
    /// The reason.
    pub reason: Option<String>,
    /// The client's address.
    pub address: Option<String>,
    /// The request id.
    pub request_id: Option<String>,
}

/// Filters for audit rows.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only rows older than this one.
    pub before: Option<Uuid>,
    /// Only this action.
    pub action: Option<String>,
    /// Only this actor id.
    pub actor: Option<String>,
    /// Only this outcome.
    pub outcome: Option<AuditOutcome>,
    /// Only these workspaces.
    pub workspaces: Option<Vec<Uuid>>,
}

pub(crate) async fn add(
    connection: &mut AsyncPgConnection,
    id: Uuid,
    at: DateTime<Utc>,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let target = entry.target.as_ref();
    diesel::insert_into(audit_log::table)
        .values((
            audit_log::id.eq(id),
            audit_log::at.eq(at),
            audit_log::actor_kind.eq(entry.actor.kind),
            audit_log::actor_id.eq(entry.actor.id.as_deref()),
            audit_log::action.eq(entry.action.as_str()),
            audit_log::target_kind.eq(target.map(|target| target.kind)),
            audit_log::target_id.eq(target.map(|target| target.id.as_str())),
            audit_log::workspace_id.eq(entry.workspace),
            audit_log::outcome.eq(entry.outcome.as_str()),
            audit_log::reason.eq(entry.reason.as_deref()),
            audit_log::address.eq(entry.address.as_deref()),
            audit_log::request_id.eq(entry.request_id.as_deref()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

impl Changes {
    /// Adds an audit row that is committed or rolled back with the change.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        let (id, now) = (self.store.ids().uuid()?, self.store.now());
        add(&mut self.connection, id, now, entry).await
    }
}

impl Store {
    /// Adds an audit row for an action that changed nothing.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let id = self.ids().uuid()?;
        add(&mut *self.connection().await?, id, self.now(), entry).await
    }

    /// Returns matching rows, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn audit_trail(&self, filter: AuditFilter, limit: i64) -> Result<Vec<StoredAudit>, StoreError> {
        let mut rows = audit_log::table.select(StoredAudit::as_select()).into_boxed();
        if let Some(before) = filter.before {
            rows = rows.filter(audit_log::id.lt(before));
        }
        if let Some(action) = filter.action {
            rows = rows.filter(audit_log::action.eq(action));
        }
        if let Some(actor) = filter.actor {
            rows = rows.filter(audit_log::actor_id.eq(actor));
        }
        if let Some(outcome) = filter.outcome {
            rows = rows.filter(audit_log::outcome.eq(outcome.as_str()));
        }
        if let Some(workspaces) = filter.workspaces {
            rows = rows.filter(audit_log::workspace_id.eq_any(workspaces));
        }
        let rows = rows.order(audit_log::id.desc()).limit(limit);
        Ok(rows.load(&mut *self.connection().await?).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestDatabase;

    fn entry(action: AuditAction) -> AuditEntry {
        AuditEntry {
            actor: Actor { kind: "user", id: Some("u".to_owned()) },
            action,
            target: Some(AuditTarget { kind: "workflow", id: "w".to_owned() }),
            workspace: None,
            outcome: AuditOutcome::Success,
            reason: None,
            address: None,
            request_id: None,
        }
    }

    #[tokio::test]
    async fn an_audit_row_is_committed_with_its_change_and_is_immutable() {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let mut changes = store.begin().await.unwrap();
        changes.audit(&entry(AuditAction::WorkflowPublished)).await.unwrap();
        changes.roll_back().await;
        assert_eq!(database.scalar("SELECT count(*) FROM audit_log").await, "0");
        store
            .change(async |changes| changes.audit(&entry(AuditAction::WorkflowPublished)).await)
            .await
            .unwrap();
        store
            .audit(&AuditEntry { outcome: AuditOutcome::Denied, ..entry(AuditAction::AuthDenied) })
            .await
            .unwrap();
        // The table owner cannot change rows either.
        for sql in ["UPDATE audit_log SET reason = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"] {
            let error = TestDatabase::execute(&database, sql).await.unwrap_err();
            assert!(error.contains("append-only"), "{sql}: {error}");
        }
        let seen = async |filter: AuditFilter| -> Vec<String> {
            store.audit_trail(filter, 10).await.unwrap().into_iter().map(|row| row.action).collect()
        };
        assert_eq!(seen(AuditFilter::default()).await, ["auth.denied", "workflow.published"]);
        let denied = AuditFilter { outcome: Some(AuditOutcome::Denied), ..AuditFilter::default() };
        assert_eq!(seen(denied).await, ["auth.denied"]);
        let nowhere = AuditFilter { workspaces: Some(vec![Uuid::nil()]), ..AuditFilter::default() };
        assert_eq!(seen(nowhere).await, [""; 0]);
        let by_another = AuditFilter { actor: Some("v".to_owned()), ..AuditFilter::default() };
        assert_eq!(seen(by_another).await, [""; 0]);
    }
}
