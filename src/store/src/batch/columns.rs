//! A batch turned from rows into columns, as `unnest` takes them.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::{Batch, INLINE_RESULT, RunUpdate, StepRow, day_of};
use crate::RunStatus;
use crate::blobs::{address, chunks};
use crate::streams::dialect_name;

type Time = DateTime<Utc>;

#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) threads: Threads<'a>,
    pub(super) items: Items<'a>,
    pub(super) cuts: Cuts<'a>,
    pub(super) runs: Runs<'a>,
    pub(super) streams: Streams<'a>,
    pub(super) steps: Steps<'a>,
    pub(super) copies: Copies,
    pub(super) outbox: Outbox<'a>,
    pub(super) blobs: Blobs,
    pub(super) chunks: Chunks<'a>,
    pub(super) updates: Updates<'a>,
    pub(super) questions: Questions<'a>,
    pub(super) queued: Queued,
    pub(super) left: Vec<Uuid>,
    pub(super) events: Events<'a>,
}

#[derive(Default)]
pub(super) struct Threads<'a> {
    pub(super) id: Vec<Uuid>,
    pub(super) workflow_id: Vec<Uuid>,
    pub(super) workspace_id: Vec<Uuid>,
    pub(super) owner_kind: Vec<&'a str>,
    pub(super) owner_id: Vec<Option<&'a str>>,
    pub(super) title: Vec<Option<&'a str>>,
    pub(super) created_at: Vec<Time>,
}

#[derive(Default)]
pub(super) struct Items<'a> {
    pub(super) thread_id: Vec<Uuid>,
    pub(super) id: Vec<&'a [u8]>,
    pub(super) content: Vec<&'a str>,
    pub(super) answers: Vec<Option<&'a [u8]>>,
}

#[derive(Default)]
pub(super) struct Cuts<'a> {
    pub(super) thread_id: Vec<Uuid>,
    pub(super) id: Vec<&'a [u8]>,
    pub(super) behind: Vec<&'a [u8]>,
    pub(super) messages_from: Vec<&'a [u8]>,
    pub(super) answers_behind: Vec<&'a [u8]>,
}

#[derive(Default)]
pub(super) struct Runs<'a> {
    pub(super) id: Vec<Uuid>,
    pub(super) workspace_id: Vec<Uuid>,
    pub(super) workflow_id: Vec<Uuid>,
    pub(super) version_id: Vec<Uuid>,
    pub(super) trigger: Vec<&'a str>,
    pub(super) thread_id: Vec<Option<Uuid>>,
    pub(super) stream_id: Vec<Option<Uuid>>,
    pub(super) inputs: Vec<&'a str>,
    pub(super) options: Vec<Option<&'a str>>,
    pub(super) created_at: Vec<Time>,
    pub(super) status: Vec<&'a str>,
    pub(super) started_at: Vec<Option<Time>>,
    pub(super) output: Vec<Option<&'a str>>,
    pub(super) error: Vec<Option<&'a str>>,
    pub(super) finished_at: Vec<Option<Time>>,
}

#[derive(Default)]
pub(super) struct Streams<'a> {
    pub(super) id: Vec<Uuid>,
    pub(super) day: Vec<NaiveDate>,
    pub(super) run_id: Vec<Uuid>,
    pub(super) workflow_id: Vec<Uuid>,
    pub(super) thread_id: Vec<Option<Uuid>>,
    pub(super) dialect: Vec<&'a str>,
}

#[derive(Default)]
pub(super) struct Steps<'a> {
    pub(super) run_id: Vec<Uuid>,
    pub(super) node: Vec<&'a str>,
    pub(super) visit: Vec<i32>,
    pub(super) attempt: Vec<i32>,
    pub(super) step: Vec<i32>,
    pub(super) status: Vec<&'a str>,
    pub(super) input_digest: Vec<&'a [u8]>,
    pub(super) result: Vec<Option<&'a str>>,
    pub(super) result_blob: Vec<Option<Vec<u8>>>,
    pub(super) error: Vec<Option<&'a str>>,
    pub(super) note: Vec<Option<&'a str>>,
    pub(super) started_at: Vec<Time>,
    pub(super) finished_at: Vec<Option<Time>>,
}

