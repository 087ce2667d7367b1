//! Turns that end with a question, and the turns that continue them. Pure.

use engine::Life;
use kernel::ItemKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Continuation;
use uuid::Uuid;
use wire::chat::{ChatEvent, Dialect, ItemBody, StreamOptions, ThreadItem};
use wire::sse;

use super::sent::Sent;
use crate::text::{json, stored_json};

/// A run that has executed steps of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnLife {
    /// Its first step.
    step: u32,
    run: Uuid,
    /// The thread as it has read it; `None` if nothing reads it.
    messages: Option<Vec<Value>>,
}

/// What a turn that ends with a question leaves to the turn that continues it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Left {
    /// What it has sent.
    pub(super) sent: Sent,
    /// The runs that have executed its steps.
    pub(super) lives: Vec<TurnLife>,
    /// The message that it answers.
    pub(super) message: Option<String>,
}

/// What a turn that continues another one knows of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Continued {
    /// The runs that have executed the steps before.
    pub(super) lives: Vec<TurnLife>,
    /// The first step that is its own.
    pub(super) first_step: u32,
    /// Whether the turn before waits for nothing any more, so that nothing is left to do.
    pub(super) is_over: bool,
    /// Whether the questions are in the thread no more.
    pub(super) is_gone: bool,
    /// Items that have an answer by now and are stored as pending ones.
    pub(super) answered: Vec<(ItemKey, ThreadItem)>,
}

impl Continued {
    /// The runs that have executed the steps, with the run that continues.
    pub(super) fn lives_of(&self, run: Uuid) -> Vec<Life> {
        let before = self
            .lives
            .iter()
            .map(|life| Life { messages: life.messages.clone(), ..crate::run::life(life.step, life.run) });
        before.chain([crate::run::life(self.first_step, run)]).collect()
    }
}

/// The runs that have executed the steps of a turn, for the run that continues it. `messages`: as this run has read the thread.
pub(super) fn lives(continued: Option<&Continued>, run: Uuid, messages: Option<Vec<Value>>) -> Vec<TurnLife> {
    let (mut lives, step) = match continued {
        Some(before) => (before.lives.clone(), before.first_step),
        None => (Vec::new(), 1),
    };
    // Of runs that have begun no step of their own, none is asked for.
    lives.retain(|life| life.step < step);
    lives.push(TurnLife { step, run, messages });
    lives
}

impl Left {
    /// The message that the turn answers.
    pub(super) fn message(&self) -> Option<ItemKey> {
        self.message.as_deref().and_then(|id| ItemKey::parse(id).ok())
    }
}

/// The run that continues a turn, `(run, stream)`, with the first events of its stream. `items`: those with answers.
pub(crate) fn continuation(
    (run, stream): (Uuid, Uuid),
    dialect: Option<Dialect>,
    items: &[&ThreadItem],
) -> Continuation {
    let options = ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } };
    // The client knows the output of its own tool.
    let answered = items.iter().filter(|item| matches!(item.body, ItemBody::StructuredInput { .. }));
    let answered = answered.map(|item| ChatEvent::ItemReplaced { item: (*item).clone() });
    let (mut frames, mut last_seq) = (String::new(), 0);
    for event in std::iter::once(options).chain(answered) {
        last_seq += 1;
        sse::push_event(&mut frames, stream, last_seq, &json(&event));
    }
    Continuation { run, stream, dialect, frames, last_seq }
}

/// The run whose turn a run continues, as its row says.
pub(super) fn continues(options: Option<&str>) -> Option<Uuid> {
    let options = stored_json(options?).ok()?;
    options.get("continues").and_then(Value::as_str).and_then(|run| Uuid::parse_str(run).ok())
}
