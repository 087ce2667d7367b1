//! The unfinished turns of a thread.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::{ThreadId, first_id_at};
use uuid::Uuid;

use crate::runs::not_queued;
use crate::schema::runs;
use crate::{Store, StoreError, stops};

/// Starts turn `$3` at place `$2` of thread `$1` for writer `$4`. A turn that is marked as running already waits for other marks
/// alone: it has started before those that come before it. Its first commit stores `started_at`, with what it takes out of the thread.
const START: &str = "
    WITH unfinished AS (
        SELECT r.id, r.writer_id, r.status = 'running' AS executes,
            (coalesce(r.turn_order, r.id), r.id) AS place
        FROM runs r WHERE r.thread_id = $1 AND r.finished_at IS NULL
            AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id)
    )
    UPDATE runs SET status = 'running'
    WHERE id = $3 AND writer_id = $4 AND finished_at IS NULL
        AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = runs.id) AND NOT EXISTS (
        SELECT FROM unfinished other WHERE other.writer_id <> $4 AND (other.executes
            OR other.place < ($2, $3) AND NOT EXISTS (
                SELECT FROM unfinished own WHERE own.writer_id = $4
                    AND (own.executes OR own.id <> $3 AND own.place < other.place))))";

#[diesel::declare_sql_function]
extern "SQL" {
    /// The first of both that is there.
    fn coalesce(first: Nullable<Timestamptz>, second: Nullable<Timestamptz>) -> Nullable<Timestamptz>;
}

/// A turn that has begun to run.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct StartedTurn {
    /// When it was asked for: its message has the same time.
    pub created_at: DateTime<Utc>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// What its row says of it, JSON.
    pub options: Option<String>,
}

/// A turn that has begun, and what says when it spoke.
#[derive(Queryable)]
struct Begun {
    turn: StartedTurn,
    run: Uuid,
    order: Option<Uuid>,
    finished_at: Option<DateTime<Utc>>,
    parked: i32,
}

impl Begun {
    /// When it spoke again after it was parked: after it left the queue, and after the turns before its new place.
    fn resumed_at(&self, all: &[Self]) -> Option<DateTime<Utc>> {
        let order = self.order.filter(|_| self.parked > 0)?;
        let left = time_of(order)?;
        let before = all.iter().filter(|other| other.parked == 0 && other.place() < (order, self.run));
        Some(before.filter_map(|other| other.finished_at).fold(left, DateTime::max))
    }

    fn place(&self) -> (Uuid, Uuid) {
        (self.order.unwrap_or(self.run), self.run)
    }
}

#[derive(QueryableByName)]
struct Unfinished {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    stream_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    writer_id: Uuid,
    #[diesel(sql_type = Bool)]
    parked: bool,
}

/// Whether a turn has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStart {
    /// It executes now.
    Started,
    /// Another instance has to finish a turn first.
    Waits,
    /// It has ended, is parked, or belongs to another instance.
    NotOurs,
}

/// Which unfinished turns of a thread a stop ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsToStop {
    /// Every one.
    All,
    /// Those that execute or wait for their turn in the thread.
    NotParked,
}

/// A turn that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// Its run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// Whose lease it is written under.
    pub writer: Uuid,
    /// Whether it is parked: later messages are answered meanwhile.
    pub parked: bool,
}

