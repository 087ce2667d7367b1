//! The statement of a commit. diesel caches it by its text, and the text depends only on which tables have rows.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{
    Array, BigInt, Bytea, Date, HasSqlType, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use uuid::Uuid;

use super::columns::Columns;

/// The statement; yields 1, or 0 when the writer's lease has gone to somebody else.
pub(super) struct Commit<'a> {
    pub(super) writer_id: Uuid,
    pub(super) epoch: i64,
    pub(super) columns: Columns<'a>,
}

impl QueryId for Commit<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Commit<'_> {
    type SqlType = BigInt;
}

/// The values of one column.
fn column<'b, ST, T>(out: &mut AstPass<'_, 'b, Pg>, first: bool, values: &'b Vec<T>) -> QueryResult<()>
where
    Pg: HasSqlType<ST>,
    Vec<T>: ToSql<Array<ST>, Pg>,
    ST: 'static,
    Array<ST>: QueryId,
{
    if !first {
        out.push_sql(",");
    }
    out.push_bind_param::<Array<ST>, Vec<T>>(values)
}

/// `name AS (INSERT INTO table (columns) SELECT t.* FROM unnest(…) AS t, fence ON CONFLICT …)`.
macro_rules! insert {
    ($out:ident, $table:literal, $columns:literal, $conflict:literal, [$($kind:ty => $values:expr),+ $(,)?]) => {{
        $out.push_sql(concat!(
            ", put_", $table, " AS (INSERT INTO ", $table, " (", $columns, ") SELECT t.* FROM fence, unnest("
        ));
        let mut first = true;
        $(
            column::<$kind, _>(&mut $out, first, $values)?;
            #[allow(unused_assignments, reason = "the last column has none behind it")]
            { first = false; }
        )+
        $out.push_sql(concat!(") AS t ON CONFLICT ", $conflict, ")"));
    }};
}

impl QueryFragment<Pg> for Commit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let Columns { threads, items, runs, streams, steps, updates, events } = &self.columns;
        out.push_sql("WITH fence AS MATERIALIZED (SELECT writer_id FROM leases WHERE writer_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.writer_id)?;
        out.push_sql(" AND epoch = ");
        out.push_bind_param::<BigInt, _>(&self.epoch)?;
        out.push_sql(" FOR SHARE)");
        if !threads.id.is_empty() {
            out.push_sql(
                ", put_threads AS (INSERT INTO threads \
                 (id, workflow_id, workspace_id, owner_kind, owner_id, created_at, status) \
                 SELECT t.*, 'active' FROM fence, unnest(",
            );
            column::<SqlUuid, _>(&mut out, true, &threads.id)?;
            column::<SqlUuid, _>(&mut out, false, &threads.workflow_id)?;
            column::<SqlUuid, _>(&mut out, false, &threads.workspace_id)?;
            column::<Text, _>(&mut out, false, &threads.owner_kind)?;
            column::<Nullable<Text>, _>(&mut out, false, &threads.owner_id)?;
            column::<Timestamptz, _>(&mut out, false, &threads.created_at)?;
            out.push_sql(") AS t ON CONFLICT DO NOTHING)");
        }
        if !items.id.is_empty() {
            insert!(out, "thread_items", "thread_id, id, content", "DO NOTHING", [
                SqlUuid => &items.thread_id, Bytea => &items.id, Text => &items.content,
            ]);
        }
        if !runs.id.is_empty() {
            out.push_sql(
                ", put_runs AS (INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, thread_id, \
                 stream_id, inputs, created_at, status, started_at, output, error, finished_at, writer_id) \
                 SELECT t.*, fence.writer_id FROM fence, unnest(",
            );
            column::<SqlUuid, _>(&mut out, true, &runs.id)?;
            column::<SqlUuid, _>(&mut out, false, &runs.workspace_id)?;
            column::<SqlUuid, _>(&mut out, false, &runs.workflow_id)?;
            column::<SqlUuid, _>(&mut out, false, &runs.version_id)?;
            column::<Text, _>(&mut out, false, &runs.trigger)?;
            column::<Nullable<SqlUuid>, _>(&mut out, false, &runs.thread_id)?;
            column::<Nullable<SqlUuid>, _>(&mut out, false, &runs.stream_id)?;
            column::<Text, _>(&mut out, false, &runs.inputs)?;
            column::<Timestamptz, _>(&mut out, false, &runs.created_at)?;
            column::<Text, _>(&mut out, false, &runs.status)?;
            column::<Nullable<Timestamptz>, _>(&mut out, false, &runs.started_at)?;
            column::<Nullable<Text>, _>(&mut out, false, &runs.output)?;
            column::<Nullable<Text>, _>(&mut out, false, &runs.error)?;
            column::<Nullable<Timestamptz>, _>(&mut out, false, &runs.finished_at)?;
            out.push_sql(") AS t ON CONFLICT DO NOTHING)");
        }
        if !streams.id.is_empty() {
            insert!(out, "streams", "id, day, run_id, workflow_id, thread_id, dialect", "DO NOTHING", [
                SqlUuid => &streams.id, Date => &streams.day, SqlUuid => &streams.run_id,
                SqlUuid => &streams.workflow_id, Nullable<SqlUuid> => &streams.thread_id,
                Text => &streams.dialect,
            ]);
        }
        if !steps.run_id.is_empty() {
            insert!(
                out, "run_steps",
                "run_id, node, visit, attempt, step, status, input_digest, result, error, started_at, finished_at",
                "(run_id, node, visit, attempt) DO UPDATE SET status = excluded.status, \
                 result = excluded.result, error = excluded.error, finished_at = excluded.finished_at \
                 WHERE run_steps.finished_at IS NULL",
                [
                    SqlUuid => &steps.run_id, Text => &steps.node, Integer => &steps.visit,
                    Integer => &steps.attempt, Integer => &steps.step, Text => &steps.status,
                    Bytea => &steps.input_digest, Nullable<Text> => &steps.result,
                    Nullable<Text> => &steps.error, Timestamptz => &steps.started_at,
                    Nullable<Timestamptz> => &steps.finished_at,
                ]
            );
        }
        if !updates.id.is_empty() {
            out.push_sql(
                ", put_updates AS (UPDATE runs SET status = t.status, \
                 started_at = coalesce(runs.started_at, t.started_at), output = t.output, error = t.error, \
                 finished_at = t.finished_at FROM fence, unnest(",
            );
            column::<SqlUuid, _>(&mut out, true, &updates.id)?;
            column::<Text, _>(&mut out, false, &updates.status)?;
            column::<Nullable<Timestamptz>, _>(&mut out, false, &updates.started_at)?;
            column::<Nullable<Text>, _>(&mut out, false, &updates.output)?;
            column::<Nullable<Text>, _>(&mut out, false, &updates.error)?;
            column::<Nullable<Timestamptz>, _>(&mut out, false, &updates.finished_at)?;
            out.push_sql(
                ") AS t (id, status, started_at, output, error, finished_at) \
                 WHERE runs.id = t.id AND runs.finished_at IS NULL AND runs.id = ANY(",
            );
            column::<SqlUuid, _>(&mut out, true, &updates.id)?;
            out.push_sql("))");
        }
        if !events.stream_id.is_empty() {
            insert!(out, "stream_events", "day, stream_id, first_seq, last_seq, frames", "DO NOTHING", [
                Date => &events.day, SqlUuid => &events.stream_id, BigInt => &events.first_seq,
                BigInt => &events.last_seq, Text => &events.frames,
            ]);
        }
        out.push_sql(" SELECT count(*) FROM fence");
        Ok(())
    }
}
