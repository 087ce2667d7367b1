//! The runs that an app's pages have started, newest first.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;
use wire::AppRunState;

use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Maximum app runs that one query reads. Selective filters yield short pages.
const MAX_READ: i64 = 10_000;
/// An app's runs before a given run.
const ALL: &str = "FROM app_runs a WHERE a.app_id = $1 AND a.run_id < $2";
/// The unfinished ones among them: an index contains these runs for all apps.
const UNFINISHED: &str = "FROM runs u JOIN app_runs a ON a.run_id = u.id
    WHERE u.trigger = 'app' AND u.finished_at IS NULL AND a.app_id = $1 AND u.id < $2 AND a.run_id < $2";

/// Filters for an app's runs. All given filters must match.
#[derive(Debug, Clone, Default)]
pub struct AppRunsFilter {
    /// Allowed states; empty: any.
    pub states: Vec<AppRunState>,
    /// Only this binding.
    pub binding: Option<String>,
}

/// An app run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAppRun {
    /// The run.
    pub run: Uuid,
    /// The release that froze its binding.
    pub release: Uuid,
    /// The name of the binding.
    pub binding: String,
    /// Whether a member started it.
    pub is_of_member: bool,
    /// Its state.
    pub state: AppRunState,
    /// Its error code.
    pub error_code: Option<String>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// A page of app runs.
#[derive(Debug)]
pub struct AppRunsPage {
    /// At most the requested number.
    pub runs: Vec<ListedAppRun>,
    /// The run after which the next page starts; `None`: last page.
    pub next: Option<Uuid>,
}

#[derive(QueryableByName)]
struct ListedRunRow {
    #[diesel(sql_type = SqlUuid)]
    run_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    release_id: Uuid,
    #[diesel(sql_type = Text)]
    binding: String,
    #[diesel(sql_type = Bool)]
    is_of_member: bool,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Nullable<Text>)]
    error_code: Option<String>,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    finished_at: Option<DateTime<Utc>>,
}

impl TryFrom<ListedRunRow> for ListedAppRun {
    type Error = StoreError;

    fn try_from(row: ListedRunRow) -> Result<Self, StoreError> {
        let state = AppRunState::from_name(&row.state);
        Ok(Self {
            run: row.run_id,
            release: row.release_id,
            binding: row.binding,
            is_of_member: row.is_of_member,
            state: state.ok_or_else(|| StoreError::Corrupt(format!("run status {}", row.state)))?,
            error_code: row.error_code,
            created_at: row.created_at,
            finished_at: row.finished_at,
        })
    }
}

impl Store {
    /// Returns a page of an app's runs, newest first, after the run `before`. Reads at most 10,000 runs, or
    /// 10,000 unfinished runs if only those are requested: a page may be shorter than `limit`, even empty, and
    /// still have a next one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn app_runs(
        &self,
        app: Uuid,
        filter: &AppRunsFilter,
        before: Option<Uuid>,
        limit: i64,
    ) -> Result<AppRunsPage, StoreError> {
        let is_unfinished = !filter.states.is_empty() && !filter.states.iter().any(|state| state.is_final());
        let source = if is_unfinished { UNFINISHED } else { ALL };
        let window = Window { app, before: before.unwrap_or(Uuid::max()), source };
        let mut connection = self.connection().await?;
        // One snapshot: otherwise runs that start between the statements would shift the next page.
        connection
            .build_transaction()
            .read_only()
            .repeatable_read()
            .run(async |connection| window.page(connection, filter, limit).await)
            .await
    }
}

/// A scan window: an app's runs before a given run.
struct Window {
    app: Uuid,
    before: Uuid,
    /// The SQL source of the runs.
    source: &'static str,
}

impl Window {
    async fn page(
        &self,
        connection: &mut AsyncPgConnection,
        filter: &AppRunsFilter,
        limit: i64,
    ) -> Result<AppRunsPage, StoreError> {
        let rows = self.rows(connection, filter, limit.saturating_add(1)).await?;
        let mut runs: Vec<ListedAppRun> =
            rows.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        if runs.len() > most {
            runs.truncate(most);
            let next = runs.last().map(|last| last.run);
            return Ok(AppRunsPage { runs, next });
        }
        // A page may be short although more runs follow: non-matching runs were read, too.
        let next = self.end(connection).await?;
        Ok(AppRunsPage { runs, next })
    }

    async fn rows(
        &self,
        connection: &mut AsyncPgConnection,
        filter: &AppRunsFilter,
        wanted: i64,
    ) -> Result<Vec<ListedRunRow>, StoreError> {
        let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
        // An index contains the ids of an app's runs. Each row is then found by its id: otherwise a plan could
        // read the runs of all apps. JSON functions reject a message with U+0000.
        let source = self.source;
        let rows = diesel::sql_query(format!(
            r#"SELECT w.run_id, a.release_id, a.binding, a.user_id IS NOT NULL AS is_of_member, s.state, r.error_code, r.created_at,
                 r.finished_at
             FROM (SELECT a.run_id {source} ORDER BY a.run_id DESC LIMIT $5) w
             CROSS JOIN LATERAL (SELECT release_id, binding, user_id FROM app_runs WHERE run_id = w.run_id LIMIT 1) a
             CROSS JOIN LATERAL (SELECT status, CASE WHEN status <> 'succeeded' THEN substring(error FROM '"code":"([^"]+)"') END AS error_code, created_at, finished_at
                   FROM runs WHERE id = w.run_id LIMIT 1) r
             CROSS JOIN LATERAL (SELECT CASE WHEN r.status = 'waiting' THEN 'running'
                   WHEN r.status = 'failed' AND r.error_code = 'run.timeout' THEN 'timed_out' ELSE r.status END AS state) s
             WHERE ($3::text IS NULL OR a.binding = $3) AND ($4::text[] = '{{}}' OR s.state = ANY($4))
             ORDER BY w.run_id DESC LIMIT $6"#
        ))
        .bind::<SqlUuid, _>(self.app)
        .bind::<SqlUuid, _>(self.before)
        .bind::<Nullable<Text>, _>(filter.binding.as_deref())
        .bind::<Array<Text>, _>(states)
        .bind::<BigInt, _>(MAX_READ)
        .bind::<BigInt, _>(wanted)
        .load(connection)
        .await?;
        Ok(rows)
    }

    /// Returns the last run read, if more may follow.
    async fn end(&self, connection: &mut AsyncPgConnection) -> Result<Option<Uuid>, StoreError> {
        let source = self.source;
        let last: Option<Scalar<Uuid>> =
            diesel::sql_query(format!("SELECT a.run_id {source} ORDER BY a.run_id DESC OFFSET $3 LIMIT 1"))
                .bind::<SqlUuid, _>(self.app)
                .bind::<SqlUuid, _>(self.before)
                .bind::<BigInt, _>(MAX_READ - 1)
                .get_result(connection)
                .await
                .optional()?;
        Ok(last.map(|last| last.0))
    }
}
