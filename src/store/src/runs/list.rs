//! A workspace's runs, newest first, without inputs and outputs.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{ThreadId, first_id_at};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::{RunState, Store, StoreError};

/// Maximum runs that one query reads. Selective filters yield short pages.
const MAX_READ: i64 = 10_000;

/// Filters for a workspace's runs. All given filters must match.
#[derive(Debug, Clone, Default)]
pub struct RunsFilter {
    /// Allowed states; empty: any.
    pub statuses: Vec<RunState>,
    /// Allowed triggers; empty: any except trainings and evaluations.
    pub triggers: Vec<String>,
    /// Only runs of this workflow.
    pub workflow: Option<Uuid>,
    /// Only runs in this thread.
    pub thread: Option<ThreadId>,
    /// Created at this time or later.
    pub from: Option<DateTime<Utc>>,
    /// Created before this time.
    pub to: Option<DateTime<Utc>>,
    /// Whether an open question waits for an answer.
    pub waits: Option<bool>,
}

/// A run in a list.
#[derive(Debug, Clone, QueryableByName)]
pub struct ListedRun {
    /// UUIDv7.
    #[diesel(sql_type = SqlUuid)]
    pub id: Uuid,
    /// Its workflow.
    #[diesel(sql_type = SqlUuid)]
    pub workflow_id: Uuid,
    /// The workflow's handle.
    #[diesel(sql_type = Text)]
    pub handle: String,
    /// The workflow's name.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// The version number; `None` for a draft.
    #[diesel(sql_type = Nullable<Integer>)]
    pub number: Option<i32>,
    /// Its version or draft.
    #[diesel(sql_type = SqlUuid)]
    pub version_id: Uuid,
    /// The stored status.
    #[diesel(sql_type = Text)]
    pub status: String,
    /// The trigger.
    #[diesel(sql_type = Text)]
    pub trigger: String,
    /// JSON `{code, message, node}`.
    #[diesel(sql_type = Nullable<Text>)]
    pub error: Option<String>,
    /// JSON.
    #[diesel(sql_type = Nullable<Text>)]
    pub options: Option<String>,
    /// The run whose turn it continues or will continue.
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub continues: Option<Uuid>,
    /// Whether an open question waits for an answer.
    #[diesel(sql_type = Bool)]
    pub waits: bool,
    /// Its thread.
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub thread_id: Option<Uuid>,
    /// When it was accepted.
    #[diesel(sql_type = Timestamptz)]
    pub created_at: DateTime<Utc>,
    /// When it started.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub finished_at: Option<DateTime<Utc>>,
}

/// A page of runs.
#[derive(Debug)]
pub struct RunsPage {
    /// At most the requested number.
    pub runs: Vec<ListedRun>,
    /// The run after which the next page starts; `None`: last page.
    pub next: Option<Uuid>,
}

impl Store {
    /// Returns a page of a workspace's runs, newest first, after the run `before`. Reads at most 10,000 runs: a
    /// page may be shorter than `limit`, even empty, and still have a next one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn runs_of_workspace(
        &self,
        workspace: Uuid,
        filter: &RunsFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<RunsPage, StoreError> {
        let end = filter.to.map_or(Uuid::max(), first_id_at);
        let before = before.map_or(end, |before| before.min(end));
        let from = filter.from.map_or(Uuid::nil(), first_id_at);
        // Separate texts get separate plans: one index serves a workflow, another one the workspace.
        let (of, named) = match (filter.thread, filter.workflow) {
            (Some(thread), _) => ("r.thread_id = $2", Some(thread.0)),
            (None, Some(workflow)) => ("r.workflow_id = $2", Some(workflow)),
            (None, None) => ("$2::uuid IS NULL", None),
        };
        let window = format!("r.workspace_id = $1 AND {of} AND r.id < $3 AND r.id >= $4");
        let page = Page { workspace, filter, named, before, from, now: self.now(), limit, window };
        let mut connection = self.connection().await?;
        // One snapshot: otherwise runs that start between the statements would shift the next page.
        connection
            .build_transaction()
            .read_only()
            .repeatable_read()
            .run(async |connection| page.read(connection).await)
            .await
    }

    /// Returns the time at which a parked run resumes by itself: at the end of a delay, a retry pause, a
    /// question, or its own limit. `None` if it is not parked, or waits only for an answer.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn resumes_at(&self, run: Uuid) -> Result<Option<DateTime<Utc>>, StoreError> {
        let due: Option<Scalar<Option<DateTime<Utc>>>> =
            diesel::sql_query("SELECT due_at FROM run_queue WHERE run_id = $1 AND NOT turn")
                .bind::<SqlUuid, _>(run)
                .get_result(&mut *self.connection().await?)
                .await
                .optional()?;
        Ok(due.and_then(|due| due.0))
    }
}

