//! The input for a turn's run: the message, and the thread as a model reads it.

use engine::{RunInfo, RunInput};
use kernel::{ItemKey, ThreadId};
use serde_json::Value;
use store::{StoreError, StoredItem};
use uuid::Uuid;

use super::again::{Again, answered_before};
use super::{TRIGGER, TurnOf, history};
use crate::plans::LoadedVersion;
use crate::run::{RunPorts, plain_input};

/// Items that a retry cuts from its thread at the start: output of earlier turns since the retry was requested.
pub(crate) struct Cut {
    pub(super) again: Again,
    /// The last answer after the message that belongs to an earlier turn.
    pub(super) kept: ItemKey,
    /// The removed items that clients can see.
    pub(super) items: Vec<String>,
}

/// The turn's input; `None` if its message is gone from the thread, or the thread is deleted.
///
/// The thread is checked only here, when the turn starts: its start may have been accepted long ago.
pub(super) async fn read(
    run: &TurnOf,
    version: &LoadedVersion,
    ports: &RunPorts,
    user_item: Option<ItemKey>,
) -> Result<Option<(RunInput, Option<Cut>)>, StoreError> {
    let turn = &run.own;
    // An action's turn has no message that would be deleted with the thread.
    if user_item.is_none() && ports.store.thread(turn.thread).await?.is_none() {
        return Ok(None);
    }
    let (mut messages, mut cut) = (Vec::new(), None);
    if version.plan.reads_messages() || turn.again.is_some() {
        let mut items = match &turn.first {
            // Its start may not be stored yet.
            Some(item) => vec![StoredItem { item: item.clone(), answers: None, run: None }],
            None => ports.store.thread_items(turn.thread).await?,
        };
        // Items from an earlier life were not part of the run's initial input.
        items.retain(|stored| stored.run != Some(run.id));
        if let Some(again) = turn.again {
            let kept = answered_before(&ports.store, turn.thread, again.item, &items).await?;
            let out = items.iter().map(|stored| &stored.item);
            let out = out.filter(|item| again.takes_out(item, kept) && !item.is_hidden());
            let out = out.map(|item| item.id().to_owned()).collect();
            cut = (!again.started).then_some(Cut { again, kept, items: out });
            items.retain(|stored| again.reads(&stored.item, kept));
        }
        let own = user_item.map(|key| key.wire("msg"));
        if own.as_deref().is_some_and(|own| items.iter().all(|stored| stored.item.id() != own)) {
            return Ok(None);
        }
        // An action has no message: it reads everything before it.
        let own = own.or_else(|| user_item.is_none().then(|| ItemKey::at(turn.order).wire("msg")));
        let resumed = (turn.order != run.id).then(|| turn.resumed_at()).flatten();
        let files = history::files(&ports.store, turn.thread, &items).await?;
        let sent = match turn.continues {
            Some(_) => history::answers_to(&items, user_item),
            None => Vec::new(),
        };
        let own = history::TurnItems { message: own.as_deref(), items: &sent };
        messages = history::messages(history::paired(items), &files, own, resumed);
    } else if let Some(item) = user_item
        && turn.first.is_none()
        && !ports.store.has_item(turn.thread, item).await?
    {
        return Ok(None);
    }
    let inputs = run.inputs.clone();
    let input = run_input(run.id, run.workflow, turn.thread, TRIGGER, version, inputs, messages);
    Ok(Some((input, cut)))
}

/// The input for a run in a thread.
pub(crate) fn run_input(
    run: Uuid,
    workflow: Uuid,
    thread: ThreadId,
    trigger: &str,
    version: &LoadedVersion,
    inputs: Value,
    messages: Vec<Value>,
) -> RunInput {
    let input = plain_input(run, workflow, trigger, inputs, version);
    let run = RunInfo { thread_id: Some(thread.to_string()), ..input.run };
    RunInput { messages, run, ..input }
}
