//! The commit statement. diesel caches it by its text, which depends only on the tables that have rows, on
//! whether those are single rows, and on the events' day.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use super::columns::BatchColumns;
use super::tables::{
    ChatUsage, Chunks, ClosedQuestions, Copies, Items, Queued, RemovedItems, ReplacedItems, ThreadChanges,
    TrainingStates, Updates,
};
use crate::system::partitions::partition_name;

/// An outcome replaces its attempt's start; an outcome is final.
const STEP_AGAIN: &str = "(run_id, node, visit, attempt) DO UPDATE SET status = excluded.status, \
     result = excluded.result, result_blob = excluded.result_blob, error = excluded.error, note = coalesce(excluded.note, run_steps.note), \
     finished_at = excluded.finished_at WHERE run_steps.finished_at IS NULL";

/// The value may already exist, from any writer. Its age is reset, or it could be deleted as unreferenced.
const BLOB_AGAIN: &str =
    "(digest) DO UPDATE SET created_at = greatest(blobs.created_at, excluded.created_at)";

/// The statement; returns 1, or 0 when another writer has acquired the lease.
pub(super) struct Commit<'a> {
    pub(super) writer_id: Uuid,
    pub(super) epoch: i64,
    pub(super) columns: BatchColumns<'a>,
    /// Whether rows may already exist. A conflict clause on every row would cost a tenth of the commit.
    pub(super) again: bool,
}

impl QueryId for Commit<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Commit<'_> {
    type SqlType = BigInt;
}

impl QueryFragment<Pg> for Commit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { threads, cuts, runs, streams, steps, outbox, questions, events, .. } =
            &self.columns;
        let BatchColumns { blobs, queued, left, .. } = &self.columns;
        let out = &mut out;
        out.push_sql("WITH fence AS MATERIALIZED (SELECT writer_id FROM leases WHERE writer_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.writer_id)?;
        out.push_sql(" AND epoch = ");
        out.push_bind_param::<BigInt, _>(&self.epoch)?;
        out.push_sql(" FOR SHARE)");
        let skip = self.again.then_some("DO NOTHING");
        // The queue and slot changes depend on the updated runs.
        let usage = &self.columns.chat_usage;
        let follows = !queued.is_empty() || !left.is_empty() || !usage.is_empty();
        let returning = if follows { " RETURNING runs.id" } else { "" };
        let steps_returning = if usage.is_empty() { "" } else { " RETURNING run_id, node, visit, attempt" };
        threads.insert(out, None, skip, "")?;
        self.known(out)?;
        self.added_items(out)?;
        self.changed_threads(out)?;
        self.changed_items(out)?;
        cuts.insert(out, None, skip, "")?;
        runs.insert(out, None, skip, returning)?;
        streams.insert(out, None, skip, "")?;
        self.columns.app_runs.insert(out, None, skip, "")?;
        steps.insert(out, None, self.again.then_some(STEP_AGAIN), steps_returning)?;
        self.copies(out)?;
        // A step that another instance has re-executed produces the same row.
        outbox.insert(out, None, Some("DO NOTHING"), "")?;
        blobs.insert(out, None, Some(BLOB_AGAIN), " RETURNING blobs.digest")?;
        self.chunks(out)?;
        self.updates(out, returning)?;
        // A resumed run asks the same question again.
        questions.insert(out, None, Some("DO NOTHING"), "")?;
        // If the batch is sent again, both may already belong to another run.
        self.columns.question_items.insert(out, None, skip, "")?;
        self.columns.turns_sent.insert(out, None, skip, "")?;
        self.closed_questions(out)?;
        self.queued(out)?;
        self.chat_usage(out)?;
        self.freed_slots(out)?;
        self.contained_attachments(out)?;
        self.trainings(out, skip)?;
        // Inserts into the partition itself if all events are from one day: routing costs as much per row as
        // the row.
        let partition = events.single_day().map(partition_name);
        events.insert(out, partition.as_deref(), skip, "")?;
        out.push_sql(" SELECT count(*) FROM fence");
        Ok(())
    }
}

