//! Chat turns as a run kind.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use engine::{AskingStep, RunInput};
use kernel::ItemKey;
use parking_lot::Mutex;
use serde_json::Value;
use store::{ContinuedTurn, FoundItem, LeftRun, OpenQuestion, QuestionKey, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::chat::{ChatEvent, ThreadItem};

use super::again::Again;
use super::continuing::{Continued, Left};
use super::events::{ChatEvents, TurnIdentity};
use super::input::{self, Cut};
use super::resume::{Resumed, fold};
use super::{TRIGGER, Turn, TurnOf, Turns, ending, grace, order, refill};
use crate::kinds;
use crate::plans::LoadedVersion;
use crate::run::StoredOptions;
use crate::run::budget::BudgetAccount;
use crate::run::kind::{Kind, KindRow, Parking, PastRun, RunOutcome};
use crate::run::waiting::Waits;
use crate::run::{End, RunPorts, RunWriter};
use crate::text::{json, stored_json};

/// Maximum stored commits per query when a turn is resumed.
const PAGE_ROWS: i64 = 1_000;

/// Changes at the start of a turn's execution.
pub(crate) struct Opening {
    cut: Option<Cut>,
    /// Stored items that an earlier life sent.
    items: Option<Vec<FoundItem>>,
    /// The thread as the turn reads it, if the turn may end with a question.
    messages: Option<Vec<Value>>,
}

/// Delay before a turn continues whose question is closed, unless an answer has already started its continuation.
const SOON: TimeDelta = TimeDelta::seconds(5);

impl Kind for Turns {
    type Data = Turn;
    type ReaderState = Resumed;
    type Events = ChatEvents;
    type Work = RunInput;
    type Opening = Opening;

    const ROW: KindRow = kinds::TURN;

    fn own(&self, left: &LeftRun) -> Result<Turn, String> {
        let run = &left.run;
        let StoredOptions { session, base } = StoredOptions::read(run.options.as_deref());
        Ok(Turn {
            thread: run.thread_id.ok_or("the turn has no thread")?,
            dialect: left.dialect.ok_or("the turn's stream has no dialect")?,
            order: run.turn_order.unwrap_or(run.id),
            session,
            base,
            continues: run.continues,
            again: Again::stored(run.options.as_deref(), run.started_at.is_some()),
            user_item: None,
            first: None,
            retitled: Mutex::default(),
        })
    }

    fn fresh(&self, run: &TurnOf) -> Resumed {
        Resumed { user_item: run.own.user_item, ..Resumed::default() }
    }

    async fn told(
        &self,
        run: &TurnOf,
        stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, Resumed), StoreError> {
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
            Some(turn) => take_over(run, turn, stopping, ports).await?,
            None => Resumed::default(),
        };
        let resumed = fold(before, &stored, run.own.thread, run.own.dialect);
        // A retried message is not in the stream.
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
            input.lives = before.lives_of(run.id);
        }
        let items = match told.last_seq {
            0 => None,
            _ => Some(ports.store.items_of_run(run.own.thread, run.id, &told.sent.ids()).await?),
        };
        let messages =
            (version.plan.may_ask() && version.plan.reads_messages()).then(|| input.messages.clone());
        Ok(Some((input, Opening { cut, items, messages })))
    }

    fn account(&self, run: &TurnOf) -> Option<BudgetAccount> {
        Some(BudgetAccount::of_turn(run.workflow, run.own.session.clone()?))
    }

    fn events(&self, run: &TurnOf, told: Resumed, ports: &RunPorts) -> ChatEvents {
        let Resumed { sent, message, user_item, continued, has_added, .. } = told;
        let (ids, clock) = (ports.ids.clone(), Arc::clone(&ports.clock));
        let is_action = run.inputs.get("action").is_some_and(|action| !action.is_null());
        let turn = TurnIdentity { thread: run.own.thread, run: run.id, question: user_item };
        ChatEvents::new(turn, run.own.dialect, ids, clock, sent, message)
            .with_links(ports.links.clone(), run.own.base.clone())
            .without_reply(is_action)
            .continuing(continued, has_added, run.first_start().is_some())
    }

    fn open(
        &self,
        run: &TurnOf,
        _version: &LoadedVersion,
        Opening { cut, items, messages }: Opening,
        stopping: bool,
        writer: &RunWriter<ChatEvents>,
        ports: &RunPorts,
    ) {
        writer.with(|events| {
            if let Some(items) = items {
                events.remember(items);
            }
            events.begin_continuation(messages);
        });
        // A retry that is stopped before its start cuts nothing.
        if let Some(cut) = cut.filter(|_| !stopping) {
            take_out(run, writer, ports, cut);
        }
    }

    async fn alongside(&self, run: &TurnOf, writer: &RunWriter<ChatEvents>, ports: &RunPorts) {
        let retitled = run.own.retitled.lock().take();
        let Some(retitled) = retitled else { return };
        if retitled.await.is_ok() {
            Box::pin(tell_title(run, writer, ports)).await;
        }
    }

    async fn abandoned(&self, run: &TurnOf, readers: watch::Receiver<usize>, ports: &RunPorts) {
        grace::abandoned(self.grace.for_dialect(run.own.dialect), run, readers, ports).await;
    }

    async fn parks(
        &self,
        run: &TurnOf,
        Waits { due, asking }: Waits,
        writer: &RunWriter<ChatEvents>,
        ports: &RunPorts,
    ) -> Parking {
        let store = &ports.store;
        if !asking.is_empty() {
            // The parking commit depends on earlier writes, so the run cannot start again before they are committed.
            let questions =
                writer.ask("the questions of a turn", || store.unanswered_questions(run.id)).await;
            // Questions of abandoned attempts are closed; expired ones end as items.
            let (open, closed): (Vec<_>, Vec<_>) = questions
                .into_iter()
                .filter(|question| question.item.is_some())
                .partition(|question| asking.iter().any(|step| is_of(question, step)));
            // All questions have been answered or have expired; the continuing run finds out.
            let soon = open.is_empty().then(|| ports.clock.now() + SOON);
            let due = due.into_iter().chain(soon).min();
            return Parking::End(writer.with(|events| events.end_with(open, closed, due)));
        }
        // Only a text for readers, so errors are ignored.
        let text = waits_for(store.open_questions(run.id).await.unwrap_or_default(), due);
        writer.with(|events| {
            events.complete_open_items();
            events.event(ChatEvent::ProgressUpdate { text, icon: Some("clock".to_owned()) });
        });
        Parking::Queue
    }

    fn stored_end(&self, run: &TurnOf, ports: &RunPorts) {
        if ports.plans.has_canary(run.workflow) {
            ports.rollouts.canary(run.workflow);
        }
    }

    fn ended(events: &mut ChatEvents, outcome: RunOutcome) -> End {
        ending::ended(events, outcome)
    }

    async fn past_input(&self, past: PastRun<'_>, ports: &RunPorts) -> Result<RunInput, StoreError> {
        let PastRun { stored, inputs, version } = past;
        let Some(thread) = stored.thread_id else {
            return Err(StoreError::Corrupt(format!("turn {} has no thread", stored.id)));
        };
        let messages = match version.plan.reads_messages() {
            true => refill::messages(&ports.store, stored, thread).await?,
            false => Vec::new(),
        };
        Ok(input::run_input(stored.id, stored.workflow_id, thread, TRIGGER, version, inputs, messages))
    }
}

