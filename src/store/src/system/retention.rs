//! Retention: old runs, deleted threads' content, unreferenced values.
//!
//! Each call handles a batch that is small enough not to delay other work, and returns whether more is left;
//! several instances may run concurrently.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Bytea, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::first_id_at;

use crate::{Store, StoreError};

/// Maximum runs per batch: each may have thousands of steps.
const RUNS_PART: i64 = 100;
/// Maximum training rows per batch.
const ROWS_PART: i64 = 10_000;
/// Maximum threads per batch: each may have thousands of runs.
const THREADS_PART: i64 = 10;
/// Maximum values per batch.
const BLOBS_PART: i64 = 5_000;

/// Deletes all data that belongs only to the runs in `old`, but not the runs.
macro_rules! run_rows {
    () => {
        "
    steps AS (DELETE FROM run_steps t USING old WHERE t.run_id = old.id),
    cut_off AS (DELETE FROM interrupted_attempts t USING old WHERE t.run_id = old.id),
    crashes AS (DELETE FROM run_crashes t USING old WHERE t.run_id = old.id),
    questions AS (DELETE FROM run_questions t USING old WHERE t.run_id = old.id),
    asked AS (DELETE FROM question_items t USING old WHERE t.run_id = old.id),
    turns_of AS (DELETE FROM turns_sent t USING old WHERE t.run_id = old.id),
    sent AS (DELETE FROM outbox t USING old WHERE t.run_id = old.id),
    events AS (DELETE FROM stream_events t USING old, streams s
               WHERE s.id = old.stream_id AND t.day = s.day AND t.stream_id = s.id),
    of_apps AS (DELETE FROM app_runs t USING old WHERE t.run_id = old.id),
    trainings AS (DELETE FROM training_runs t USING old WHERE t.run_id = old.id),
    calls_of AS (DELETE FROM training_calls t USING old WHERE t.run_id = old.id),
    cases_of AS (DELETE FROM training_cases t USING old WHERE t.run_id = old.id),
    candidates_of AS (DELETE FROM training_candidates t USING old WHERE t.run_id = old.id),
    marks_of AS (DELETE FROM training_marks t USING old WHERE t.run_id = old.id),
    datasets_of AS (DELETE FROM datasets t USING old WHERE t.id = old.id AND t.name IS NULL),
    dataset_versions_of AS (DELETE FROM dataset_versions t USING old, datasets d
        WHERE t.dataset_id = old.id AND d.id = old.id AND d.name IS NULL),
    entries_of AS (DELETE FROM dataset_entries t USING old, datasets d
        WHERE t.dataset_id = old.id AND d.id = old.id AND d.name IS NULL),
    kept AS (DELETE FROM stream_events_kept t USING old WHERE t.stream_id = old.stream_id),
    streams_of AS (DELETE FROM streams t USING old WHERE t.id = old.stream_id)"
    };
}

/// Deletes the content of the threads in `gone`, except their runs' content and the feedback kinds.
macro_rules! thread_rows {
    () => {
        "
             items AS (DELETE FROM thread_items t USING gone WHERE t.thread_id = gone.id),
             cuts AS (DELETE FROM thread_cuts t USING gone WHERE t.thread_id = gone.id),
             turns AS (DELETE FROM feedback_turns t USING gone WHERE t.thread_id = gone.id),
             uses AS (DELETE FROM blob_uses u USING attachments t, gone WHERE t.thread_id = gone.id
                 AND u.owner = t.id),
             files AS (DELETE FROM attachments t USING gone WHERE t.thread_id = gone.id)"
    };
}

/// Deletes the runs in `old`, with all data that belongs only to them.
pub(crate) const DELETE_RUNS: &str =
    concat!(run_rows!(), ", runs_of AS (DELETE FROM runs t USING old WHERE t.id = old.id)");

/// Deletes the rows that belong to the threads in `gone`, except their runs' rows.
pub(crate) const THREAD_AND_FEEDBACK_ROWS: &str = concat!(
    thread_rows!(),
    ", feedback AS (DELETE FROM item_feedback t USING gone WHERE t.thread_id = gone.id)"
);

/// Deletes all data that belongs only to the runs in `old`, but not the runs.
pub(crate) const RUN_ROWS: &str = run_rows!();

