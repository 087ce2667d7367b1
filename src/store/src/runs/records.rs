//! Run rows.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;
use wire::RunState;
use wire::chat::Dialect;

use crate::runs::crashes::crash_ends;
use crate::runs::streams::dialect;
use crate::schema::{runs, streams, workflow_versions};
use crate::{Lease, Store, StoreError};

/// Parses a stored state.
fn read_state(name: &str) -> Result<RunState, StoreError> {
    RunState::from_name(name).ok_or_else(|| StoreError::Corrupt(format!("run status {name}")))
}

/// A run.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The version it runs.
    pub version_id: Uuid,
    /// The writer whose lease covers it, unless it is queued.
    pub writer_id: Uuid,
    /// Its thread.
    pub thread_id: Option<ThreadId>,
    /// Its stream.
    pub stream_id: Option<Uuid>,
    /// Its trigger.
    pub trigger: String,
    /// Its state.
    pub status: RunState,
    /// JSON.
    pub inputs: String,
    /// Run options besides the inputs, JSON.
    pub options: Option<String>,
    /// JSON.
    pub output: Option<String>,
    /// JSON `{code, message, node}`.
    pub error: Option<String>,
    /// Whether a caller requested its end.
    pub cancel_requested: bool,
    /// The number of times it has been parked.
    pub parked: i32,
    /// Its position among its thread's turns after it left the queue; `None`: its id.
    pub turn_order: Option<Uuid>,
    /// The run whose turn it continues or will continue.
    pub continues: Option<Uuid>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Filters for a workflow's runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter {
    /// Only those in this state.
    pub status: Option<RunState>,
    /// Only those before this one.
    pub before: Option<Uuid>,
}

/// The triggers of trainings and evaluations, which have a separate list.
const TRAININGS: [&str; 3] = ["training", "evaluation", "gate"];

/// A run found by recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedRun {
    /// The run.
    pub id: Uuid,
    /// Its thread, for a turn.
    pub thread_id: Option<ThreadId>,
}

/// A writer's unfinished run, with the data needed to resume it.
#[derive(Debug, Clone)]
pub struct LeftRun {
    /// The run.
    pub run: StoredRun,
    /// Its stream's dialect; `None` if the stream does not belong to a chat.
    pub dialect: Option<Dialect>,
    /// Whether it holds a workflow slot.
    pub placed: bool,
    /// Consecutive process crashes without progress that it has seen.
    pub crashes: i32,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = runs)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct StoredRunRow {
    id: Uuid,
    workspace_id: Uuid,
    workflow_id: Uuid,
    version_id: Uuid,
    writer_id: Uuid,
    thread_id: Option<Uuid>,
    stream_id: Option<Uuid>,
    trigger: String,
    status: String,
    inputs: String,
    options: Option<String>,
    output: Option<String>,
    error: Option<String>,
    cancel_requested_at: Option<DateTime<Utc>>,
    parked: i32,
    turn_order: Option<Uuid>,
    continues: Option<Uuid>,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

impl TryFrom<StoredRunRow> for StoredRun {
    type Error = StoreError;

    fn try_from(row: StoredRunRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            workspace_id: row.workspace_id,
            workflow_id: row.workflow_id,
            version_id: row.version_id,
            writer_id: row.writer_id,
            thread_id: row.thread_id.map(ThreadId),
            stream_id: row.stream_id,
            trigger: row.trigger,
            status: read_state(&row.status)?,
            inputs: row.inputs,
            options: row.options,
            output: row.output,
            error: row.error,
            cancel_requested: row.cancel_requested_at.is_some(),
            parked: row.parked,
            turn_order: row.turn_order,
            continues: row.continues,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

/// Selects a writer's unfinished runs.
macro_rules! left {
    ($writer:expr) => {
        runs::table
            .inner_join(streams::table.on(runs::stream_id.eq(streams::id.nullable())))
            .filter(runs::writer_id.eq($writer))
            .filter(runs::finished_at.is_null())
            .filter(not_queued())
            .select((StoredRunRow::as_select(), streams::dialect, placed(), crash_ends()))
    };
}

impl Store {
    /// Returns a run.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn run(&self, id: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let row: Option<StoredRunRow> = runs::table
            .find(id)
            .select(StoredRunRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Returns a run with its version number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn numbered_run(&self, id: Uuid) -> Result<Option<(StoredRun, Option<i32>)>, StoreError> {
        let row: Option<(StoredRunRow, Option<i32>)> = runs::table
            .inner_join(workflow_versions::table.on(workflow_versions::id.eq(runs::version_id)))
            .filter(runs::id.eq(id))
            .select((StoredRunRow::as_select(), workflow_versions::number))
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(|(run, number)| Ok((run.try_into()?, number))).transpose()
    }

    /// Returns these runs, newest first, each with its version number.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn numbered_runs(&self, ids: &[Uuid]) -> Result<Vec<(StoredRun, Option<i32>)>, StoreError> {
        let rows: Vec<(StoredRunRow, Option<i32>)> = runs::table
            .inner_join(workflow_versions::table.on(workflow_versions::id.eq(runs::version_id)))
            .filter(runs::id.eq_any(ids))
            .order(runs::id.desc())
            .select((StoredRunRow::as_select(), workflow_versions::number))
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(|(run, number)| Ok((run.try_into()?, number))).collect()
    }

    /// Returns a workflow's runs, newest first, each with its version number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn runs_of_workflow(
        &self,
        workflow: Uuid,
        filter: RunFilter,
        limit: i64,
    ) -> Result<Vec<(StoredRun, Option<i32>)>, StoreError> {
        let mut query = runs::table
            .inner_join(workflow_versions::table.on(workflow_versions::id.eq(runs::version_id)))
            .filter(runs::workflow_id.eq(workflow))
            .filter(runs::trigger.ne_all(TRAININGS))
            .order(runs::id.desc())
            .limit(limit)
            .select((StoredRunRow::as_select(), workflow_versions::number))
            .into_boxed();
        if let Some(status) = filter.status {
            query = query.filter(runs::status.eq(status.as_str()));
        }
        if let Some(before) = filter.before {
            query = query.filter(runs::id.lt(before));
        }
        let rows: Vec<(StoredRunRow, Option<i32>)> = query.load(&mut *self.connection().await?).await?;
        rows.into_iter().map(|(run, number)| Ok((run.try_into()?, number))).collect()
    }

    /// Returns a thread's unfinished runs that this writer owns, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn unfinished_of_thread(
        &self,
        thread: ThreadId,
        writer: Uuid,
    ) -> Result<Vec<StoredRun>, StoreError> {
        let rows: Vec<StoredRunRow> = runs::table
            .filter(runs::thread_id.eq(thread.0))
            .filter(runs::finished_at.is_null())
            .filter(runs::writer_id.eq(writer))
            .filter(not_queued())
            .order(runs::id)
            .select(StoredRunRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// Returns this writer's unfinished runs, from `since` on, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn unfinished_of_writer(
        &self,
        writer: Uuid,
        since: Uuid,
    ) -> Result<Vec<UnfinishedRun>, StoreError> {
        let rows: Vec<(Uuid, Option<Uuid>)> = runs::table
            .filter(runs::id.ge(since))
            .filter(runs::writer_id.eq(writer))
            .filter(runs::finished_at.is_null())
            .filter(not_queued())
            .order(runs::id)
            .select((runs::id, runs::thread_id))
            .load(&mut *self.connection().await?)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(id, thread)| UnfinishedRun { id, thread_id: thread.map(ThreadId) })
            .collect())
    }

    /// Returns at most `limit` unfinished runs of this writer, from `since` on, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn left_runs(&self, writer: Uuid, since: Uuid, limit: i64) -> Result<Vec<LeftRun>, StoreError> {
        let query = left!(writer).filter(runs::id.ge(since)).order(runs::id).limit(limit);
        let rows: Vec<LeftColumns> = query.load(&mut *self.connection().await?).await?;
        rows.into_iter()
            .map(|(run, dialect, placed, crashes)| LeftRun::from_columns(run, &dialect, placed, crashes))
            .collect()
    }

    /// Returns a run, if it is unfinished and this writer owns it.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn left_run(&self, writer: Uuid, run: Uuid) -> Result<Option<LeftRun>, StoreError> {
        let query = left!(writer).filter(runs::id.eq(run));
        let row: Option<LeftColumns> = query.first(&mut *self.connection().await?).await.optional()?;
        row.map(|(run, dialect, placed, crashes)| LeftRun::from_columns(run, &dialect, placed, crashes))
            .transpose()
    }
}