/// Sends readers the thread's current state, which a node may have changed as well.
async fn tell_title(run: &TurnOf, writer: &RunWriter<ChatEvents>, ports: &RunPorts) {
    let _alone = writer.thread_change().await;
    if let Ok(Some(thread)) = ports.store.thread(run.own.thread).await {
        writer.change_and_flush(|events| events.event(ChatEvent::ThreadUpdated { thread: thread.into() }));
    }
}

/// Cuts the output of earlier turns since the retry was requested, and notifies readers.
fn take_out(run: &TurnOf, writer: &RunWriter<ChatEvents>, ports: &RunPorts, cut: Cut) {
    match ports.ids.item() {
        Ok(now) => {
            writer.cut(cut.again.cut(run.own.thread, now, cut.kept));
            writer.with(|events| {
                cut.items.into_iter().for_each(|item_id| events.event(ChatEvent::ItemRemoved { item_id }));
            });
        }
        Err(error) => tracing::error!(%error, "failed to remove items before a retry"),
    }
}

/// Takes over the previous turn's state. A run that is stopped before its start leaves that to another continuation, if
/// there is one.
async fn take_over(
    run: &TurnOf,
    turn: Uuid,
    stopping: bool,
    ports: &RunPorts,
) -> Result<Resumed, StoreError> {
    let (store, thread) = (&ports.store, run.own.thread);
    if stopping && store.sent_before(run.id).await?.is_none() && store.has_other_continuation(run.id).await? {
        return Ok(Resumed::default());
    }
    let Some(taken) = store.continue_turn(run.id, turn).await? else {
        let continued = Some(Continued { is_over: true, ..Continued::default() });
        return Ok(Resumed { continued, ..Resumed::default() });
    };
    let mut left: Left = serde_json::from_str(&taken.sent)
        .map_err(|error| StoreError::Corrupt(format!("the output of turn {}: {error}", taken.run)))?;
    if run.first_start().is_none() {
        // Readers already know other turns' changes from those turns' streams.
        left.sent.remember(store.items_of_run(thread, taken.run, &left.sent.ids()).await?);
        store.set_turn_sent(taken.run, &json(&left)).await?;
    }
    let last = store.last_step(taken.run).await?.and_then(|last| u32::try_from(last).ok());
    let keys: Vec<ItemKey> = taken.items.iter().map(|item| item.id).collect();
    let asked = store.items_named(thread, &keys).await?;
    let is_gone = asked.is_empty() && !keys.is_empty();
    let user_item = left.message();
    let first_step = last.unwrap_or_default().saturating_add(1);
    let answered = answered_items(&taken, asked);
    let continued = Some(Continued { lives: left.lives, first_step, is_over: false, is_gone, answered });
    Ok(Resumed { sent: left.sent, user_item, continued, ..Resumed::default() })
}

