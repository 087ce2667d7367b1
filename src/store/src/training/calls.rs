//! Model calls in trainings.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::schema::{training_calls, training_runs};
use crate::system::retention::is_full;
use crate::{Changes, Store, StoreError};

/// Maximum replies erased per statement.
const REPLIES_PART: i64 = 2_000;

/// A model call.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = training_calls)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredCall {
    /// The row's UUIDv7.
    pub id: Uuid,
    /// SHA-256 that identifies the answer for reuse.
    pub key: Vec<u8>,
    /// The purpose.
    pub role: String,
    /// `<provider>/<model>`.
    pub model: String,
    /// JSON; `None`: no answer, or the reply was erased.
    pub reply: Option<String>,
    /// Requests that count toward the budget.
    pub calls: i64,
    /// Input tokens.
    pub input_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// Cost in nanodollars.
    pub nanodollars: i64,
    /// Whether the tokens are estimated.
    pub estimated: bool,
    /// Requests sent.
    pub attempts: i32,
    /// Milliseconds from the first request to the end.
    pub duration_ms: i64,
}

impl Store {
    /// Returns at most `limit` calls of a run in row order, after the row `after`.
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

    /// Returns the first answer that another run of the workflow has recorded under this key.
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

    /// Counts requests as lost that were in flight when the run's last process ended. Returns the number of
    /// lost requests in all its lives. `writer`: the process that continues the run; nothing changes if another
    /// one does.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn count_lost_calls(&self, run: Uuid, writer: Uuid) -> Result<u64, StoreError> {
        let lost: Option<Scalar<i32>> = diesel::sql_query(
            "UPDATE training_runs t SET lost_calls = t.lost_calls + t.in_flight, in_flight = 0 FROM runs r
             WHERE t.run_id = $1 AND r.id = t.run_id AND r.writer_id = $2 RETURNING t.lost_calls",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<SqlUuid, _>(writer)
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?;
        Ok(lost.and_then(|lost| u64::try_from(lost.0).ok()).unwrap_or_default())
    }

    /// Erases a batch of replies and case details from an ended training, in a workspace that does not keep
    /// them; `true` if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_replies_of_trainings(&self) -> Result<bool, StoreError> {
        self.change(async |changes| changes.erase_replies().await).await
    }
}

impl Changes {
    async fn erase_replies(&mut self) -> Result<bool, StoreError> {
        // A run that has not ended reuses its answers in a later life.
        let found: Option<Scalar<Uuid>> = diesel::sql_query(
            "SELECT t.run_id FROM workspaces w JOIN workflows f ON f.workspace_id = w.id
                 JOIN training_runs t ON t.workflow_id = f.id AND t.replies_erased_at IS NULL
                 JOIN runs r ON r.id = t.run_id AND r.finished_at IS NOT NULL
             WHERE w.training_calls = 'drop' LIMIT 1 FOR UPDATE OF t SKIP LOCKED",
        )
        .get_result(&mut *self.connection)
        .await
        .optional()?;
        let Some(Scalar(run_id)) = found else { return Ok(false) };
        let erased = diesel::sql_query(
            "UPDATE training_calls SET reply = NULL WHERE ctid = ANY (ARRAY(
                 SELECT ctid FROM training_calls WHERE run_id = $1 AND reply IS NOT NULL LIMIT $2 FOR UPDATE))",
        )
        .bind::<SqlUuid, _>(run_id)
        .bind::<BigInt, _>(REPLIES_PART)
        .execute(&mut *self.connection)
        .await?;
        let details = diesel::sql_query(
            "UPDATE training_cases SET details = NULL WHERE ctid = ANY (ARRAY(
                 SELECT ctid FROM training_cases WHERE run_id = $1 AND details IS NOT NULL LIMIT $2 FOR UPDATE))",
        )
        .bind::<SqlUuid, _>(run_id)
        .bind::<BigInt, _>(REPLIES_PART)
        .execute(&mut *self.connection)
        .await?;
        if !is_full(erased, REPLIES_PART) && !is_full(details, REPLIES_PART) {
            diesel::update(training_runs::table.find(run_id))
                .set(training_runs::replies_erased_at.eq(self.store.now()))
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(true)
    }
}