/// A run, its stream's dialect, whether it holds a slot, and its crash count.
type LeftColumns = (StoredRunRow, String, bool, i32);

impl LeftRun {
    fn from_columns(run: StoredRunRow, name: &str, placed: bool, crashes: i32) -> Result<Self, StoreError> {
        Ok(Self { run: run.try_into()?, dialect: dialect(name)?, placed, crashes })
    }
}

/// Whether the run holds a workflow slot.
fn placed() -> diesel::expression::SqlLiteral<diesel::sql_types::Bool> {
    diesel::dsl::sql("EXISTS (SELECT FROM run_places WHERE run_places.run_id = runs.id)")
}

/// SQL condition: the run is not queued. A queued run has no writer.
pub(crate) fn not_queued() -> diesel::expression::SqlLiteral<diesel::sql_types::Bool> {
    diesel::dsl::sql("NOT EXISTS (SELECT FROM run_queue WHERE run_queue.run_id = runs.id)")
}

/// Whether a writer owns a run. If so, it stays the owner until this transaction ends.
pub(crate) async fn holds_run(
    connection: &mut AsyncPgConnection,
    writer: Uuid,
    run: Uuid,
) -> Result<bool, StoreError> {
    let owned: Option<Uuid> = runs::table
        .filter(runs::id.eq(run))
        .filter(runs::writer_id.eq(writer))
        .select(runs::id)
        .for_share()
        .first(connection)
        .await
        .optional()?;
    Ok(owned.is_some())
}

/// Reassigns a dead writer's unfinished runs.
pub(crate) async fn reassign(
    connection: &mut AsyncPgConnection,
    dead: Uuid,
    since: Uuid,
    to: Lease,
) -> Result<Vec<Uuid>, StoreError> {
    let taken = diesel::update(runs::table)
        .filter(runs::id.ge(since))
        .filter(runs::writer_id.eq(dead))
        .filter(runs::finished_at.is_null())
        .filter(not_queued())
        .set(runs::writer_id.eq(to.writer_id))
        .returning(runs::id)
        .get_results(connection)
        .await?;
    Ok(taken)
}
