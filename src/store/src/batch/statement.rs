//! The statement of a commit. diesel caches it by its text, and the text depends only on which tables have rows, on
//! whether those are single rows, and on the day of the events.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{
    Array, BigInt, Bool, Bytea, Date, HasSqlType, Integer, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use uuid::Uuid;

use super::columns::Columns;
use crate::partitions::partition_name;

/// An attempt's outcome follows its start; nothing follows an outcome.
const STEP_AGAIN: &str = "(run_id, node, visit, attempt) DO UPDATE SET status = excluded.status, \
     result = excluded.result, result_blob = excluded.result_blob, error = excluded.error, finished_at = excluded.finished_at \
     WHERE run_steps.finished_at IS NULL";

/// The statement; returns 1, or 0 when the writer's lease has gone to another writer.
pub(super) struct Commit<'a> {
    pub(super) writer_id: Uuid,
    pub(super) epoch: i64,
    pub(super) columns: Columns<'a>,
    /// Whether rows may be there already. Saying so for every row would cost a tenth of the commit.
    pub(super) again: bool,
}

impl QueryId for Commit<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Commit<'_> {
    type SqlType = BigInt;
}

/// The rows of one table, on their way into the statement: many as `unnest` of arrays, a single one as it stands,
/// which costs the server less.
struct Rows<'o, 'a, 'b> {
    out: &'o mut AstPass<'a, 'b, Pg>,
    single: bool,
    first: bool,
}

impl<'o, 'a, 'b> Rows<'o, 'a, 'b> {
    fn begin(out: &'o mut AstPass<'a, 'b, Pg>, rows: usize) -> Self {
        let single = rows == 1;
        out.push_sql(if single { "(SELECT " } else { "unnest(" });
        Self { out, single, first: true }
    }

    /// The values of one column.
    fn column<ST, T>(&mut self, values: &'b Vec<T>) -> QueryResult<()>
    where
        Pg: HasSqlType<ST>,
        T: ToSql<ST, Pg>,
        Vec<T>: ToSql<Array<ST>, Pg>,
        ST: QueryId + 'static,
        Array<ST>: QueryId,
    {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push_sql(",");
        }
        match values.first() {
            Some(value) if self.single => self.out.push_bind_param::<ST, T>(value),
            _ => self.out.push_bind_param::<Array<ST>, Vec<T>>(values),
        }
    }
}

/// `put_table AS (INSERT INTO table (columns) SELECT t.* FROM fence, … AS t)`; `into` may be a partition.
macro_rules! insert {
    (
        $out:ident, $into:expr, $columns:literal, $select:literal, $rows:expr, $conflict:expr,
        [$($kind:ty => $values:expr),+ $(,)?] $(, returning $returning:expr)?
    ) => {{
        $out.push_sql(concat!(", put_", stringify!($rows), " AS (INSERT INTO "));
        $out.push_sql($into);
        $out.push_sql(concat!(" (", $columns, ") SELECT ", $select, " FROM fence, "));
        let mut rows = Rows::begin(&mut $out, $rows.len());
        $(rows.column::<$kind, _>($values)?;)+
        $out.push_sql(") AS t");
        if let Some(conflict) = $conflict {
            $out.push_sql(" ON CONFLICT ");
            $out.push_sql(conflict);
        }
        $($out.push_sql($returning);)?
        $out.push_sql(")");
    }};
}