/// Removes the content from the runs in `old`. The error is not parsed as JSON: its message may contain a NUL,
/// which the database rejects.
pub(crate) const CLEAR_RUN_CONTENT: &str = "
             said AS (UPDATE runs t SET inputs = '{}', output = NULL, options = NULL, stream_id = NULL,
                 error = CASE WHEN t.error IS NOT NULL THEN json_build_object('code', substring(t.error FROM '\"code\":\"([a-z0-9_.]+)\"'),
                     'message', substring(t.error FROM '\"code\":\"([a-z0-9_.]+)\"'),
                     'node', substring(t.error FROM '\"node\":\"([^\"\\\\]+)\"'))::text END
                 FROM old WHERE t.id = old.id)";

/// Empties dataset cases that were copied from the runs in `old`, or from other runs in the threads in `gone`.
pub(crate) const EMPTY_COPIES: &str = "
             copies AS (UPDATE dataset_cases t SET content = '{\"id\":\"erased-' || encode(substring(t.digest FROM 1 FOR 8), 'hex')
                     || '\",\"inputs\":{},\"erased\":true}'
                 WHERE t.run_id IN (SELECT id FROM old) OR t.thread_id IN (SELECT id FROM gone))";

/// Deletes the content of the threads in `gone`, except their runs' content and the feedback kinds.
pub(crate) const CONTENT_ROWS: &str = thread_rows!();

/// SQL condition: the run's turn does not wait for an answer, which may arrive at any time. `$2`: the end of
/// the retention period.
pub(crate) const WAITS_FOR_NOTHING: &str = "NOT EXISTS (SELECT FROM turns_sent t WHERE t.run_id = runs.id AND (
                         t.due_at IS NOT NULL
                         OR EXISTS (SELECT FROM run_questions q WHERE q.run_id = t.run_id AND q.answered_at IS NULL
                             AND (q.expires_at IS NULL OR q.expires_at > $2)
                             -- What a retry took out of the thread is not answered any more.
                             AND NOT EXISTS (SELECT FROM question_items i JOIN thread_cuts c ON c.thread_id = i.thread_id
                                 AND i.item_id > c.behind AND i.item_id < c.id
                                 WHERE (i.run_id, i.node, i.visit, i.attempt) = (q.run_id, q.node, q.visit, q.attempt)))
                         OR t.continued_by IS NULL AND EXISTS (SELECT FROM run_questions q
                             WHERE q.run_id = t.run_id AND q.answered_at > $2)
                         OR EXISTS (SELECT FROM runs c WHERE c.id = t.continued_by AND c.finished_at IS NULL)))";

