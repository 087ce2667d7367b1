//! Lists of trainings and evaluations.

use diesel::sql_types::{BigInt, Nullable, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;
use wire::TrainingState;

use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Filters for trainings and evaluations. All given filters must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrainingFilter {
    /// Only this state.
    pub status: Option<TrainingState>,
    /// Only those before this one.
    pub before: Option<Uuid>,
}

/// The SQL condition for a state over `training_runs t` and `runs r`. The state of a run that resumes by itself
/// contains the time since when it is refused.
const fn condition(state: TrainingState) -> &'static str {
    match state {
        TrainingState::Queued => {
            "(r.status = 'queued' OR r.status = 'waiting' AND t.pause_requested_at IS NULL
                     AND strpos(coalesce(t.state, ''), '\"refused_since\":') = 0)"
        }
        TrainingState::Paused => "r.status = 'waiting' AND t.pause_requested_at IS NOT NULL",
        TrainingState::Waiting => {
            "r.status = 'waiting' AND t.pause_requested_at IS NULL AND strpos(t.state, '\"refused_since\":') > 0"
        }
        TrainingState::Running => "r.status = 'running'",
        TrainingState::Succeeded => "r.status = 'succeeded'",
        TrainingState::Failed => "r.status = 'failed'",
        TrainingState::Cancelled => "r.status = 'cancelled'",
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
        let state = filter.status.map_or("true", condition);
        // Reads only the workflow's latest ones, and only their runs.
        let sql = format!(
            "SELECT t.run_id FROM training_runs t JOIN runs r ON r.id = t.run_id
             WHERE t.workflow_id = $1 AND ($2 IS NULL OR t.run_id < $2) AND {state}
             ORDER BY t.run_id DESC LIMIT $3"
        );
        let found: Vec<Scalar<Uuid>> = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(workflow)
            .bind::<Nullable<SqlUuid>, _>(filter.before)
            .bind::<BigInt, _>(limit)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found.into_iter().map(|found| found.0).collect())
    }
}