impl QueryFragment<Pg> for Commit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let Columns { threads, items, cuts, runs, streams, steps, outbox, blobs, chunks, .. } = &self.columns;
        let Columns { updates, copies, questions, queued, left, events, .. } = &self.columns;
        // The queue and the places follow what becomes of the runs.
        let returning = if queued.is_empty() && left.is_empty() { "" } else { " RETURNING runs.id" };
        out.push_sql("WITH fence AS MATERIALIZED (SELECT writer_id FROM leases WHERE writer_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.writer_id)?;
        out.push_sql(" AND epoch = ");
        out.push_bind_param::<BigInt, _>(&self.epoch)?;
        out.push_sql(" FOR SHARE)");
        let skip = self.again.then_some("DO NOTHING");
        if !threads.is_empty() {
            insert!(
                out, "threads",
                "id, workflow_id, workspace_id, owner_kind, owner_id, title, created_at, status", "t.*, 'active'",
                threads, skip,
                [
                    SqlUuid => &threads.id, SqlUuid => &threads.workflow_id, SqlUuid => &threads.workspace_id,
                    Text => &threads.owner_kind, Nullable<Text> => &threads.owner_id,
                    Nullable<Text> => &threads.title,
                    Timestamptz => &threads.created_at,
                ]
            );
        }
        if !items.is_empty() {
            insert!(out, "thread_items", "thread_id, id, content, answers", "t.*", items, skip, [
                SqlUuid => &items.thread_id, Bytea => &items.id, Text => &items.content,
                Nullable<Bytea> => &items.answers,
            ]);
        }
        if !cuts.is_empty() {
            insert!(out, "thread_cuts", "thread_id, id, behind, messages_from, answers_behind", "t.*", cuts, skip, [
                SqlUuid => &cuts.thread_id, Bytea => &cuts.id, Bytea => &cuts.behind,
                Bytea => &cuts.messages_from, Bytea => &cuts.answers_behind,
            ]);
        }
        if !runs.is_empty() {
            insert!(
                out, "runs",
                "id, workspace_id, workflow_id, version_id, trigger, thread_id, stream_id, inputs, options, \
                 created_at, status, started_at, output, error, finished_at, writer_id",
                "t.*, fence.writer_id", runs, skip,
                [
                    SqlUuid => &runs.id, SqlUuid => &runs.workspace_id, SqlUuid => &runs.workflow_id,
                    SqlUuid => &runs.version_id, Text => &runs.trigger, Nullable<SqlUuid> => &runs.thread_id,
                    Nullable<SqlUuid> => &runs.stream_id, Text => &runs.inputs, Nullable<Text> => &runs.options,
                    Timestamptz => &runs.created_at, Text => &runs.status,
                    Nullable<Timestamptz> => &runs.started_at, Nullable<Text> => &runs.output,
                    Nullable<Text> => &runs.error, Nullable<Timestamptz> => &runs.finished_at,
                ],
                returning returning
            );
        }
        if !streams.is_empty() {
            insert!(
                out, "streams", "id, day, run_id, workflow_id, thread_id, dialect", "t.*", streams, skip,
                [
                    SqlUuid => &streams.id, Date => &streams.day, SqlUuid => &streams.run_id,
                    SqlUuid => &streams.workflow_id, Nullable<SqlUuid> => &streams.thread_id,
                    Text => &streams.dialect,
                ]
            );
        }
        if !steps.is_empty() {
            insert!(
                out, "run_steps",
                "run_id, node, visit, attempt, step, status, input_digest, result, result_blob, error, note, \
                 started_at, finished_at",
                "t.*", steps, self.again.then_some(STEP_AGAIN),
                [
                    SqlUuid => &steps.run_id, Text => &steps.node, Integer => &steps.visit,
                    Integer => &steps.attempt, Integer => &steps.step, Text => &steps.status,
                    Bytea => &steps.input_digest, Nullable<Text> => &steps.result,
                    Nullable<Bytea> => &steps.result_blob, Nullable<Text> => &steps.error,
                    Nullable<Text> => &steps.note, Timestamptz => &steps.started_at,
                    Nullable<Timestamptz> => &steps.finished_at,
                ]
            );
        }
        if !copies.is_empty() {
            out.push_sql(
                ", put_copies AS (INSERT INTO run_steps (run_id, node, visit, attempt, step, status, input_digest, \
                 result, result_blob, error, note, started_at, finished_at) SELECT t.target, s.node, s.visit, \
                 s.attempt, s.step, s.status, s.input_digest, s.result, s.result_blob, s.error, s.note, \
                 s.started_at, s.finished_at FROM fence, ",
            );
            let mut rows = Rows::begin(&mut out, copies.len());
            rows.column::<SqlUuid, _>(&copies.from)?;
            rows.column::<SqlUuid, _>(&copies.to)?;
            rows.column::<Integer, _>(&copies.before)?;
            out.push_sql(
                ") AS t (origin, target, before) JOIN run_steps s ON s.run_id = t.origin AND s.step < t.before \
                 AND s.finished_at IS NOT NULL ON CONFLICT DO NOTHING)",
            );
        }
        if !outbox.is_empty() {
            // A step that was done again by another instance leaves the same.
            let known = Some("DO NOTHING");
            insert!(
                out, "outbox", "id, run_id, request, created_at, next_attempt_at, attempts",
                "t.*, 0", outbox, known,
                [
                    SqlUuid => &outbox.id, SqlUuid => &outbox.run_id, Text => &outbox.request,
                    Timestamptz => &outbox.created_at, Timestamptz => &outbox.created_at,
                ]
            );
        }
        if !blobs.is_empty() {
            // The same value may be there, from any writer; it is young again, or it could be deleted as unreferenced.
            let known =
                Some("(digest) DO UPDATE SET created_at = greatest(blobs.created_at, excluded.created_at)");
            insert!(out, "blobs", "digest, size, created_at", "t.*", blobs, known, [
                Bytea => &blobs.digest, BigInt => &blobs.size, Timestamptz => &blobs.created_at,
            ], returning " RETURNING blobs.digest");
        }
        if !chunks.is_empty() {
            // After the value's row: a transaction that is deleting it has deleted these too by then.
            out.push_sql(", put_chunks AS (INSERT INTO blob_chunks (digest, number, bytes) SELECT t.* FROM ");
            let mut rows = Rows::begin(&mut out, chunks.len());
            rows.column::<Bytea, _>(&chunks.digest)?;
            rows.column::<Integer, _>(&chunks.number)?;
            rows.column::<Bytea, _>(&chunks.bytes)?;
            out.push_sql(
                ") AS t (digest, number, bytes) WHERE t.digest IN (SELECT digest FROM put_blobs) \
                 ON CONFLICT DO NOTHING)",
            );
        }
        if !updates.is_empty() {
            out.push_sql(
                ", put_updates AS (UPDATE runs SET status = t.status, \
                 started_at = coalesce(runs.started_at, t.started_at), output = t.output, error = t.error, \
                 finished_at = t.finished_at, parked = greatest(runs.parked, t.parking) FROM fence, ",
            );
            let mut rows = Rows::begin(&mut out, updates.len());
            rows.column::<SqlUuid, _>(&updates.id)?;
            rows.column::<Text, _>(&updates.status)?;
            rows.column::<Nullable<Timestamptz>, _>(&updates.started_at)?;
            rows.column::<Nullable<Text>, _>(&updates.output)?;
            rows.column::<Nullable<Text>, _>(&updates.error)?;
            rows.column::<Nullable<Timestamptz>, _>(&updates.finished_at)?;
            rows.column::<Integer, _>(&updates.parking)?;
            out.push_sql(
                ") AS t (id, status, started_at, output, error, finished_at, parking) \
                 WHERE runs.id = t.id AND runs.finished_at IS NULL AND runs.writer_id = fence.writer_id \
                 AND (t.parking = 0 OR runs.parked < t.parking)",
            );
            out.push_sql(returning);
            out.push_sql(")");
        }
        if !questions.is_empty() {
            // A later life asks once more what was asked.
            let known = Some("DO NOTHING");
            insert!(
                out, "run_questions",
                "run_id, node, visit, attempt, key, message, schema, audience, asked_at, expires_at", "t.*",
                questions, known,
                [
                    SqlUuid => &questions.run_id, Text => &questions.node, Integer => &questions.visit,
                    Integer => &questions.attempt, Text => &questions.key, Nullable<Text> => &questions.message,
                    Nullable<Text> => &questions.schema, Json => &questions.audience,
                    Timestamptz => &questions.asked_at, Nullable<Timestamptz> => &questions.expires_at,
                ]
            );
        }
        if !queued.is_empty() {
            out.push_sql(
                ", put_queued AS (INSERT INTO run_queue (run_id, workflow_id, turn, due_at) SELECT t.* FROM ",
            );
            let mut rows = Rows::begin(&mut out, queued.len());
            rows.column::<SqlUuid, _>(&queued.run_id)?;
            rows.column::<SqlUuid, _>(&queued.workflow_id)?;
            rows.column::<Bool, _>(&queued.turn)?;
            rows.column::<Nullable<Timestamptz>, _>(&queued.due_at)?;
            out.push_sql(") AS t (run_id, workflow_id, turn, due_at) WHERE false");
            if !runs.is_empty() {
                out.push_sql(" OR t.run_id IN (SELECT id FROM put_runs)");
            }
            if !updates.is_empty() {
                out.push_sql(" OR t.run_id IN (SELECT id FROM put_updates)");
            }
            out.push_sql(")");
        }
        if !left.is_empty() && !updates.is_empty() {
            out.push_sql(", put_left AS (DELETE FROM run_places WHERE run_id = ANY(");
            out.push_bind_param::<Array<SqlUuid>, _>(left)?;
            out.push_sql(") AND run_id IN (SELECT id FROM put_updates))");
        }
        if !events.is_empty() {
            // Straight into the partition, where all events are of one day: finding it for each row costs as much
            // as the row.
            let partition = events.single_day().map(partition_name);
            insert!(
                out, partition.as_deref().unwrap_or("stream_events"),
                "day, stream_id, first_seq, last_seq, frames", "t.*", events, skip,
                [
                    Date => &events.day, SqlUuid => &events.stream_id, BigInt => &events.first_seq,
                    BigInt => &events.last_seq, Text => &events.frames,
                ]
            );
        }
        out.push_sql(" SELECT count(*) FROM fence");
        Ok(())
    }
}
