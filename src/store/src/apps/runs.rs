//! Runs that app pages have started.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bytea, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::RunState;

use crate::database::prepared::prepared;
use crate::{Store, StoreError};

/// An app run, with the data for its visitor's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAppRun {
    /// The run.
    pub run: Uuid,
    /// The release that froze its binding.
    pub release: Uuid,
    /// The name of the binding.
    pub binding: String,
    /// The member who started it.
    pub user: Option<Uuid>,
    /// The run's state.
    pub status: RunState,
    /// JSON.
    pub output: Option<String>,
    /// JSON `{code, message, node}`.
    pub error: Option<String>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

#[derive(QueryableByName)]
struct StoredAppRunRow {
    #[diesel(sql_type = SqlUuid)]
    run_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    release_id: Uuid,
    #[diesel(sql_type = Text)]
    binding: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    user_id: Option<Uuid>,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<Text>)]
    output: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    finished_at: Option<DateTime<Utc>>,
}

impl TryFrom<StoredAppRunRow> for StoredAppRun {
    type Error = StoreError;

    fn try_from(row: StoredAppRunRow) -> Result<Self, StoreError> {
        let status = RunState::from_name(&row.status);
        Ok(Self {
            run: row.run_id,
            release: row.release_id,
            binding: row.binding,
            user: row.user_id,
            status: status.ok_or_else(|| StoreError::Corrupt(format!("run status {}", row.status)))?,
            output: row.output,
            error: row.error,
            finished_at: row.finished_at,
        })
    }
}

impl Store {
    /// Returns the app's run whose handle has this SHA-256.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn app_run(&self, app: Uuid, handle: &[u8]) -> Result<Option<StoredAppRun>, StoreError> {
        let row: Option<StoredAppRunRow> = prepared(
            "SELECT a.run_id, a.release_id, a.binding, a.user_id, r.status, r.output, r.error, r.finished_at
             FROM app_runs a JOIN runs r ON r.id = a.run_id WHERE a.handle = $1 AND a.app_id = $2",
        )
        .bind::<Bytea, _>(handle)
        .bind::<SqlUuid, _>(app)
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?;
        row.map(TryInto::try_into).transpose()
    }
}
