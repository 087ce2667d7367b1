//! Chat turns as a kind of run.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use engine::RunInput;
use kernel::ThreadId;
use serde_json::Value;
use store::{FoundItem, LeftRun, OpenQuestion, StoreError, StoredRun};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::chat::ChatEvent;

use super::again::Again;
use super::continuing::{Continued, Left, continues};
use super::events::ChatEvents;
use super::input::{self, Cut};
use super::resume::{Resumed, fold};
use super::{TRIGGER, Turn, TurnOf, Turns, ending, grace, order, refill};
use crate::kinds;
use crate::plans::LoadedVersion;
use crate::run::kind::{Kind, KindRow, Outcome, Parking};
use crate::run::{End, RunPorts, RunWriter};

/// Stored commits that one query reads when a turn is resumed.
const PAGE_ROWS: i64 = 1_000;

impl Kind for Turns {
    type Own = Turn;
    type Told = Resumed;
    type Events = ChatEvents;
    type Opening = (Option<Cut>, Option<Vec<FoundItem>>);

    const ROW: KindRow = kinds::TURN;

    fn own(&self, left: &LeftRun) -> Result<Turn, String> {
        let run = &left.run;
        Ok(Turn {
            thread: run.thread_id.ok_or("the turn has no thread")?,
            dialect: left.dialect.ok_or("the turn's stream has no dialect")?,
            order: run.turn_order.unwrap_or(run.id),
            continues: continues(run.options.as_deref()),
            again: Again::stored(run.options.as_deref(), run.started_at.is_some()),
            user_item: None,
            first: None,
        })
    }

    fn fresh(&self, run: &TurnOf) -> Resumed {
        Resumed { user_item: run.own.user_item, ..Resumed::default() }
    }

    async fn told(&self, run: &TurnOf, ports: &RunPorts) -> Result<(u64, Resumed), StoreError> {
        let mut stored = Vec::new();
        loop {
            let seen = stored.last().map_or(0, |row: &store::StoredFrames| row.last_seq);
            let rows = ports.store.frames_after(run.stream, seen, PAGE_ROWS).await?;
            if rows.is_empty() {
                break;
            }
            stored.extend(rows);
        }
        let before = match run.own.continues {
            Some(turn) => take_over(run.id, run.own.thread, turn, ports).await?,
            None => Resumed::default(),
        };
        let resumed = fold(before, &stored, run.own.thread, run.own.dialect);
        // A message that is answered again is not in the stream.
        let user_item = run.own.again.map(|again| again.item).or(resumed.user_item);
        Ok((resumed.last_seq, Resumed { user_item, ..resumed }))
    }

    async fn may_start(
        &self,
        run: &TurnOf,
        ports: &RunPorts,
        stop: &CancellationToken,
    ) -> Result<bool, StoreError> {
        order::in_order(run, ports, stop).await
    }

    async fn input(
        &self,
        run: &TurnOf,
        version: &LoadedVersion,
        told: &Resumed,
        ports: &RunPorts,
    ) -> Result<Option<(RunInput, Self::Opening)>, StoreError> {
        if told.continued.as_ref().is_some_and(|before| before.is_over || before.is_gone) {
            return Ok(None);
        }
        let Some((mut input, cut)) = input::read(run, version, ports, told.user_item).await? else {
            return Ok(None);
        };
        if let Some(before) = &told.continued {
            let lives = before.lives_of(run.id).into_iter();
            input.lives = lives.map(|(step, run)| crate::run::life(step, run)).collect();
        }
        let items = match told.last_seq {
            0 => None,
            _ => Some(ports.store.items_of_run(run.own.thread, run.id, &told.sent.ids()).await?),
        };
        Ok(Some((input, (cut, items))))
    }

    fn events(&self, run: &TurnOf, told: Resumed, ports: &RunPorts) -> ChatEvents {
        let Resumed { sent, message, user_item, continued, .. } = told;
        let (ids, clock) = (ports.ids.clone(), Arc::clone(&ports.clock));
        let is_action = run.inputs.get("action").is_some_and(|action| !action.is_null());
        ChatEvents::new((run.own.thread, run.id, user_item), run.own.dialect, ids, clock, (sent, message))
            .without_reply(is_action)
            .continuing(continued)
    }

