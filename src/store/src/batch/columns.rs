//! Converts a commit's batches from rows to columns.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::Batch;
use super::tables::{
    AppRuns, Blobs, ChatUsage, Chunks, ClosedQuestions, Copies, Cuts, Events, INLINE_RESULT, Items,
    KeptEvents, Latest, LatestState, Outbox, QuestionItems, Questions, Queued, RemovedItemRow, RemovedItems,
    ReplacedItemRow, ReplacedItems, Runs, StepRow, Steps, Streams, ThreadChangeRow, ThreadChanges, Threads,
    TrainingCalls, TrainingCandidates, TrainingCases, TrainingMarks, TrainingRuns, TrainingStates, TurnsSent,
    Updates,
};
use crate::blobs::records::{address, chunks};

#[derive(Default)]
pub(super) struct BatchColumns<'a> {
    pub(super) threads: Threads<'a>,
    pub(super) thread_changes: ThreadChanges<'a>,
    pub(super) items: Items<'a>,
    pub(super) replaced_items: ReplacedItems<'a>,
    pub(super) removed_items: RemovedItems<'a>,
    pub(super) cuts: Cuts<'a>,
    pub(super) runs: Runs<'a>,
    pub(super) streams: Streams<'a>,
    pub(super) steps: Steps<'a>,
    pub(super) copies: Copies<'a>,
    pub(super) outbox: Outbox<'a>,
    pub(super) blobs: Blobs<'a>,
    pub(super) chunks: Chunks<'a>,
    pub(super) updates: Updates<'a>,
    pub(super) questions: Questions<'a>,
    pub(super) question_items: QuestionItems<'a>,
    pub(super) turns_sent: TurnsSent<'a>,
    pub(super) closed_questions: ClosedQuestions<'a>,
    pub(super) queued: Queued<'a>,
    pub(super) chat_usage: ChatUsage<'a>,
    pub(super) left: Vec<Uuid>,
    pub(super) contained: Vec<Uuid>,
    /// The thread for each entry in `contained`.
    pub(super) contained_in: Vec<Uuid>,
    pub(super) app_runs: AppRuns<'a>,
    pub(super) trainings: TrainingRuns<'a>,
    pub(super) training_calls: TrainingCalls<'a>,
    pub(super) training_cases: TrainingCases<'a>,
    pub(super) training_candidates: TrainingCandidates<'a>,
    pub(super) training_marks: TrainingMarks<'a>,
    pub(super) training_states: TrainingStates<'a>,
    pub(super) events: Events<'a>,
    pub(super) kept_events: KeptEvents<'a>,
}

