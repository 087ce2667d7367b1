//! The unfinished turns of a thread.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use crate::schema::runs;
use crate::{Store, StoreError, stops};

/// Turns of a thread among which every unfinished one is: many more than may wait.
const LATEST: i64 = 128;

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

/// A turn that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// Its run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// Whose lease it is written under.
    pub writer: Uuid,
}

impl Store {
    /// The turn that runs in a thread: of those that have not ended the first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn running_turn(&self, thread: ThreadId) -> Result<Option<UnfinishedTurn>, StoreError> {
        let latest: Vec<(Uuid, Option<Uuid>, Uuid, bool)> = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .order(runs::id.desc())
            .limit(LATEST)
            .select((runs::id, runs::stream_id, runs::writer_id, runs::finished_at.is_null()))
            .load(&mut *self.connection().await?)
            .await?;
        let unfinished = latest.into_iter().rev().find(|(_, _, _, unfinished)| *unfinished);
        Ok(unfinished.and_then(|(run, stream, writer, _)| turn(run, stream, writer)))
    }

    /// Every turn of a thread that has begun, in that order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn started_turns(&self, thread: ThreadId) -> Result<Vec<StartedTurn>, StoreError> {
        let started = runs::started_at.assume_not_null();
        let turns = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .filter(runs::started_at.is_not_null())
            .order((started, runs::id))
            .select((runs::created_at, started, runs::options))
            .load(&mut *self.connection().await?)
            .await?;
        Ok(turns)
    }

    /// Whether another writer has a turn of the thread that came before this one and has not ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn others_are_before(
        &self,
        thread: ThreadId,
        run: Uuid,
        writer: Uuid,
    ) -> Result<bool, StoreError> {
        let before = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .filter(runs::id.lt(run))
            .filter(runs::finished_at.is_null())
            .filter(runs::writer_id.ne(writer));
        Ok(diesel::select(diesel::dsl::exists(before)).get_result(&mut *self.connection().await?).await?)
    }

    /// When the last turn ended that was accepted before `at` and had not ended by then; the end of all time when it
    /// has not, and `None` when there is no such turn.
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
            .filter(runs::finished_at.is_null().or(runs::finished_at.gt(at)))
            .select(runs::finished_at)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(ends.into_iter().map(|end| end.unwrap_or(DateTime::<Utc>::MAX_UTC)).max())
    }

    /// Stores that somebody asked for the end of every turn of a thread; yields those that have not ended, the latest
    /// first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn request_cancel_of_thread(
        &self,
        thread: ThreadId,
    ) -> Result<Vec<UnfinishedTurn>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| request_cancel(connection, thread, now).await).await
    }
}

/// The same in a transaction. The first request's time stays.
pub(crate) async fn request_cancel(
    connection: &mut AsyncPgConnection,
    thread: ThreadId,
    now: DateTime<Utc>,
) -> Result<Vec<UnfinishedTurn>, StoreError> {
    let mut turns: Vec<(Uuid, Option<Uuid>, Uuid)> = diesel::update(runs::table)
        .filter(runs::thread_id.eq(thread.0))
        .filter(runs::finished_at.is_null())
        .set(runs::cancel_requested_at.eq(coalesce(runs::cancel_requested_at, now)))
        .returning((runs::id, runs::stream_id, runs::writer_id))
        .get_results(connection)
        .await?;
    turns.sort_unstable_by(|a, b| b.cmp(a));
    let runs: Vec<Uuid> = turns.iter().map(|(run, _, _)| *run).collect();
    stops::ask(connection, &runs).await?;
    let turns = turns.into_iter();
    Ok(turns.filter_map(|(run, stream, writer)| turn(run, stream, writer)).collect())
}

fn turn(run: Uuid, stream: Option<Uuid>, writer: Uuid) -> Option<UnfinishedTurn> {
    stream.map(|stream| UnfinishedTurn { run, stream, writer })
}