/// The parts that are not plain inserts.
impl Commit<'_> {
    /// Whether other turns may have changed rows that an earlier submission stored: more turns can follow a
    /// turn that has ended or waits.
    fn may_be_followed(&self) -> bool {
        let BatchColumns { thread_changes, items, replaced_items, removed_items, .. } = &self.columns;
        let changes = [
            thread_changes.is_empty(),
            items.is_empty(),
            replaced_items.is_empty(),
            removed_items.is_empty(),
        ];
        self.again && !self.columns.updates.is_empty() && changes.contains(&false)
    }

    /// Selects the runs whose end or wait an earlier submission has stored.
    fn known<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if self.may_be_followed() {
            out.push_sql(", known AS MATERIALIZED (SELECT r.id FROM runs r, ");
            self.columns.updates.values(out)?;
            names(out, Updates::NAMES);
            out.push_sql(
                " WHERE r.id = t.id AND (t.finished_at IS NOT NULL AND r.finished_at IS NOT NULL \
                 OR t.parking > 0 AND r.parked >= t.parking))",
            );
        }
        Ok(())
    }

    fn unless_known(&self, out: &mut AstPass<'_, '_, Pg>, joint: &str) {
        if self.may_be_followed() {
            out.push_sql(joint);
            out.push_sql(" NOT EXISTS (SELECT FROM known WHERE known.id = t.run_id)");
        }
    }

    fn added_items<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let items = &self.columns.items;
        if !self.may_be_followed() || items.is_empty() {
            return items.insert(out, None, self.again.then_some("DO NOTHING"), "");
        }
        out.push_sql(", put_Items AS (INSERT INTO thread_items (");
        out.push_sql(Items::NAMES);
        out.push_sql(") SELECT t.* FROM fence, ");
        items.values(out)?;
        names(out, Items::NAMES);
        self.unless_known(out, " WHERE");
        out.push_sql(" ON CONFLICT DO NOTHING)");
        Ok(())
    }

    fn changed_threads<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let changes = &self.columns.thread_changes;
        if changes.is_empty() {
            return Ok(());
        }
        out.push_sql(
            ", put_thread_changes AS (UPDATE threads h SET title = coalesce(t.title, h.title), \
             status = coalesce(t.status, h.status), \
             status_reason = CASE WHEN t.status IS NULL THEN h.status_reason ELSE t.reason END, \
             image_domains = nullif(coalesce(t.image_domains, h.image_domains), 'null') FROM fence, ",
        );
        changes.values(out)?;
        names(out, ThreadChanges::NAMES);
        out.push_sql(" WHERE h.id = t.id AND h.deleted_at IS NULL");
        self.unless_known(out, " AND");
        out.push_sql(")");
        Ok(())
    }

    fn changed_items<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { replaced_items, removed_items, .. } = &self.columns;
        if !replaced_items.is_empty() {
            // Keeps the content that a run found until the run ends, except for the run's own items.
            out.push_sql(
                ", put_replaced AS (UPDATE thread_items i SET content = coalesce(t.content, i.content), \
                 changed_by = CASE WHEN t.content IS NULL THEN i.changed_by ELSE t.run_id END, before = CASE \
                 WHEN t.content IS NULL AND i.changed_by IS DISTINCT FROM t.run_id THEN i.before \
                 WHEN t.is_final OR i.run_id = t.run_id THEN NULL \
                 WHEN i.changed_by = t.run_id THEN i.before ELSE i.content END FROM fence, ",
            );
            replaced_items.values(out)?;
            names(out, ReplacedItems::NAMES);
            out.push_sql(" WHERE i.thread_id = t.thread_id AND i.id = t.id");
            self.unless_known(out, " AND");
            out.push_sql(")");
        }
        if !removed_items.is_empty() {
            out.push_sql(", put_removed AS (DELETE FROM thread_items i USING fence, ");
            removed_items.values(out)?;
            names(out, RemovedItems::NAMES);
            out.push_sql(" WHERE i.thread_id = t.thread_id AND i.id = t.id");
            self.unless_known(out, " AND");
            out.push_sql(")");
        }
        Ok(())
    }

    fn copies<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let copies = &self.columns.copies;
        if copies.is_empty() {
            return Ok(());
        }
        out.push_sql(
            ", put_copies AS (INSERT INTO run_steps (run_id, node, visit, attempt, step, status, input_digest, \
             result, result_blob, error, note, started_at, finished_at) SELECT t.target, s.node, s.visit, \
             s.attempt, s.step, s.status, s.input_digest, s.result, s.result_blob, s.error, s.note, \
             s.started_at, s.finished_at FROM fence, ",
        );
        copies.values(out)?;
        names(out, Copies::NAMES);
        out.push_sql(
            " JOIN run_steps s ON s.run_id = t.origin AND s.step < t.before AND s.finished_at IS NOT NULL \
             ON CONFLICT DO NOTHING)",
        );
        Ok(())
    }

    /// Runs after the blob row: a concurrent transaction that deletes the value has also deleted its chunks by
    /// then.
    fn chunks<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let chunks = &self.columns.chunks;
        if chunks.is_empty() {
            return Ok(());
        }
        out.push_sql(", put_chunks AS (INSERT INTO blob_chunks (digest, number, bytes) SELECT t.* FROM ");
        chunks.values(out)?;
        names(out, Chunks::NAMES);
        out.push_sql(" WHERE t.digest IN (SELECT digest FROM put_blobs) ON CONFLICT DO NOTHING)");
        Ok(())
    }

    fn updates<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>, returning: &str) -> QueryResult<()> {
        let updates = &self.columns.updates;
        if updates.is_empty() {
            return Ok(());
        }
        out.push_sql(
            ", put_updates AS (UPDATE runs SET status = t.status, \
             started_at = coalesce(runs.started_at, t.started_at), output = t.output, error = t.error, \
             finished_at = t.finished_at, parked = greatest(runs.parked, t.parking) FROM fence, ",
        );
        updates.values(out)?;
        names(out, Updates::NAMES);
        out.push_sql(
            " WHERE runs.id = t.id AND runs.finished_at IS NULL AND runs.writer_id = fence.writer_id \
             AND (t.parking = 0 OR runs.parked < t.parking)",
        );
        out.push_sql(returning);
        out.push_sql(")");
        Ok(())
    }

    /// Counts usage with the first row for its step, or with the end of its run: a resend does not count again.
    fn chat_usage<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { chat_usage, steps, runs, updates, .. } = &self.columns;
        if chat_usage.is_empty() {
            return Ok(());
        }
        out.push_sql(
            ", put_chat_usage AS (INSERT INTO chat_usage (day, workflow_id, session, writer_id, turns, calls, input_tokens, \
             output_tokens, usd) SELECT t.day, t.workflow_id, t.session, fence.writer_id, sum(t.turns), sum(t.calls), \
             sum(t.input_tokens), sum(t.output_tokens), sum(t.usd) FROM fence, ",
        );
        chat_usage.values(out)?;
        names(out, ChatUsage::NAMES);
        out.push_sql(" WHERE false");
        if !steps.is_empty() {
            out.push_sql(
                " OR (t.run_id, t.node, t.visit, t.attempt) IN (SELECT run_id, node, visit, attempt FROM put_Steps)",
            );
        }
        for (table, is_empty) in [("put_Runs", runs.is_empty()), ("put_updates", updates.is_empty())] {
            if !is_empty {
                out.push_sql(" OR t.node IS NULL AND t.run_id IN (SELECT id FROM ");
                out.push_sql(table);
                out.push_sql(")");
            }
        }
        // All lanes lock rows in the same order.
        out.push_sql(
            " GROUP BY 1, 2, 3, 4 ORDER BY 2, 1, 3 ON CONFLICT (workflow_id, day, session, writer_id) DO UPDATE SET \
             turns = chat_usage.turns + excluded.turns, calls = chat_usage.calls + excluded.calls, \
             input_tokens = chat_usage.input_tokens + excluded.input_tokens, \
             output_tokens = chat_usage.output_tokens + excluded.output_tokens, usd = chat_usage.usd + excluded.usd)",
        );
        Ok(())
    }

    fn closed_questions<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let closed = &self.columns.closed_questions;
        if closed.is_empty() {
            return Ok(());
        }
        out.push_sql(", put_closed AS (UPDATE run_questions q SET expires_at = t.at, continues_without = false FROM fence, ");
        closed.values(out)?;
        names(out, ClosedQuestions::NAMES);
        out.push_sql(
            " WHERE q.run_id = t.run_id AND q.item IS NOT NULL AND q.answered_at IS NULL AND (t.node IS NULL \
             OR (q.node, q.visit, q.attempt) = (t.node, t.visit, t.attempt)))",
        );
        Ok(())
    }

    fn freed_slots<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { left, updates, .. } = &self.columns;
        if !left.is_empty() && !updates.is_empty() {
            out.push_sql(", put_left AS (DELETE FROM run_places WHERE run_id = ANY(");
            out.push_bind_param::<Array<SqlUuid>, _>(left)?;
            out.push_sql(") AND run_id IN (SELECT id FROM put_updates))");
        }
        Ok(())
    }

    /// A released or invalid claim still counts, unless another thread has claimed the attachment.
    fn contained_attachments<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { contained, contained_in, .. } = &self.columns;
        if !contained.is_empty() {
            out.push_sql(
                ", put_contained AS (UPDATE attachments a SET contained = true, thread_id = coalesce(a.thread_id, c.thread)
                     FROM fence, unnest(",
            );
            out.push_bind_param::<Array<SqlUuid>, _>(contained)?;
            out.push_sql(", ");
            out.push_bind_param::<Array<SqlUuid>, _>(contained_in)?;
            out.push_sql(") c (attachment, thread) WHERE a.id = c.attachment)");
        }
        Ok(())
    }

    /// Skips the rows that a resumed run stored before.
    fn trainings<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>, skip: Option<&'static str>) -> QueryResult<()> {
        let again = Some("DO NOTHING");
        let BatchColumns { trainings, training_calls, training_cases, training_candidates, .. } =
            &self.columns;
        let BatchColumns { training_marks, training_states, kept_events, .. } = &self.columns;
        trainings.insert(out, None, again, "")?;
        training_calls.insert(out, None, skip, "")?;
        training_cases.insert(out, None, again, "")?;
        training_candidates.insert(out, None, again, "")?;
        training_marks.insert(out, None, again, "")?;
        kept_events.insert(out, None, skip, "")?;
        if !training_states.is_empty() {
            out.push_sql(
                ", put_training_states AS (UPDATE training_runs r SET state = coalesce(t.state, r.state), \
                 in_flight = coalesce(t.in_flight, r.in_flight) FROM fence, ",
            );
            training_states.values(out)?;
            names(out, TrainingStates::NAMES);
            out.push_sql(" WHERE r.run_id = t.run_id)");
        }
        Ok(())
    }

    fn queued<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let BatchColumns { queued, runs, updates, .. } = &self.columns;
        if queued.is_empty() {
            return Ok(());
        }
        out.push_sql(
            ", put_queued AS (INSERT INTO run_queue (run_id, workflow_id, turn, due_at) SELECT t.* FROM ",
        );
        queued.values(out)?;
        names(out, Queued::NAMES);
        out.push_sql(" WHERE false");
        if !runs.is_empty() {
            out.push_sql(" OR t.run_id IN (SELECT id FROM put_runs)");
        }
        if !updates.is_empty() {
            out.push_sql(" OR t.run_id IN (SELECT id FROM put_updates)");
        }
        out.push_sql(")");
        Ok(())
    }
}

/// ` AS t (columns)`.
fn names(out: &mut AstPass<'_, '_, Pg>, names: &str) {
    out.push_sql(" AS t (");
    out.push_sql(names);
    out.push_sql(")");
}
