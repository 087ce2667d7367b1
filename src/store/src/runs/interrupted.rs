//! Node attempts that a crash or a restart has interrupted.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{Array, Int4, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{Store, StoreError};

/// An attempt without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct InterruptedAttempt {
    /// The node, as in the journal.
    #[diesel(sql_type = Text)]
    pub node: String,
    /// The visit number, from 1.
    #[diesel(sql_type = Int4)]
    pub visit: i32,
    /// The attempt number, from 1.
    #[diesel(sql_type = Int4)]
    pub attempt: i32,
    /// When it started.
    #[diesel(sql_type = Timestamptz)]
    pub started_at: DateTime<Utc>,
    /// When the run's next life detected it.
    #[diesel(sql_type = Timestamptz)]
    pub noticed_at: DateTime<Utc>,
}

impl Store {
    /// Stores interrupted attempts. Existing records stay unchanged.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn keep_interrupted(
        &self,
        run: Uuid,
        attempts: &[InterruptedAttempt],
    ) -> Result<(), StoreError> {
        fn each<T>(attempts: &[InterruptedAttempt], of: impl Fn(&InterruptedAttempt) -> T) -> Vec<T> {
            attempts.iter().map(of).collect()
        }
        diesel::sql_query(
            "INSERT INTO interrupted_attempts (run_id, node, visit, attempt, started_at, noticed_at)
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        )
        .bind::<SqlUuid, _>(run)
        .bind::<Array<Text>, _>(each(attempts, |attempt| attempt.node.clone()))
        .bind::<Array<Int4>, _>(each(attempts, |attempt| attempt.visit))
        .bind::<Array<Int4>, _>(each(attempts, |attempt| attempt.attempt))
        .bind::<Array<Timestamptz>, _>(each(attempts, |attempt| attempt.started_at))
        .bind::<Array<Timestamptz>, _>(each(attempts, |attempt| attempt.noticed_at))
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Returns a run's interrupted attempts, earliest first, at most 1,000.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn interrupted(&self, run: Uuid) -> Result<Vec<InterruptedAttempt>, StoreError> {
        let sql = "SELECT node, visit, attempt, started_at, noticed_at FROM interrupted_attempts
                   WHERE run_id = $1 ORDER BY started_at, node, visit, attempt LIMIT 1000";
        let query = diesel::sql_query(sql).bind::<SqlUuid, _>(run);
        Ok(query.load(&mut *self.connection().await?).await?)
    }
}