/// Items still pending although their questions have answers: an answer may arrive just as a turn ends.
fn answered_items(taken: &ContinuedTurn, asked: Vec<ThreadItem>) -> Vec<(ItemKey, ThreadItem)> {
    let answered = |item: ThreadItem| {
        let key = ItemKey::parse(item.id()).ok()?;
        let answer = taken.items.iter().find(|asked| asked.id == key)?.answer.as_deref()?;
        let body = item.body.answered(stored_json(answer).ok()?).ok()??.body;
        Some((key, ThreadItem { body, ..item }))
    };
    asked.into_iter().filter_map(answered).collect()
}

fn is_of(question: &OpenQuestion, step: &AskingStep) -> bool {
    let QuestionKey { node, visit, attempt, .. } = &question.step;
    *node == step.node
        && u32::try_from(*visit).is_ok_and(|visit| visit == step.visit)
        && u32::try_from(*attempt).is_ok_and(|attempt| attempt == step.attempt)
}

/// Describes for readers why a turn is parked.
fn waits_for(questions: Vec<OpenQuestion>, due_at: Option<DateTime<Utc>>) -> String {
    let asks = !questions.is_empty();
    let message = questions.into_iter().find_map(|question| question.message);
    match (message.filter(|message| !message.trim().is_empty()), due_at) {
        (Some(message), _) => message,
        (None, Some(due_at)) if !asks => format!("Waiting until {} …", due_at.format("%Y-%m-%d %H:%M UTC")),
        (None, _) => "Waiting for an answer …".to_owned(),
    }
}