#[derive(Default)]
pub(super) struct Copies {
    pub(super) from: Vec<Uuid>,
    pub(super) to: Vec<Uuid>,
    pub(super) before: Vec<i32>,
}

#[derive(Default)]
pub(super) struct Outbox<'a> {
    pub(super) id: Vec<Uuid>,
    pub(super) run_id: Vec<Uuid>,
    pub(super) request: Vec<&'a str>,
    pub(super) created_at: Vec<Time>,
}

#[derive(Default)]
pub(super) struct Blobs {
    pub(super) digest: Vec<Vec<u8>>,
    pub(super) size: Vec<i64>,
    pub(super) created_at: Vec<Time>,
}

#[derive(Default)]
pub(super) struct Chunks<'a> {
    pub(super) digest: Vec<Vec<u8>>,
    pub(super) number: Vec<i32>,
    pub(super) bytes: Vec<&'a [u8]>,
}

#[derive(Default)]
pub(super) struct Updates<'a> {
    pub(super) id: Vec<Uuid>,
    pub(super) status: Vec<&'a str>,
    pub(super) started_at: Vec<Option<Time>>,
    pub(super) output: Vec<Option<&'a str>>,
    pub(super) error: Vec<Option<&'a str>>,
    pub(super) finished_at: Vec<Option<Time>>,
    pub(super) parking: Vec<i32>,
}

#[derive(Default)]
pub(super) struct Questions<'a> {
    pub(super) run_id: Vec<Uuid>,
    pub(super) node: Vec<&'a str>,
    pub(super) visit: Vec<i32>,
    pub(super) attempt: Vec<i32>,
    pub(super) key: Vec<&'a str>,
    pub(super) message: Vec<Option<&'a str>>,
    pub(super) schema: Vec<Option<&'a str>>,
    pub(super) audience: Vec<&'a serde_json::Value>,
    pub(super) asked_at: Vec<Time>,
    pub(super) expires_at: Vec<Option<Time>>,
}

#[derive(Default)]
pub(super) struct Queued {
    pub(super) run_id: Vec<Uuid>,
    pub(super) workflow_id: Vec<Uuid>,
    pub(super) turn: Vec<bool>,
    pub(super) due_at: Vec<Option<Time>>,
}

