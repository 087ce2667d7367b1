//! Calls of models of trainings.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::{training_calls, training_runs};
use crate::system::retention::is_full;
use crate::{Store, StoreError};

/// Replies that one statement erases.
const REPLIES_PART: i64 = 2_000;

/// A call of a model.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = training_calls)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredCall {
    /// UUIDv7 of the row.
    pub id: Uuid,
    /// SHA-256 by which the answer is found again.
    pub key: Vec<u8>,
    /// What it was made for.
    pub role: String,
    /// `<provider>/<model>`.
    pub model: String,
    /// JSON; `None`: it was not answered, or the reply was erased.
    pub reply: Option<String>,
    /// Requests that count in the budget.
    pub calls: i64,
    /// Tokens that the model has read.
    pub input_tokens: i64,
    /// Tokens that it has written.
    pub output_tokens: i64,
    /// Money, in nanodollars.
    pub nanodollars: i64,
    /// Whether the tokens are estimated.
    pub estimated: bool,
    /// Requests that were sent.
    pub attempts: i32,
    /// From the first request to the end.
    pub duration_ms: i64,
}

impl Store {
    /// The calls of a run in the order of their rows, after the row `after`, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn training_calls(
        &self,
        run: Uuid,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<StoredCall>, StoreError> {
        Ok(training_calls::table
            .filter(training_calls::run_id.eq(run))
            .filter(training_calls::id.gt(after))
            .order(training_calls::id)
            .limit(limit)
            .select(StoredCall::as_select())
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// The first answer that another run of the workflow has recorded under this key.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn earlier_call(
        &self,
        workflow: Uuid,
        run: Uuid,
        key: &[u8],
    ) -> Result<Option<StoredCall>, StoreError> {
        let of_workflow = training_runs::table
            .filter(training_runs::run_id.eq(training_calls::run_id))
            .filter(training_runs::workflow_id.eq(workflow));
        Ok(training_calls::table
            .filter(training_calls::key.eq(key))
            .filter(training_calls::reply.is_not_null())
            .filter(training_calls::run_id.ne(run))
            .filter(diesel::dsl::exists(of_workflow))
            .order(training_calls::id)
            .select(StoredCall::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?)
    }

    /// Counts the requests of a run that were in flight when its last process ended as lost. Returns how many were, in all of its lives.
    /// `writer`: the process that continues the run; nothing changes if another one does.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn count_lost_calls(&self, run: Uuid, writer: Uuid) -> Result<u64, StoreError> {
        #[derive(QueryableByName)]
        struct Lost {
            #[diesel(sql_type = Integer)]
            lost_calls: i32,
        }
        let lost: Option<Lost> = diesel::sql_query(
            "UPDATE training_runs t SET lost_calls = t.lost_calls + t.in_flight, in_flight = 0 FROM runs r
             WHERE t.run_id = $1 AND r.id = t.run_id AND r.writer_id = $2 RETURNING t.lost_calls",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<SqlUuid, _>(writer)
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?;
        Ok(lost.and_then(|lost| u64::try_from(lost.lost_calls).ok()).unwrap_or_default())
    }

    /// Erases a part of the replies of trainings that have ended, in workspaces that do not keep them; `true` if there may be more.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_replies_of_trainings(&self) -> Result<bool, StoreError> {
        // A run that has not ended finds its answers again in a later life.
        let erased = diesel::sql_query(
            "UPDATE training_calls SET reply = NULL WHERE ctid = ANY (ARRAY(
                 SELECT c.ctid FROM workspaces w JOIN runs r ON r.workspace_id = w.id
                     JOIN training_runs t ON t.run_id = r.id JOIN training_calls c ON c.run_id = t.run_id
                 WHERE w.training_calls = 'drop' AND r.finished_at IS NOT NULL AND c.reply IS NOT NULL
                 LIMIT $1 FOR UPDATE OF c SKIP LOCKED))",
        )
        .bind::<BigInt, _>(REPLIES_PART)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(is_full(erased, REPLIES_PART))
    }
}