impl<'a> BatchColumns<'a> {
    /// The rows from all batches, in order.
    pub(super) fn from_batches(batches: &[&'a Batch]) -> Self {
        let mut columns = Self::default();
        for batch in batches {
            batch.threads.iter().for_each(|row| columns.threads.push(row));
            batch.app_runs.iter().for_each(|row| columns.app_runs.push(row));
            batch.cuts.iter().for_each(|row| columns.cuts.push(row));
            batch.streams.iter().for_each(|row| columns.streams.push(row));
            batch.copies.iter().for_each(|row| columns.copies.push(row));
            batch.outbox.iter().for_each(|row| columns.outbox.push(row));
            batch.questions.iter().for_each(|row| columns.questions.push(row));
            batch.question_items.iter().for_each(|row| columns.question_items.push(row));
            batch.closed_questions.iter().for_each(|row| columns.closed_questions.push(row));
            batch.turns_sent.iter().for_each(|row| columns.turns_sent.push(row));
            batch.queued.iter().for_each(|row| columns.queued.push(row));
            for row in &batch.events {
                match row.kept {
                    true => columns.kept_events.push(row),
                    false => columns.events.push(row),
                }
            }
            batch.chat_usage.iter().for_each(|row| columns.chat_usage.push(row));
            columns.left.extend(&batch.left);
            columns.contained.extend(batch.contained.iter().map(|row| row.attachment));
            columns.contained_in.extend(batch.contained.iter().map(|row| row.thread_id.0));
        }
        columns.trainings(batches);
        thread_changes(batches).into_iter().for_each(|row| columns.thread_changes.push(row));
        let updates = latest(batches);
        for row in batches.iter().flat_map(|batch| &batch.runs) {
            columns.runs.push((row, updates.iter().find(|(update, _)| update.id == row.id).copied()));
        }
        updates.into_iter().for_each(|update| columns.updates.push(update));
        columns.thread_items(batches);
        columns.journal(batches);
        columns
    }

    /// Adds the training rows, with only the last state per run.
    fn trainings(&mut self, batches: &[&'a Batch]) {
        let mut states: Vec<LatestState<'a>> = Vec::new();
        for batch in batches {
            batch.trainings.iter().for_each(|row| self.trainings.push(row));
            batch.training_calls.iter().for_each(|row| self.training_calls.push(row));
            batch.training_cases.iter().for_each(|row| self.training_cases.push(row));
            batch.training_candidates.iter().for_each(|row| self.training_candidates.push(row));
            batch.training_marks.iter().for_each(|row| self.training_marks.push(row));
            for row in &batch.training_states {
                let (state, in_flight) = (row.state.as_deref(), row.in_flight);
                match states.iter_mut().find(|(run, ..)| *run == row.run_id) {
                    Some((_, old_state, old_in_flight)) => {
                        *old_state = state.or(*old_state);
                        *old_in_flight = in_flight.or(*old_in_flight);
                    }
                    None => states.push((row.run_id, state, in_flight)),
                }
            }
        }
        states.into_iter().for_each(|row| self.training_states.push(row));
    }

    /// Items in their state after the commit: a statement does not see the rows it adds, and can change a row
    /// only once. Changes are also written for items that are added here, because an earlier submission may
    /// already have added them.
    fn thread_items(&mut self, batches: &[&'a Batch]) {
        // The last content for each item, and whether its run has ended.
        let mut replaced: Vec<(&'a ReplacedItemRow, bool)> = Vec::new();
        for row in batches.iter().flat_map(|batch| &batch.replaced_items) {
            let is_end = row.content.is_none();
            match replaced.iter_mut().find(|(old, _)| (old.thread_id, old.id) == (row.thread_id, row.id)) {
                Some((old, is_final)) if is_end => *is_final |= old.run_id == row.run_id,
                Some(old) => *old = (row, false),
                None => replaced.push((row, is_end)),
            }
        }
        let mut removed: Vec<&'a RemovedItemRow> = Vec::new();
        for row in batches.iter().flat_map(|batch| &batch.removed_items) {
            if !removed.contains(&row) {
                removed.push(row);
            }
        }
        let is_removed = |thread, id| removed.iter().any(|row| (row.thread_id, row.id) == (thread, id));
        replaced.retain(|(row, _)| !is_removed(row.thread_id, row.id));
        let added = batches.iter().flat_map(|batch| &batch.items);
        for row in added.filter(|row| !is_removed(row.thread_id, row.id)) {
            let changed = replaced.iter().find(|(new, _)| (new.thread_id, new.id) == (row.thread_id, row.id));
            let content = changed.and_then(|(new, _)| new.content.as_deref());
            self.items.push((row, content.unwrap_or(&row.content)));
        }
        replaced.into_iter().for_each(|row| self.replaced_items.push(row));
        removed.into_iter().for_each(|row| self.removed_items.push(row));
    }

    /// The journal rows, and the blobs for their large results.
    fn journal(&mut self, batches: &[&'a Batch]) {
        // Sorted by digest: two lanes that store the same values lock them in the same order.
        let mut large: BTreeMap<[u8; 32], (&'a str, DateTime<Utc>)> = BTreeMap::new();
        for row in last_rows(batches) {
            let blob = row.result.as_deref().filter(|result| result.len() > INLINE_RESULT).map(|result| {
                let digest = address(result.as_bytes());
                large.insert(digest, (result, row.finished_at.unwrap_or(row.started_at)));
                digest
            });
            self.steps.push((row, blob));
        }
        for (digest, (value, created_at)) in large {
            self.blobs.push((digest, value, created_at));
            chunks(value.as_bytes()).for_each(|(number, bytes)| self.chunks.push((digest, number, bytes)));
        }
    }
}

/// Merges all changes to a thread: one statement can change a row only once.
fn thread_changes(batches: &[&Batch]) -> Vec<ThreadChangeRow> {
    let mut changes: Vec<ThreadChangeRow> = Vec::new();
    for row in batches.iter().flat_map(|batch| &batch.thread_changes).cloned() {
        match changes.iter_mut().find(|old| old.id == row.id) {
            Some(old) => {
                old.run_id = row.run_id;
                old.title = row.title.or(old.title.take());
                old.status = row.status.or(old.status.take());
                old.image_domains = row.image_domains.or(old.image_domains.take());
            }
            None => changes.push(row),
        }
    }
    changes
}

/// The last row per attempt, ignoring rows after its outcome: one statement cannot change a row twice.
fn last_rows<'a>(batches: &[&'a Batch]) -> Vec<&'a StepRow> {
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
    steps
}

/// The last state per run, ignoring states after its end, and its first start.
fn latest<'a>(batches: &[&'a Batch]) -> Vec<Latest<'a>> {
    let mut updates: Vec<Latest<'a>> = Vec::new();
    for row in batches.iter().flat_map(|batch| &batch.updates) {
        match updates.iter_mut().rev().find(|(old, _)| old.id == row.id) {
            Some((old, _)) if old.finished_at.is_some() => {}
            Some((old, started_at)) => (*old, *started_at) = (row, started_at.or(row.started_at)),
            None => updates.push((row, row.started_at)),
        }
    }
    updates
}
