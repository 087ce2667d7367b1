//! Which thread an attachment belongs to.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{AttachmentId, ThreadId};
use uuid::Uuid;

use crate::{Store, StoreError};

/// After this time a thread that does not exist will not begin to: the start of its first turn failed.
const START: TimeDelta = TimeDelta::minutes(5);
/// Attachments that are deleted at once.
const PART: i64 = 500;

/// Gives attachments `$1` to thread `$2` of workflow `$3`. One that was given to a thread before `$5` is free again if the thread
/// does not exist.
const CLAIM: &str = "
    UPDATE attachments a SET thread_id = $2, workflow_id = $3, attached_at = $4
    WHERE id = ANY($1) AND digest IS NOT NULL AND (thread_id IS NULL OR thread_id = $2
        OR attached_at < $5 AND NOT EXISTS (SELECT FROM threads t WHERE t.id = a.thread_id))";

/// Deletes attachments older than `$1` that no message contains, with their uses.
const FORGET: &str = "
    WITH old AS MATERIALIZED (SELECT id FROM attachments a WHERE created_at < $1
            AND (thread_id IS NULL OR NOT EXISTS (SELECT FROM threads t WHERE t.id = a.thread_id))
            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
        uses AS (DELETE FROM blob_uses u USING old
            WHERE u.owner = old.id AND u.kind IN ('attachment', 'preview'))
    DELETE FROM attachments a USING old WHERE a.id = old.id";

impl Store {
    /// Makes attachments those of a thread and of its workflow; `false`, and nothing changes, if one of them is gone or belongs to
    /// another thread. The thread may not exist yet.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn claim_attachments(
        &self,
        ids: &[AttachmentId],
        thread: ThreadId,
        workflow: Uuid,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let claimed = diesel::sql_query(CLAIM)
                    .bind::<Array<SqlUuid>, _>(ids.iter().map(|id| id.0).collect::<Vec<_>>())
                    .bind::<SqlUuid, _>(thread.0)
                    .bind::<SqlUuid, _>(workflow)
                    .bind::<Timestamptz, _>(now)
                    .bind::<Timestamptz, _>(now - START)
                    .execute(connection)
                    .await?;
                if claimed == ids.len() { Ok(true) } else { Err(Unclaimed::Taken) }
            })
            .await
            .or_else(Unclaimed::settle)
    }

    /// Deletes a part of the attachments that were created before then and that no message contains; `true` if there may be more.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_attachments(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let found = diesel::sql_query(FORGET)
            .bind::<Timestamptz, _>(before)
            .bind::<BigInt, _>(PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(i64::try_from(found).is_ok_and(|found| found >= PART))
    }
}

/// Why a claim was rolled back.
enum Unclaimed {
    Taken,
    Failed(StoreError),
}

impl Unclaimed {
    fn settle(self) -> Result<bool, StoreError> {
        match self {
            Self::Taken => Ok(false),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<diesel::result::Error> for Unclaimed {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error.into())
    }
}
