//! Calls of models of trainings.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::training_calls;
use crate::{Store, StoreError};

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
    /// JSON; `None`: it was not answered.
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
}
