//! The unfinished turns in a thread.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::{ThreadId, first_id_at};
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::runs::records::not_queued;
use crate::runs::stops;
use crate::schema::runs;
use crate::{Store, StoreError};

/// Starts turn `$3` at position `$2` in thread `$1` for writer `$4`. A turn that is already marked as running
/// only waits for other marked turns: it started before the turns ahead of it. Its first commit stores
/// `started_at`, together with its cut from the thread.
const START: &str = "
    WITH unfinished AS (
        SELECT r.id, r.writer_id, r.status = 'running' AS executes,
            (coalesce(r.turn_order, r.id), r.id) AS place
        FROM runs r WHERE r.thread_id = $1 AND r.finished_at IS NULL AND r.trigger <> 'action'
            AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = r.id)
    )
    UPDATE runs SET status = 'running'
    WHERE id = $3 AND writer_id = $4 AND finished_at IS NULL
        AND NOT EXISTS (SELECT FROM run_queue q WHERE q.run_id = runs.id) AND NOT EXISTS (
        SELECT FROM unfinished other WHERE other.writer_id <> $4 AND (other.executes
            OR other.place < ($2, $3) AND NOT EXISTS (
                SELECT FROM unfinished own WHERE own.writer_id = $4
                    AND (own.executes OR own.id <> $3 AND own.place < other.place))))";

/// The trigger for runs that only change a thread's widget: they are outside its turn order.
const ACTION: &str = "action";

#[diesel::declare_sql_function]
extern "SQL" {
    /// The first non-null argument.
    fn coalesce(first: Nullable<Timestamptz>, second: Nullable<Timestamptz>) -> Nullable<Timestamptz>;
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

/// The result of a turn start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStart {
    /// It executes now.
    Started,
    /// A turn on another instance must finish first.
    Waits,
    /// It has ended, is parked, or belongs to another instance.
    NotOurs,
}

/// The turns that a stop request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsToStop {
    /// All unfinished turns.
    All,
    /// Turns that execute or wait for earlier turns.
    NotParked,
}

/// An unfinished turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// Its run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// The writer whose lease covers it.
    pub writer: Uuid,
    /// Whether it is parked: later messages are answered in the meantime.
    pub parked: bool,
}

impl Store {
    /// Returns the current turn in a thread: the first unfinished one that is not parked, else the first parked
    /// one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn running_turn(&self, thread: ThreadId) -> Result<Option<UnfinishedTurn>, StoreError> {
        let turn: Option<Unfinished> = prepared(
            "SELECT r.id, r.stream_id, r.writer_id, q.run_id IS NOT NULL AS parked
             FROM runs r LEFT JOIN run_queue q ON q.run_id = r.id
             WHERE r.thread_id = $1 AND r.finished_at IS NULL AND r.stream_id IS NOT NULL AND r.trigger <> 'action'
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

    /// Starts a turn unless another instance executes a turn in the thread, or has an earlier one. `order`: its
    /// position in the thread, equal to its id unless it was resumed. Two instances never start turns in one
    /// thread concurrently: both lock the thread.
    ///
    /// Queued turns are parked and have no position. A turn on another instance does not count if it waits for
    /// a turn on this instance that is queued after `run`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn start_turn(
        &self,
        thread: ThreadId,
        order: Uuid,
        run: Uuid,
        writer: Uuid,
    ) -> Result<TurnStart, StoreError> {
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                prepared("SELECT FROM threads WHERE id = $1 FOR NO KEY UPDATE")
                    .bind::<SqlUuid, _>(thread.0)
                    .execute(connection)
                    .await?;
                let started = prepared(START)
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

    /// Returns the end of the last turn that was accepted before `at` and unfinished at that time: the maximum
    /// time if it is still unfinished, `None` without such a turn. Ignores turns that were parked at `at`:
    /// later turns did not wait for them.
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
            .filter(runs::trigger.ne(ACTION))
            .filter(runs::created_at.lt(at))
            .filter(runs::parked.eq(0).or(runs::turn_order.le(first_id_at(at))))
            .filter(runs::finished_at.is_null().or(runs::finished_at.gt(at)))
            .select(runs::finished_at)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(ends.into_iter().map(|end| end.unwrap_or(DateTime::<Utc>::MAX_UTC)).max())
    }

    /// Stores a request to stop turns in a thread; returns the unfinished ones, latest first.
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
    let mut turns: Vec<(Uuid, Option<Uuid>, Uuid, bool)> = diesel::update(runs::table)
        .filter(runs::thread_id.eq(thread.0))
        .filter(runs::finished_at.is_null())
        .filter(not_queued().and(runs::trigger.ne(ACTION)).or((which == TurnsToStop::All).into_sql::<Bool>()))
        .set(runs::cancel_requested_at.eq(coalesce(runs::cancel_requested_at, now)))
        .returning((runs::id, runs::stream_id, runs::writer_id, not_queued()))
        .get_results(connection)
        .await?;
    turns.sort_unstable_by(|a, b| b.cmp(a));
    let runs: Vec<Uuid> = turns.iter().map(|(run, ..)| *run).collect();
    stops::ask(connection, &runs).await?;
    let turn = |(run, stream, writer, not_parked): (Uuid, Option<Uuid>, Uuid, bool)| {
        Some(UnfinishedTurn { run, stream: stream?, writer, parked: !not_parked })
    };
    Ok(turns.into_iter().filter_map(turn).collect())
}