impl Store {
    /// Deletes runs that ended before then, with their journals; `true` if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_runs(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        if self.forget_rows_of_old_trainings(before).await? {
            return Ok(true);
        }
        // Runs that ended before then were also created before then.
        let sql = format!(
            "WITH old AS MATERIALIZED (SELECT id, stream_id FROM runs WHERE id < $1 AND finished_at < $2
                     AND {WAITS_FOR_NOTHING}
                 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED), {DELETE_RUNS} SELECT FROM old"
        );
        let found = diesel::sql_query(sql)
            .bind::<SqlUuid, _>(first_id_at(before))
            .bind::<Timestamptz, _>(before)
            .bind::<BigInt, _>(RUNS_PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(found, RUNS_PART))
    }

    /// Deletes most rows of trainings that ended before then: a single training may have hundreds of thousands,
    /// too many for the statement that deletes its run; `true` if more may be left.
    async fn forget_rows_of_old_trainings(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let own = "EXISTS (SELECT FROM datasets d WHERE d.id = c.dataset_id AND d.name IS NULL)";
        for (table, key, condition) in [
            ("training_cases", "run_id", "true"),
            ("training_calls", "run_id", "true"),
            ("stream_events_kept", "stream_id", "true"),
            ("dataset_entries", "dataset_id", own),
        ] {
            // The run, its stream and its own cases have the same id.
            let sql = format!(
                "WITH old AS MATERIALIZED (SELECT t.run_id AS id FROM training_runs t JOIN runs r ON r.id = t.run_id
                     WHERE t.run_id < $1 AND r.finished_at < $2 ORDER BY t.run_id LIMIT $3)
                 DELETE FROM {table} WHERE ctid = ANY (ARRAY(
                     SELECT c.ctid FROM {table} c JOIN old ON c.{key} = old.id WHERE {condition}
                     LIMIT $4 FOR UPDATE OF c SKIP LOCKED))"
            );
            let deleted = diesel::sql_query(sql)
                .bind::<SqlUuid, _>(first_id_at(before))
                .bind::<Timestamptz, _>(before)
                .bind::<BigInt, _>(RUNS_PART)
                .bind::<BigInt, _>(ROWS_PART)
                .execute(&mut *self.connection().await?)
                .await?;
            if is_full(deleted, ROWS_PART) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Clears the pending items of questions that expired before then without having been shown: their runs
    /// ended otherwise.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_unasked_questions(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        diesel::sql_query(
            "UPDATE run_questions q SET item = NULL FROM runs r
             WHERE q.item IS NOT NULL AND q.answered_at IS NULL AND q.expires_at < $1
                 AND r.id = q.run_id AND r.finished_at IS NOT NULL
                 AND NOT EXISTS (SELECT FROM question_items i
                     WHERE (i.run_id, i.node, i.visit, i.attempt) = (q.run_id, q.node, q.visit, q.attempt))",
        )
        .bind::<Timestamptz, _>(before)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Erases the content of threads that were deleted before then; `true` if more may be left. Threads with
    /// unfinished turns are left for later.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn erase_deleted_threads(&self, before: DateTime<Utc>) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT id FROM threads t WHERE deleted_at < $1 AND erased_at IS NULL
                 AND NOT EXISTS (SELECT FROM runs r WHERE r.thread_id = t.id AND r.finished_at IS NULL)
                 LIMIT $3 FOR UPDATE SKIP LOCKED),
             old AS MATERIALIZED (SELECT r.id, r.stream_id FROM runs r JOIN gone ON r.thread_id = gone.id), {DELETE_RUNS},
             {THREAD_AND_FEEDBACK_ROWS}, {EMPTY_COPIES}
             UPDATE threads t SET erased_at = $2, title = NULL, status_reason = NULL, image_domains = NULL
                 FROM gone WHERE t.id = gone.id"
        );
        let found = diesel::sql_query(sql)
            .bind::<Timestamptz, _>(before)
            .bind::<Timestamptz, _>(self.now())
            .bind::<BigInt, _>(THREADS_PART)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(found, THREADS_PART))
    }

    /// Scans a batch of values stored before then, after `after`, and deletes those that neither a step nor a
    /// use references; returns the scan position if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_blobs(
        &self,
        before: DateTime<Utc>,
        after: Option<LookedAt>,
    ) -> Result<Option<LookedAt>, StoreError> {
        let after = after.unwrap_or(LookedAt { created_at: DateTime::UNIX_EPOCH, digest: Vec::new() });
        // A writer that stores the same value again updates its row, so one of the two waits for the other.
        let looked: Vec<LookedAt> = diesel::sql_query(
            "WITH part AS MATERIALIZED (SELECT digest, created_at FROM blobs
                 WHERE created_at < $1 AND (created_at, digest) > ($2, $3) ORDER BY created_at, digest LIMIT $4),
             gone AS (DELETE FROM blobs b USING part WHERE b.digest = part.digest AND b.created_at < $1
                 AND NOT EXISTS (SELECT FROM run_steps s WHERE s.result_blob = b.digest)
                 AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.digest = b.digest))
             SELECT created_at, digest FROM part ORDER BY created_at, digest",
        )
        .bind::<Timestamptz, _>(before)
        .bind::<Timestamptz, _>(after.created_at)
        .bind::<Bytea, _>(after.digest)
        .bind::<BigInt, _>(BLOBS_PART)
        .load(&mut *self.connection().await?)
        .await?;
        let full = is_full(looked.len(), BLOBS_PART);
        Ok(looked.into_iter().next_back().filter(|_| full))
    }
}

/// A position in the scan over values.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct LookedAt {
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Bytea)]
    digest: Vec<u8>,
}

pub(crate) fn is_full(found: usize, part: i64) -> bool {
    i64::try_from(found).is_ok_and(|found| found >= part)
}
