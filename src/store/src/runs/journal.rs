//! Run journals.

use chrono::{DateTime, Utc};
use diesel::dsl::max;
use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::error::corrupt;
use crate::schema::run_steps;
use crate::{Store, StoreError};

/// A stored journal row.
#[derive(Debug, Clone)]
pub struct StoredStep {
    /// The super-step, from 1.
    pub step: i32,
    /// The node's name.
    pub node: String,
    /// The visit number, from 1.
    pub visit: i32,
    /// The attempt number, from 1.
    pub attempt: i32,
    /// `started`, `succeeded` or `failed`.
    pub status: String,
    /// SHA-256 of the node's input.
    pub input_digest: Vec<u8>,
    /// JSON, from the row or from a blob.
    pub result: Option<String>,
    /// JSON.
    pub error: Option<String>,
    /// The note stored with the start, JSON.
    pub note: Option<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = run_steps)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct JournalRow {
    step: i32,
    node: String,
    visit: i32,
    attempt: i32,
    status: String,
    input_digest: Vec<u8>,
    result: Option<String>,
    result_blob: Option<Vec<u8>>,
    error: Option<String>,
    note: Option<String>,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Returns the last super-step in a run's journal.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn last_step(&self, run: Uuid) -> Result<Option<i32>, StoreError> {
        let steps = run_steps::table.filter(run_steps::run_id.eq(run));
        Ok(steps.select(max(run_steps::step)).first(&mut *self.connection().await?).await?)
    }

    /// Returns the first super-step of a run in which a node's last attempt failed.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn first_failed_step(&self, run: Uuid) -> Result<Option<i32>, StoreError> {
        const FIRST: &str = "SELECT min(step) AS step FROM (
                SELECT DISTINCT ON (node, visit) step, status FROM run_steps WHERE run_id = $1
                ORDER BY node, visit, attempt DESC) ended
            WHERE status = 'failed'";
        let found: Scalar<Option<i32>> = diesel::sql_query(FIRST)
            .bind::<SqlUuid, _>(run)
            .get_result(&mut *self.connection().await?)
            .await?;
        Ok(found.0)
    }

    /// Returns a run's journal in key order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or a large result is missing.
    pub async fn journal(&self, run: Uuid) -> Result<Vec<StoredStep>, StoreError> {
        let rows: Vec<JournalRow> = run_steps::table
            .filter(run_steps::run_id.eq(run))
            .order((run_steps::node, run_steps::visit, run_steps::attempt))
            .select(JournalRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        self.with_results(rows).await
    }

    /// Adds the large results to the rows.
    pub(crate) async fn with_results(&self, rows: Vec<JournalRow>) -> Result<Vec<StoredStep>, StoreError> {
        let large: Vec<Vec<u8>> = rows.iter().filter_map(|row| row.result_blob.clone()).collect();
        let large = self.blobs(&large).await?;
        let read = |row: JournalRow| {
            let result = match row.result_blob {
                Some(digest) => {
                    let bytes =
                        large.get(&digest).ok_or_else(|| corrupt(&row.node, "its result is missing"))?;
                    Some(String::from_utf8(bytes.clone()).map_err(|error| corrupt(&row.node, error))?)
                }
                None => row.result,
            };
            Ok(StoredStep {
                step: row.step,
                node: row.node,
                visit: row.visit,
                attempt: row.attempt,
                status: row.status,
                input_digest: row.input_digest,
                result,
                error: row.error,
                note: row.note,
                started_at: row.started_at,
                finished_at: row.finished_at,
            })
        };
        rows.into_iter().map(read).collect()
    }
}