/// A page query.
struct Page<'a> {
    workspace: Uuid,
    filter: &'a RunsFilter,
    /// The thread or workflow whose index is used.
    named: Option<Uuid>,
    before: Uuid,
    from: Uuid,
    now: DateTime<Utc>,
    limit: i64,
    window: String,
}

impl Page<'_> {
    async fn read(&self, connection: &mut AsyncPgConnection) -> Result<RunsPage, StoreError> {
        let mut runs = self.runs(connection).await?;
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if runs.len() > most {
            runs.truncate(most);
            let next = runs.last().map(|last| last.id);
            return Ok(RunsPage { runs, next });
        }
        // A page may be short although more runs follow: non-matching runs were read, too.
        let next = self.end_of_window(connection).await?;
        Ok(RunsPage { runs, next })
    }

    async fn runs(&self, connection: &mut AsyncPgConnection) -> Result<Vec<ListedRun>, StoreError> {
        let window = &self.window;
        let statuses: Vec<&str> = self.filter.statuses.iter().map(|status| status.as_str()).collect();
        let runs = diesel::sql_query(format!(
            "SELECT r.id, r.workflow_id, w.handle, w.name, v.number, r.version_id, r.status, r.trigger, r.error, r.options, r.continues,
                 q.waits, r.thread_id, r.created_at, r.started_at, r.finished_at
             FROM (SELECT id, workflow_id, version_id, status, trigger, error, options, continues, thread_id, created_at,
                       started_at, finished_at
                   FROM runs r WHERE {window} ORDER BY id DESC LIMIT $10) r
             JOIN workflows w ON w.id = r.workflow_id JOIN workflow_versions v ON v.id = r.version_id
             CROSS JOIN LATERAL (SELECT (r.finished_at IS NULL
                 OR EXISTS (SELECT FROM turns_sent t WHERE t.run_id = r.id)) AND EXISTS (
                 SELECT FROM run_questions q WHERE q.run_id = r.id AND q.answered_at IS NULL
                     AND (q.expires_at IS NULL OR q.expires_at > $9)
                     AND NOT EXISTS (SELECT FROM question_items i JOIN thread_cuts c ON c.thread_id = i.thread_id
                         AND i.item_id > c.behind AND i.item_id < c.id
                         WHERE (i.run_id, i.node, i.visit, i.attempt) = (q.run_id, q.node, q.visit, q.attempt))) AS waits) q
             WHERE ($5::text[] = '{{}}' OR r.status = ANY($5)) AND ($6::text[] = '{{}}' AND r.trigger NOT IN ('training', 'evaluation', 'gate') OR r.trigger = ANY($6))
                 AND ($7::uuid IS NULL OR r.workflow_id = $7) AND ($8::bool IS NULL OR q.waits = $8)
             ORDER BY r.id DESC LIMIT $11"
        ))
        .bind::<SqlUuid, _>(self.workspace)
        .bind::<Nullable<SqlUuid>, _>(self.named)
        .bind::<SqlUuid, _>(self.before)
        .bind::<SqlUuid, _>(self.from)
        .bind::<Array<Text>, _>(statuses)
        .bind::<Array<Text>, _>(&self.filter.triggers)
        .bind::<Nullable<SqlUuid>, _>(self.filter.workflow)
        .bind::<Nullable<Bool>, _>(self.filter.waits)
        .bind::<Timestamptz, _>(self.now)
        .bind::<BigInt, _>(MAX_READ)
        .bind::<BigInt, _>(self.limit.saturating_add(1))
        .load(connection)
        .await?;
        Ok(runs)
    }

    /// Returns the last run read, if more follow.
    async fn end_of_window(&self, connection: &mut AsyncPgConnection) -> Result<Option<Uuid>, StoreError> {
        let window = &self.window;
        let last: Option<Scalar<Uuid>> = diesel::sql_query(format!(
            "SELECT r.id FROM runs r WHERE {window} ORDER BY r.id DESC OFFSET $5 LIMIT 1"
        ))
        .bind::<SqlUuid, _>(self.workspace)
        .bind::<Nullable<SqlUuid>, _>(self.named)
        .bind::<SqlUuid, _>(self.before)
        .bind::<SqlUuid, _>(self.from)
        .bind::<BigInt, _>(MAX_READ - 1)
        .get_result(connection)
        .await
        .optional()?;
        Ok(last.map(|last| last.0))
    }
}
