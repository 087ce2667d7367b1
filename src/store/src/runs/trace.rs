//! A run's journal for display: pages in start order, and the usage per model.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Int4, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::runs::journal::JournalRow;
use crate::{Store, StoreError, StoredStep};

/// Maximum result bytes in a page, except that it has at least one row.
const PAGE_BYTES: i64 = 16 << 20;

/// A position in a journal, ordered by start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlace {
    /// The super-step, from 1.
    pub step: i32,
    /// When the attempt started.
    pub started_at: DateTime<Utc>,
    /// The visit number, from 1.
    pub visit: i32,
    /// The attempt number, from 1.
    pub attempt: i32,
    /// The node's name.
    pub node: String,
}

impl StepPlace {
    /// The position of a row.
    #[must_use]
    pub fn from_step(row: &StoredStep) -> Self {
        let StoredStep { step, started_at, visit, attempt, .. } = *row;
        Self { step, started_at, visit, attempt, node: row.node.clone() }
    }
}

impl fmt::Display for StepPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.started_at.timestamp_micros();
        write!(f, "{}:{micros}:{}:{}:{}", self.step, self.visit, self.attempt, self.node)
    }
}

impl FromStr for StepPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(5, ':');
        let mut part = || parts.next().ok_or(());
        let step = part()?.parse().map_err(drop)?;
        let micros = part()?.parse().map_err(drop)?;
        let started_at = DateTime::from_timestamp_micros(micros).ok_or(())?;
        let visit = part()?.parse().map_err(drop)?;
        let attempt = part()?.parse().map_err(drop)?;
        Ok(Self { step, started_at, visit, attempt, node: part()?.to_owned() })
    }
}

/// A journal page.
#[derive(Debug)]
pub struct JournalPage {
    /// Its rows, in start order.
    pub steps: Vec<StoredStep>,
    /// Whether rows follow.
    pub more: bool,
}

#[derive(QueryableByName)]
struct PageRow {
    #[diesel(embed)]
    step: JournalRow,
    #[diesel(sql_type = Bool)]
    last: bool,
}

#[derive(QueryableByName)]
struct JournalSize {
    #[diesel(sql_type = BigInt)]
    attempts: i64,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

impl Store {
    /// Returns at most `limit` journal rows of a run after a position, in start order; fewer if their results
    /// exceed 16 MiB.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer, or if a large result is missing.
    pub async fn journal_page(
        &self,
        run: Uuid,
        after: Option<&StepPlace>,
        limit: i64,
    ) -> Result<JournalPage, StoreError> {
        const PAGE: &str = "WITH page AS (
                SELECT s.node, s.visit, s.attempt, s.step, s.started_at,
                       coalesce(b.size, octet_length(s.result), 0) AS bytes
                FROM run_steps s LEFT JOIN blobs b ON b.digest = s.result_blob
                WHERE s.run_id = $1
                  AND ($2 IS NULL OR (s.step, s.started_at, s.node, s.visit, s.attempt) > ($2, $3, $4, $5, $6))
                ORDER BY s.step, s.started_at, s.node, s.visit, s.attempt LIMIT $7 + 1),
            sized AS (
                SELECT node, visit, attempt,
                       row_number() OVER (ORDER BY step, started_at, node, visit, attempt) AS number,
                       sum(bytes) OVER (ORDER BY step, started_at, node, visit, attempt) - bytes AS before
                FROM page),
            shown AS (SELECT * FROM sized WHERE number <= $7 AND (number = 1 OR before < $8))
            SELECT s.*, shown.number = (SELECT count(*) FROM page) AS last
            FROM shown JOIN run_steps s USING (node, visit, attempt)
            WHERE s.run_id = $1 ORDER BY shown.number";
        let rows: Vec<PageRow> = diesel::sql_query(PAGE)
            .bind::<SqlUuid, _>(run)
            .bind::<Nullable<Int4>, _>(after.map(|after| after.step))
            .bind::<Nullable<Timestamptz>, _>(after.map(|after| after.started_at))
            .bind::<Nullable<Text>, _>(after.map(|after| after.node.as_str()))
            .bind::<Nullable<Int4>, _>(after.map(|after| after.visit))
            .bind::<Nullable<Int4>, _>(after.map(|after| after.attempt))
            .bind::<BigInt, _>(limit)
            .bind::<BigInt, _>(PAGE_BYTES)
            .load(&mut *self.connection().await?)
            .await?;
        let more = rows.last().is_some_and(|row| !row.last);
        let steps = self.with_results(rows.into_iter().map(|row| row.step).collect()).await?;
        Ok(JournalPage { steps, more })
    }

    /// Returns the number of attempts in a run's journal, and the bytes of their results.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn journal_size(&self, run: Uuid) -> Result<(i64, i64), StoreError> {
        const SIZE: &str = "SELECT count(*) AS attempts,
                                   coalesce(sum(coalesce(b.size, octet_length(s.result), 0)), 0)::bigint AS bytes
                            FROM run_steps s LEFT JOIN blobs b ON b.digest = s.result_blob WHERE s.run_id = $1";
        let found: JournalSize = diesel::sql_query(SIZE)
            .bind::<SqlUuid, _>(run)
            .get_result(&mut *self.connection().await?)
            .await?;
        Ok((found.attempts, found.bytes))
    }
}