    fn open(
        &self,
        run: &TurnOf,
        _version: &LoadedVersion,
        (cut, items): Self::Opening,
        stopping: bool,
        writer: &RunWriter<ChatEvents>,
        ports: &RunPorts,
    ) {
        if let Some(items) = items {
            writer.with(|events| events.remember(items));
        }
        // A retry that is stopped before it has started takes nothing more out.
        if let Some(cut) = cut.filter(|_| !stopping) {
            take_out(run, writer, ports, cut);
        }
    }

    async fn abandoned(&self, run: &TurnOf, readers: watch::Receiver<usize>, ports: &RunPorts) {
        grace::abandoned(self.grace.of(run.own.dialect), run, readers, ports).await;
    }

    async fn parks(
        &self,
        run: &TurnOf,
        due: Option<DateTime<Utc>>,
        writer: &RunWriter<ChatEvents>,
        ports: &RunPorts,
    ) -> Result<Parking, StoreError> {
        // Of an item's question the engine says no time: also one that has expired by now ends the turn.
        let questions = ports.store.unanswered_questions(run.id).await?;
        if questions.iter().any(|question| question.item.is_some()) {
            return Ok(Parking::End(writer.with(|events| events.end_with(questions, due))));
        }
        let text = waits_for(questions, due);
        writer.with(|events| {
            events.complete_open_items();
            events.event(ChatEvent::ProgressUpdate { text, icon: Some("clock".to_owned()) });
        });
        Ok(Parking::Queue)
    }

    fn ended(events: &mut ChatEvents, outcome: Outcome) -> End {
        ending::ended(events, outcome)
    }

    async fn past_input(
        &self,
        stored: &StoredRun,
        inputs: Value,
        version: &Arc<LoadedVersion>,
        ports: &RunPorts,
    ) -> Result<RunInput, StoreError> {
        let Some(thread) = stored.thread_id else {
            return Err(StoreError::Corrupt(format!("turn {} has no thread", stored.id)));
        };
        let messages = match version.plan.reads_messages() {
            true => refill::messages(&ports.store, stored, thread).await?,
            false => Vec::new(),
        };
        Ok(input::run_input((stored.id, stored.workflow_id, thread), TRIGGER, version, inputs, messages))
    }
}

/// Takes out of the thread what earlier turns have said since the retry was requested, and tells readers.
fn take_out(run: &TurnOf, writer: &RunWriter<ChatEvents>, ports: &RunPorts, cut: Cut) {
    match ports.ids.item() {
        Ok(now) => {
            writer.cut(cut.again.cut(run.own.thread, now, cut.kept));
            writer.with(|events| {
                cut.items.into_iter().for_each(|item_id| events.event(ChatEvent::ItemRemoved { item_id }));
            });
        }
        Err(error) => tracing::error!(%error, "failed to take out what came before a retry"),
    }
}

/// What the turn before has left to the run that continues it.
async fn take_over(run: Uuid, thread: ThreadId, turn: Uuid, ports: &RunPorts) -> Result<Resumed, StoreError> {
    let Some(taken) = ports.store.continue_turn(run, turn).await? else {
        let continued = Some(Continued { is_over: true, ..Continued::default() });
        return Ok(Resumed { continued, ..Resumed::default() });
    };
    let left: Left = serde_json::from_str(&taken.sent)
        .map_err(|error| StoreError::Corrupt(format!("what turn {} has sent: {error}", taken.run)))?;
    let last = ports.store.last_step(taken.run).await?.and_then(|last| u32::try_from(last).ok());
    let asked = ports.store.items_named(thread, &taken.items).await?;
    let is_gone = asked.is_empty() && !taken.items.is_empty();
    let user_item = left.message();
    let (lives, first_step) = (left.lives, last.unwrap_or_default().saturating_add(1));
    let continued = Some(Continued { lives, first_step, is_over: false, is_gone });
    Ok(Resumed { sent: left.sent, user_item, continued, ..Resumed::default() })
}

/// What a parked turn waits for, for its readers.
fn waits_for(questions: Vec<OpenQuestion>, due_at: Option<DateTime<Utc>>) -> String {
    let asks = !questions.is_empty();
    let message = questions.into_iter().find_map(|question| question.message);
    match (message.filter(|message| !message.trim().is_empty()), due_at) {
        (Some(message), _) => message,
        (None, Some(due_at)) if !asks => format!("Waiting until {} …", due_at.format("%Y-%m-%d %H:%M UTC")),
        (None, _) => "Waiting for an answer …".to_owned(),
    }
}