#[derive(Default)]
pub(super) struct Events<'a> {
    pub(super) day: Vec<NaiveDate>,
    pub(super) stream_id: Vec<Uuid>,
    pub(super) first_seq: Vec<i64>,
    pub(super) last_seq: Vec<i64>,
    pub(super) frames: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    /// The rows of all batches, in their order.
    pub(super) fn of(batches: &[&'a Batch]) -> Self {
        let mut columns = Self::default();
        let updates = latest(batches);
        for row in batches.iter().flat_map(|batch| &batch.threads) {
            let to = &mut columns.threads;
            to.id.push(row.id.0);
            to.workflow_id.push(row.workflow_id);
            to.workspace_id.push(row.workspace_id);
            to.owner_kind.push(row.owner_kind);
            to.owner_id.push(row.owner_id.as_deref());
            to.title.push(row.title.as_deref());
            to.created_at.push(row.created_at);
        }
        for row in batches.iter().flat_map(|batch| &batch.items) {
            let to = &mut columns.items;
            to.thread_id.push(row.thread_id.0);
            to.id.push(&row.id.0);
            to.content.push(&row.content);
            to.answers.push(row.answers.as_ref().map(|key| &key.0[..]));
        }
        for row in batches.iter().flat_map(|batch| &batch.cuts) {
            let to = &mut columns.cuts;
            to.thread_id.push(row.thread_id.0);
            to.id.push(&row.id.0);
            to.behind.push(&row.behind.0);
            to.messages_from.push(&row.messages_from.0);
            to.answers_behind.push(&row.answers_behind.0);
        }
        for row in batches.iter().flat_map(|batch| &batch.runs) {
            let to = &mut columns.runs;
            to.id.push(row.id);
            to.workspace_id.push(row.workspace_id);
            to.workflow_id.push(row.workflow_id);
            to.version_id.push(row.version_id);
            to.trigger.push(row.trigger);
            to.thread_id.push(row.thread_id.map(|id| id.0));
            to.stream_id.push(row.stream_id);
            to.inputs.push(&row.inputs);
            to.options.push(row.options.as_deref());
            to.created_at.push(row.created_at);
            // A statement does not see the rows it inserts: what became of a run in the batch that makes it goes
            // into its row at once. The update stays as well, for a run that is already there.
            let now = updates.iter().find(|(update, _)| update.id == row.id);
            to.status.push(now.map_or(RunStatus::Queued, |(update, _)| update.status).as_str());
            to.started_at.push(now.and_then(|(_, started_at)| *started_at));
            to.output.push(now.and_then(|(update, _)| update.output.as_deref()));
            to.error.push(now.and_then(|(update, _)| update.error.as_deref()));
            to.finished_at.push(now.and_then(|(update, _)| update.finished_at));
        }
        for row in batches.iter().flat_map(|batch| &batch.streams) {
            let to = &mut columns.streams;
            to.id.push(row.id);
            to.day.push(day_of(row.id));
            to.run_id.push(row.run_id);
            to.workflow_id.push(row.workflow_id);
            to.thread_id.push(row.thread_id.map(|id| id.0));
            to.dialect.push(dialect_name(row.dialect));
        }
        // One statement cannot touch a row twice: of an attempt's rows the last counts, and none behind its outcome.
        let mut steps: Vec<&StepRow> = Vec::new();
        for row in batches.iter().flat_map(|batch| &batch.steps) {
            let same = |old: &StepRow| {
                old.run_id == row.run_id
                    && old.visit == row.visit
                    && old.attempt == row.attempt
                    && old.node == row.node
            };
            match steps.iter_mut().rev().find(|old| same(old)) {
                Some(old) if old.finished_at.is_some() => {}
                Some(old) => *old = row,
                None => steps.push(row),
            }
        }
        for row in batches.iter().flat_map(|batch| &batch.copies) {
            let to = &mut columns.copies;
            to.from.push(row.from);
            to.to.push(row.to);
            to.before.push(row.before);
        }
        for row in batches.iter().flat_map(|batch| &batch.outbox) {
            let to = &mut columns.outbox;
            to.id.push(row.id);
            to.run_id.push(row.run_id);
            to.request.push(&row.request);
            to.created_at.push(row.created_at);
        }
        // By digest: two lanes that store the same values wait for each other in one order.
        let mut large: BTreeMap<[u8; 32], (&str, Time)> = BTreeMap::new();
        for row in steps {
            let to = &mut columns.steps;
            let blob = row.result.as_deref().filter(|result| result.len() > INLINE_RESULT);
            let digest = blob.map(|result| {
                let digest = address(result.as_bytes());
                large.insert(digest, (result, row.finished_at.unwrap_or(row.started_at)));
                digest
            });
            to.run_id.push(row.run_id);
            to.node.push(&row.node);
            to.visit.push(row.visit);
            to.attempt.push(row.attempt);
            to.step.push(row.step);
            to.status.push(row.status);
            to.input_digest.push(&row.input_digest);
            to.result.push(if blob.is_some() { None } else { row.result.as_deref() });
            to.result_blob.push(digest.map(|digest| digest.to_vec()));
            to.error.push(row.error.as_deref());
            to.note.push(row.note.as_deref());
            to.started_at.push(row.started_at);
            to.finished_at.push(row.finished_at);
        }
        for (digest, (value, created_at)) in large {
            columns.blobs.digest.push(digest.to_vec());
            columns.blobs.size.push(i64::try_from(value.len()).unwrap_or(i64::MAX));
            columns.blobs.created_at.push(created_at);
            for (number, bytes) in chunks(value.as_bytes()) {
                columns.chunks.digest.push(digest.to_vec());
                columns.chunks.number.push(number);
                columns.chunks.bytes.push(bytes);
            }
        }
        for (row, started_at) in updates {
            let to = &mut columns.updates;
            to.id.push(row.id);
            to.status.push(row.status.as_str());
            to.started_at.push(started_at);
            to.output.push(row.output.as_deref());
            to.error.push(row.error.as_deref());
            to.finished_at.push(row.finished_at);
            to.parking.push(row.parking);
        }
        for row in batches.iter().flat_map(|batch| &batch.questions) {
            let to = &mut columns.questions;
            to.run_id.push(row.run_id);
            to.node.push(&row.node);
            to.visit.push(row.visit);
            to.attempt.push(row.attempt);
            to.key.push(&row.key);
            to.message.push(row.message.as_deref());
            to.schema.push(row.schema.as_deref());
            to.audience.push(&row.audience);
            to.asked_at.push(row.asked_at);
            to.expires_at.push(row.expires_at);
        }
        for row in batches.iter().flat_map(|batch| &batch.queued) {
            let to = &mut columns.queued;
            to.run_id.push(row.run_id);
            to.workflow_id.push(row.workflow_id);
            to.turn.push(row.turn);
            to.due_at.push(row.due_at);
        }
        columns.left.extend(batches.iter().flat_map(|batch| &batch.left));
        for row in batches.iter().flat_map(|batch| &batch.events) {
            let to = &mut columns.events;
            to.day.push(day_of(row.stream_id));
            to.stream_id.push(row.stream_id);
            to.first_seq.push(i64::try_from(row.first_seq).unwrap_or(i64::MAX));
            to.last_seq.push(i64::try_from(row.last_seq).unwrap_or(i64::MAX));
            to.frames.push(&row.frames);
        }
        columns
    }
}

