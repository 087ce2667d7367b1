//! Ends of a process without a shutdown, as each unfinished run has seen them.
//!
//! A run that makes the process end does so again in each life. So a run fails after [`CRASH_LIMIT`] ends in a row between which it
//! has stored no journal row, and the last of these lives executes it alone: other runs that were only present are not blamed.

use diesel::sql_types::{Bool, Integer, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{Store, StoreError};

/// Ends in a row without progress after which a run fails.
pub const CRASH_LIMIT: i32 = 3;
/// Ends in a row without progress after which a run resumes alone.
pub const CRASH_SUSPECT: i32 = CRASH_LIMIT - 1;

/// How far the run `r` has come: the number grows with each journal row, and each time that the run is parked.
macro_rules! progress {
    () => {
        "(r.parked + (SELECT count(*) + count(finished_at) FROM run_steps WHERE run_id = r.id)
             + (SELECT count(*) FROM training_calls WHERE run_id = r.id)
             + (SELECT count(*) FROM training_cases WHERE run_id = r.id))"
    };
}

/// The unfinished runs of the writer `$1`, from `$2` on.
macro_rules! unfinished {
    () => {
        "r.id >= $2 AND r.writer_id = $1 AND r.finished_at IS NULL
             AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id)"
    };
}

/// Counts an end without a shutdown. A suspect that has not executed in that life is not blamed for its end.
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

/// After a shutdown counting begins again.
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

    /// Whether a run has stored a journal row since the last counted end.
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

/// Records the end of a writer's process for each of its unfinished runs. `crashed`: it ended without a shutdown.
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

/// Ends in a row without progress that a run has seen.
pub(crate) fn crash_ends() -> diesel::expression::SqlLiteral<Integer> {
    diesel::dsl::sql("coalesce((SELECT ends FROM run_crashes WHERE run_crashes.run_id = runs.id), 0)")
}