impl Store {
    /// The turn that executes in a thread: the first unfinished one that is not parked, else the first that is parked.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn running_turn(&self, thread: ThreadId) -> Result<Option<UnfinishedTurn>, StoreError> {
        let turn: Option<Unfinished> = diesel::sql_query(
            "SELECT r.id, r.stream_id, r.writer_id, q.run_id IS NOT NULL AS parked
             FROM runs r LEFT JOIN run_queue q ON q.run_id = r.id
             WHERE r.thread_id = $1 AND r.finished_at IS NULL AND r.stream_id IS NOT NULL
             ORDER BY parked, r.status <> 'running', coalesce(r.turn_order, r.id), r.id LIMIT 1",
        )
        .bind::<SqlUuid, _>(thread.0)
        .get_result(&mut *self.connection().await?)
        .await
        .optional()?;
        Ok(turn.map(|turn| UnfinishedTurn {
            run: turn.id,
            stream: turn.stream_id,
            writer: turn.writer_id,
            parked: turn.parked,
        }))
    }

    /// Every turn of a thread that has begun, in that order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn started_turns(&self, thread: ThreadId) -> Result<Vec<StartedTurn>, StoreError> {
        let started = runs::started_at.assume_not_null();
        let turns: Vec<Begun> = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .filter(runs::started_at.is_not_null())
            .order((started, runs::id))
            .select((
                (runs::created_at, started, runs::options),
                runs::id,
                runs::turn_order,
                runs::finished_at,
                runs::parked,
            ))
            .load(&mut *self.connection().await?)
            .await?;
        let resumed = turns.iter().filter_map(|turn| {
            let started_at = turn.resumed_at(&turns)?;
            Some(StartedTurn { started_at, ..turn.turn.clone() })
        });
        let mut parts: Vec<StartedTurn> = resumed.collect();
        parts.extend(turns.into_iter().map(|turn| turn.turn));
        parts.sort_by_key(|part| part.started_at);
        Ok(parts)
    }

    /// Starts a turn unless another instance executes one of the thread, or has one before it. `order`: its place in the thread,
    /// its id unless it resumed. Two instances never start turns of one thread at once: both lock the thread.
    ///
    /// Turns in the queue are parked and have no place. A turn of another instance does not count if it waits for a turn of
    /// this one, which is queued after `run` here.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start_turn(
        &self,
        thread: ThreadId,
        (order, run): (Uuid, Uuid),
        writer: Uuid,
    ) -> Result<TurnStart, StoreError> {
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                diesel::sql_query("SELECT FROM threads WHERE id = $1 FOR NO KEY UPDATE")
                    .bind::<SqlUuid, _>(thread.0)
                    .execute(connection)
                    .await?;
                let started = diesel::sql_query(START)
                    .bind::<SqlUuid, _>(thread.0)
                    .bind::<SqlUuid, _>(order)
                    .bind::<SqlUuid, _>(run)
                    .bind::<SqlUuid, _>(writer)
                    .execute(connection)
                    .await?;
                if started > 0 {
                    return Ok::<_, StoreError>(TurnStart::Started);
                }
                let ours = runs::table
                    .find(run)
                    .filter(runs::writer_id.eq(writer))
                    .filter(runs::finished_at.is_null())
                    .filter(not_queued());
                let ours: bool = diesel::select(diesel::dsl::exists(ours)).get_result(connection).await?;
                Ok(if ours { TurnStart::Waits } else { TurnStart::NotOurs })
            })
            .await
    }

    /// When the last turn ended that was accepted before `at` and had not ended by then; the end of all time if it
    /// has not, and `None` if there is no such turn. Turns that were parked at `at` are left out: later ones did not wait for them.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn end_of_turns_before(
        &self,
        thread: ThreadId,
        at: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let ends: Vec<Option<DateTime<Utc>>> = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .filter(runs::created_at.lt(at))
            .filter(runs::parked.eq(0).or(runs::turn_order.le(first_id_at(at))))
            .filter(runs::finished_at.is_null().or(runs::finished_at.gt(at)))
            .select(runs::finished_at)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(ends.into_iter().map(|end| end.unwrap_or(DateTime::<Utc>::MAX_UTC)).max())
    }

    /// Stores a request to stop turns of a thread; returns those that have not ended, the latest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn request_cancel_of_thread(
        &self,
        thread: ThreadId,
        which: TurnsToStop,
    ) -> Result<Vec<UnfinishedTurn>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| request_cancel(connection, thread, which, now).await).await
    }
}

/// The same in a transaction. The first request's time stays.
pub(crate) async fn request_cancel(
    connection: &mut AsyncPgConnection,
    thread: ThreadId,
    which: TurnsToStop,
    now: DateTime<Utc>,
) -> Result<Vec<UnfinishedTurn>, StoreError> {
    let mut turns: Vec<(Uuid, Option<Uuid>, Uuid)> = diesel::update(runs::table)
        .filter(runs::thread_id.eq(thread.0))
        .filter(runs::finished_at.is_null())
        .filter(not_queued().or((which == TurnsToStop::All).into_sql::<Bool>()))
        .set(runs::cancel_requested_at.eq(coalesce(runs::cancel_requested_at, now)))
        .returning((runs::id, runs::stream_id, runs::writer_id))
        .get_results(connection)
        .await?;
    turns.sort_unstable_by(|a, b| b.cmp(a));
    let runs: Vec<Uuid> = turns.iter().map(|(run, _, _)| *run).collect();
    stops::ask(connection, &runs).await?;
    let turn = |(run, stream, writer)| Some(UnfinishedTurn { run, stream: stream?, writer, parked: false });
    Ok(turns.into_iter().filter_map(turn).collect())
}

/// The time in the first 48 bits of an id, to the millisecond.
fn time_of(id: Uuid) -> Option<DateTime<Utc>> {
    i64::try_from(id.as_u128() >> 80).ok().and_then(DateTime::from_timestamp_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(second)
    }

    fn turn(asked: i64, resumed: Option<i64>, ended: i64) -> Begun {
        let turn = StartedTurn { created_at: at(asked), started_at: at(asked), options: None };
        let parked = i32::from(resumed.is_some());
        let order = resumed.map(|second| first_id_at(at(second)));
        Begun { turn, run: first_id_at(at(asked)), order, finished_at: Some(at(ended)), parked }
    }

    #[test]
    fn a_turn_that_was_parked_speaks_again_after_the_turns_before_its_new_place() {
        let turns = [turn(1, Some(10), 30), turn(5, None, 20), turn(12, None, 40)];
        assert_eq!(turns[0].resumed_at(&turns), Some(at(20)));
        assert_eq!(turns[1].resumed_at(&turns), None, "it was never parked");
        let idle = [turn(1, Some(10), 30), turn(5, None, 8), turn(12, None, 40)];
        assert_eq!(idle[0].resumed_at(&idle), Some(at(10)));
    }
}