/// How each run stands at the end of the batches, and when it first began: its last state, and none behind its end.
fn latest<'a>(batches: &[&'a Batch]) -> Vec<(&'a RunUpdate, Option<Time>)> {
    let mut updates: Vec<(&RunUpdate, Option<Time>)> = Vec::new();
    for row in batches.iter().flat_map(|batch| &batch.updates) {
        match updates.iter_mut().rev().find(|(old, _)| old.id == row.id) {
            Some((old, _)) if old.finished_at.is_some() => {}
            Some((old, started_at)) => (*old, *started_at) = (row, started_at.or(row.started_at)),
            None => updates.push((row, row.started_at)),
        }
    }
    updates
}

/// How many rows a table has.
macro_rules! rows {
    ($($table:ty: $key:ident),+) => {$(
        impl $table {
            pub(super) fn len(&self) -> usize {
                self.$key.len()
            }

            pub(super) fn is_empty(&self) -> bool {
                self.$key.is_empty()
            }
        }
    )+};
}

rows!(
    Threads<'_>: id,
    Items<'_>: id,
    Cuts<'_>: id,
    Runs<'_>: id,
    Streams<'_>: id,
    Steps<'_>: run_id,
    Copies: to,
    Outbox<'_>: id,
    Blobs: digest,
    Chunks<'_>: digest,
    Updates<'_>: id,
    Questions<'_>: run_id,
    Queued: run_id,
    Events<'_>: stream_id
);

impl Events<'_> {
    /// The day of all events, if it is one.
    pub(super) fn single_day(&self) -> Option<NaiveDate> {
        let first = *self.day.first()?;
        self.day.iter().all(|day| *day == first).then_some(first)
    }
}
