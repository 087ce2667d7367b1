//! Claims that attach uploads to threads.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{AttachmentId, ThreadId};
use uuid::Uuid;

use crate::chat::owner::OwnerKind;
use crate::database::prepared::prepared;
use crate::{Store, StoreError, StoredAttachment};

/// Validity of a claim without a stored message; after this time the turn's start must have failed.
pub(super) const CLAIM_LIMIT: TimeDelta = TimeDelta::minutes(5);
/// Maximum attachments deleted per batch.
const DELETED_AT_ONCE: i64 = 500;

/// Assigns attachments `$1` to thread `$2` in workflow `$3` at `$4`. One without an owner gets the thread's
/// owner: `$6` and `$7` if the thread does not exist yet.
const CLAIM: &str = "
    UPDATE attachments a SET thread_id = $2, workflow_id = $3, attached_at = $4,
        owner_kind = CASE WHEN a.owner_kind <> 'anyone' THEN a.owner_kind
            ELSE coalesce((SELECT t.owner_kind FROM threads t WHERE t.id = $2), $6) END,
        owner_id = CASE WHEN a.owner_kind <> 'anyone' THEN a.owner_id
            WHEN EXISTS (SELECT FROM threads t WHERE t.id = $2) THEN (SELECT t.owner_id FROM threads t WHERE t.id = $2)
            ELSE $7 END
    WHERE id = ANY($1) AND digest IS NOT NULL
        AND (thread_id IS NULL OR thread_id = $2 OR NOT contained AND attached_at < $5)";

/// Releases a failed start's claims, with the owner for the ids in `$3` and the workflow for those in `$4`.
const RELEASE: &str = "
    UPDATE attachments SET thread_id = NULL, attached_at = NULL,
        owner_kind = CASE WHEN id = ANY($3) THEN 'anyone' ELSE owner_kind END,
        owner_id = CASE WHEN id = ANY($3) THEN NULL ELSE owner_id END,
        workflow_id = CASE WHEN id = ANY($4) THEN NULL ELSE workflow_id END
    WHERE id = ANY($1) AND thread_id = $2 AND NOT contained";

/// Deletes attachments older than `$1` that no message contains, with their uses; except those claimed after
/// `$3`.
const FORGET: &str = "
    WITH old AS MATERIALIZED (SELECT id FROM attachments a WHERE created_at < $1 AND NOT contained
            AND (attached_at IS NULL OR attached_at < $3)
            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
        uses AS (DELETE FROM blob_uses u USING old
            WHERE u.owner = old.id)
    DELETE FROM attachments a USING old WHERE a.id = old.id";

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentClaim {
    /// The thread has claimed all attachments.
    Claimed,
    /// Another thread has claimed one of them.
    InUse,
    /// One of them was deleted.
    Deleted,
}

impl Store {
    /// Assigns attachments to a thread and to its workflow, or changes nothing. If the thread does not exist
    /// yet, `owner_kind` and `owner_id` identify its future owner.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn claim_attachments(
        &self,
        ids: &[AttachmentId],
        thread: ThreadId,
        workflow: Uuid,
        owner_kind: OwnerKind,
        owner_id: Option<&str>,
    ) -> Result<AttachmentClaim, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let claimed = connection
            .transaction(async |connection| {
                let claimed = prepared(CLAIM)
                    .bind::<Array<SqlUuid>, _>(ids.iter().map(|id| id.0).collect::<Vec<_>>())
                    .bind::<SqlUuid, _>(thread.0)
                    .bind::<SqlUuid, _>(workflow)
                    .bind::<Timestamptz, _>(now)
                    .bind::<Timestamptz, _>(now - CLAIM_LIMIT)
                    .bind::<Text, _>(owner_kind.as_str())
                    .bind::<Nullable<Text>, _>(owner_id)
                    .execute(connection)
                    .await?;
                if claimed == ids.len() { Ok(()) } else { Err(Unclaimed::NotAll) }
            })
            .await;
        drop(connection);
        match claimed {
            Ok(()) => Ok(AttachmentClaim::Claimed),
            Err(Unclaimed::Failed(error)) => Err(error),
            Err(Unclaimed::NotAll) if self.attachments_named(ids).await?.len() < ids.len() => {
                Ok(AttachmentClaim::Deleted)
            }
            Err(Unclaimed::NotAll) => Ok(AttachmentClaim::InUse),
        }
    }

    /// Releases attachments that were claimed for a message that is not stored. `before`: their rows before the
    /// claim.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer; the claim expires after some minutes.
    pub async fn release_attachments(
        &self,
        before: &[StoredAttachment],
        thread: ThreadId,
    ) -> Result<(), StoreError> {
        let those = |which: &dyn Fn(&StoredAttachment) -> bool| {
            before.iter().filter(|one| which(one)).map(|one| one.id.0).collect::<Vec<Uuid>>()
        };
        prepared(RELEASE)
            .bind::<Array<SqlUuid>, _>(those(&|_| true))
            .bind::<SqlUuid, _>(thread.0)
            .bind::<Array<SqlUuid>, _>(those(&|one| one.owner_kind == OwnerKind::Anyone))
            .bind::<Array<SqlUuid>, _>(those(&|one| one.workflow.is_none()))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Deletes a batch of attachments that were created before then and that no message contains; `true` if
    /// more may be left.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_attachments(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let found = prepared(FORGET)
            .bind::<Timestamptz, _>(before)
            .bind::<BigInt, _>(DELETED_AT_ONCE)
            .bind::<Timestamptz, _>(self.now() - CLAIM_LIMIT)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(i64::try_from(found).is_ok_and(|found| found >= DELETED_AT_ONCE))
    }
}

/// The reason why a claim was rolled back.
enum Unclaimed {
    NotAll,
    Failed(StoreError),
}

impl From<diesel::result::Error> for Unclaimed {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error.into())
    }
}
