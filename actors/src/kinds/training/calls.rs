//! Converts between model calls and rows.

use std::time::Duration;

use async_trait::async_trait;
use kernel::Ids;
use store::batch::TrainingCallRow;
use store::{Store, StoreError, StoredCall};
use training::calls::{
    Amount, CallKey, CallSink, CallUsage, EarlierCalls, RecordedCall, Role, UnansweredCall, dollars,
};
use training::{read_reply, reply_json};
use uuid::Uuid;

use super::events::TrainingEvents;
use crate::run::RunWriter;
use crate::text::stored_json;

/// Maximum rows per query.
const PAGE: i64 = 1_000;

/// Calls recorded in earlier lives of a run.
#[derive(Default)]
pub(super) struct RecordedCalls {
    pub(super) recorded: Vec<RecordedCall>,
    pub(super) usage: CallUsage,
}

impl RecordedCalls {
    pub(super) async fn read(run: Uuid, store: &Store) -> Result<Self, StoreError> {
        let (mut all, mut after, mut used) = (Self::default(), Uuid::nil(), Amount::default());
        loop {
            let page = store.training_calls(run, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for row in page {
                all.add(row, &mut used);
            }
        }
        let usage = &mut all.usage;
        (usage.input_tokens, usage.output_tokens) = (used.input_tokens, used.output_tokens);
        usage.cost_usd = dollars(used.nanodollars);
        Ok(all)
    }

    fn add(&mut self, row: StoredCall, sum: &mut Amount) {
        let attempts = u32::try_from(row.attempts).unwrap_or_default();
        let Some(role) = Role::from_name(&row.role) else { return };
        // A reply reused from an earlier run costs this run nothing.
        if attempts > 0 {
            *sum = sum.plus(&used(&row));
        }
        let usage = &mut self.usage;
        usage.llm_calls += u64::from(attempts);
        usage.retries += u64::from(attempts.saturating_sub(1));
        usage.estimated |= attempts > 0 && row.estimated;
        let by_role = match role {
            Role::Task => &mut usage.by_role.task,
            Role::Judge => &mut usage.by_role.judge,
            Role::Optimizer => &mut usage.by_role.optimizer,
            Role::Embedding => &mut usage.by_role.embedding,
        };
        *by_role += u64::from(attempts);
        self.recorded.extend(recorded(row));
    }
}

/// Usage by a call's requests.
fn used(row: &StoredCall) -> Amount {
    Amount {
        calls: positive(row.calls),
        input_tokens: positive(row.input_tokens),
        output_tokens: positive(row.output_tokens),
        nanodollars: positive(row.nanodollars),
    }
}

/// A call from its row, if it was answered.
fn recorded(row: StoredCall) -> Option<RecordedCall> {
    let reply = row.reply.as_deref().and_then(|reply| stored_json(reply).ok()).and_then(read_reply)?;
    Some(RecordedCall {
        used: used(&row),
        key: CallKey(<[u8; 32]>::try_from(row.key).ok()?),
        role: Role::from_name(&row.role)?,
        model: row.model,
        reply,
        estimated: row.estimated,
        attempts: u32::try_from(row.attempts).unwrap_or_default(),
        duration: Duration::from_millis(positive(row.duration_ms)),
    })
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Calls by earlier runs of a workflow.
pub(super) struct OfWorkflow {
    pub(super) workflow: Uuid,
    pub(super) run: Uuid,
    pub(super) store: Store,
    pub(super) writer: RunWriter<TrainingEvents>,
}

#[async_trait]
impl EarlierCalls for OfWorkflow {
    async fn find(&self, key: &CallKey) -> Option<RecordedCall> {
        let read = || self.store.earlier_call(self.workflow, self.run, &key.0);
        self.writer.ask("a recorded answer of an earlier run", read).await.and_then(recorded)
    }
}

/// Hands calls to the lanes.
pub(super) struct Sink {
    pub(super) run: Uuid,
    pub(super) ids: Ids,
    pub(super) writer: RunWriter<TrainingEvents>,
}

impl Sink {
    fn row(&self, key: &CallKey, role: Role, model: &str, used: &Amount) -> Option<TrainingCallRow> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let id = match self.ids.uuid() {
            Ok(id) => id,
            Err(error) => {
                tracing::error!(run = %self.run, %error, "failed to record a model call");
                return None;
            }
        };
        Some(TrainingCallRow {
            run_id: self.run,
            id,
            key: key.0,
            role: role.as_str(),
            model: model.to_owned(),
            reply: None,
            calls: number(used.calls),
            input_tokens: number(used.input_tokens),
            output_tokens: number(used.output_tokens),
            nanodollars: number(used.nanodollars),
            estimated: true,
            attempts: 0,
            duration_ms: 0,
        })
    }

    fn hand_over(&self, row: TrainingCallRow, in_flight: Option<u32>) {
        self.writer.change_and_flush(|events| {
            events.call(row);
            if let Some(requests) = in_flight {
                events.in_flight(requests);
            }
        });
    }
}

impl CallSink for Sink {
    fn record(&self, call: &RecordedCall, in_flight: Option<u32>) {
        let Some(row) = self.row(&call.key, call.role, &call.model, &call.used) else { return };
        let row = TrainingCallRow {
            reply: Some(reply_json(&call.reply).to_string()),
            estimated: call.estimated,
            attempts: i32::try_from(call.attempts).unwrap_or(i32::MAX),
            duration_ms: millis(call.duration),
            ..row
        };
        self.hand_over(row, in_flight);
    }

    fn record_unanswered(&self, call: &UnansweredCall, in_flight: Option<u32>) {
        let Some(row) = self.row(&call.key, call.role, &call.model, &call.used) else { return };
        let row = TrainingCallRow {
            estimated: call.estimated,
            attempts: i32::try_from(call.attempts).unwrap_or(i32::MAX),
            duration_ms: millis(call.duration),
            ..row
        };
        self.hand_over(row, in_flight);
    }

    fn in_flight(&self, requests: u32) {
        self.writer.change_and_flush(|events| events.in_flight(requests));
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
