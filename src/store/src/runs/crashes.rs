//! Counts process crashes per unfinished run.
//!
//! A run that crashes the process does so again in each life. So a run fails after [`CRASH_LIMIT`] consecutive
//! crashes between which it has stored no journal row. It executes alone in the last of these lives, so that
//! runs which were only present are not blamed.

use diesel::sql_types::{Bool, Integer, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{Store, StoreError};

/// Consecutive crashes without progress after which a run fails.
pub const CRASH_LIMIT: i32 = 3;
/// Consecutive crashes without progress after which a run resumes alone.
pub const CRASH_SUSPECT: i32 = CRASH_LIMIT - 1;

/// A progress number for the run `r`: it grows with each journal row and each time the run is parked.
macro_rules! progress {
    () => {
        "(r.parked + (SELECT count(*) + count(finished_at) FROM run_steps WHERE run_id = r.id)
             + (SELECT count(*) FROM training_calls WHERE run_id = r.id)
             + (SELECT count(*) FROM training_cases WHERE run_id = r.id))"
    };
}

/// The unfinished runs owned by the writer `$1`, from `$2` on.
macro_rules! unfinished {
    () => {
        "r.id >= $2 AND r.writer_id = $1 AND r.finished_at IS NULL
             AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id)"
    };
}

/// Counts a crash. A suspect that did not execute in that life is not blamed.
const COUNT: &str = concat!(
    "INSERT INTO run_crashes AS c (run_id, ends, progress, alone)
     SELECT r.id, 1, ",
    progress!(),
    ", false FROM runs r WHERE ",
    unfinished!(),
    " ON CONFLICT (run_id) DO UPDATE SET progress = excluded.progress, alone = false,
         ends = CASE WHEN c.progress <> excluded.progress THEN 1
                     WHEN c.ends = $3 AND NOT c.alone THEN c.ends ELSE c.ends + 1 END"
);

/// Resets the count after a shutdown.
const FORGET: &str =
    concat!("DELETE FROM run_crashes c USING runs r WHERE c.run_id = r.id AND ", unfinished!());

impl Store {
    /// Stores whether a run executes alone in this life of the process.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn set_alone(&self, run: Uuid, alone: bool) -> Result<(), StoreError> {
        diesel::sql_query("UPDATE run_crashes SET alone = $2 WHERE run_id = $1")
            .bind::<SqlUuid, _>(run)
            .bind::<Bool, _>(alone)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Whether a run has stored a journal row since the last counted crash.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn has_progressed(&self, run: Uuid) -> Result<bool, StoreError> {
        let sql = concat!(
            "SELECT FROM run_crashes c JOIN runs r ON r.id = c.run_id WHERE r.id = $1 AND c.progress <> ",
            progress!()
        );
        let found =
            diesel::sql_query(sql).bind::<SqlUuid, _>(run).execute(&mut *self.connection().await?).await?;
        Ok(found > 0)
    }
}

/// Records the end of a writer's process for each of its unfinished runs. `crashed`: it ended without a
/// shutdown.
pub(crate) async fn record_end(
    connection: &mut AsyncPgConnection,
    writer: Uuid,
    since: Uuid,
    crashed: bool,
) -> Result<(), StoreError> {
    let query = diesel::sql_query(if crashed { COUNT } else { FORGET })
        .bind::<SqlUuid, _>(writer)
        .bind::<SqlUuid, _>(since);
    if crashed {
        query.bind::<Integer, _>(CRASH_SUSPECT).execute(connection).await?;
    } else {
        query.execute(connection).await?;
    }
    Ok(())
}

/// Consecutive crashes without progress that a run has seen.
pub(crate) fn crash_ends() -> diesel::expression::SqlLiteral<Integer> {
    diesel::dsl::sql("coalesce((SELECT ends FROM run_crashes WHERE run_crashes.run_id = runs.id), 0)")
}
