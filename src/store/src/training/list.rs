//! Lists of trainings and evaluations.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Filters for trainings and evaluations. All given filters must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrainingFilter {
    /// Only this state.
    pub status: Option<TrainingStatus>,
    /// Only those before this one.
    pub before: Option<Uuid>,
}

/// The state of a training or an evaluation, derived from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingStatus {
    /// Not started, or resumed and waiting for a slot.
    Queued,
    /// Executing.
    Running,
    /// Paused by a client.
    Paused,
    /// Resumes by itself later.
    Waiting,
    /// Ended with a result.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TrainingStatus {
    /// The SQL condition over `training_runs t` and `runs r`. The state of a run that resumes by itself
    /// contains the time since when it is refused.
    const fn condition(self) -> &'static str {
        match self {
            Self::Queued => {
                "(r.status = 'queued' OR r.status = 'waiting' AND t.pause_requested_at IS NULL
                     AND strpos(coalesce(t.state, ''), '\"refused_since\":') = 0)"
            }
            Self::Paused => "r.status = 'waiting' AND t.pause_requested_at IS NOT NULL",
            Self::Waiting => {
                "r.status = 'waiting' AND t.pause_requested_at IS NULL AND strpos(t.state, '\"refused_since\":') > 0"
            }
            Self::Running => "r.status = 'running'",
            Self::Succeeded => "r.status = 'succeeded'",
            Self::Failed => "r.status = 'failed'",
            Self::Cancelled => "r.status = 'cancelled'",
        }
    }
}

impl Store {
    /// Returns at most `limit` trainings and evaluations of a workflow, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn trainings_of_workflow(
        &self,
        workflow: Uuid,
        filter: TrainingFilter,
        limit: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        #[derive(QueryableByName)]
        struct TrainingId {
            #[diesel(sql_type = SqlUuid)]
            run_id: Uuid,
        }
        let state = filter.status.map_or("true", TrainingStatus::condition);
        // Reads only the workflow's latest ones, and only their runs.
        let sql = format!(
            "SELECT t.run_id FROM training_runs t JOIN runs r ON r.id = t.run_id
             WHERE t.workflow_id = $1 AND ($2 IS NULL OR t.run_id < $2) AND {state}
             ORDER BY t.run_id DESC LIMIT $3"
        );
        let found: Vec<TrainingId> = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(workflow)
            .bind::<Nullable<SqlUuid>, _>(filter.before)
            .bind::<BigInt, _>(limit)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found.into_iter().map(|found| found.run_id).collect())
    }
}
