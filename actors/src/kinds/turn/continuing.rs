//! Turns that end with a question, and turns that continue them. Pure.

use engine::Life;
use kernel::ItemKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Continuation;
use uuid::Uuid;
use wire::chat::{ChatEvent, Dialect, ItemBody, StreamOptions, ThreadItem};
use wire::sse;

use super::sent::OutputList;
use crate::text::json;

/// A run that executed steps of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnLife {
    /// Its first step.
    step: u32,
    run: Uuid,
    /// Number of leading messages that it shares with the previous run. A thread grows from run to run, and is stored
    /// once.
    #[serde(default)]
    kept: usize,
    /// Messages it read after those; `None` if nothing reads the thread.
    messages: Option<Vec<Value>>,
}

/// State that a turn which ends with a question leaves to the turn that continues it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Left {
    /// Its output list.
    pub(super) sent: OutputList,
    /// The runs that executed its steps.
    pub(super) lives: Vec<TurnLife>,
    /// The message that it answers.
    pub(super) message: Option<String>,
}

/// A continuing turn's knowledge of the previous turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Continued {
    /// The runs that executed the earlier steps.
    pub(super) lives: Vec<TurnLife>,
    /// The first step of the continuing run.
    pub(super) first_step: u32,
    /// Whether the previous turn no longer waits, so nothing is left to do.
    pub(super) is_over: bool,
    /// Whether the questions are gone from the thread.
    pub(super) is_gone: bool,
    /// Items with an answer that are still stored as pending.
    pub(super) answered: Vec<(ItemKey, ThreadItem)>,
}

impl Continued {
    /// The runs that executed the steps, including the continuing one.
    pub(super) fn lives_of(&self, run: Uuid) -> Vec<Life> {
        let mut read = Vec::new();
        let before = self.lives.iter().map(|life| {
            life.reads(&mut read);
            let messages = life.messages.is_some().then(|| read.clone());
            Life { messages, ..crate::run::life(life.step, life.run) }
        });
        before.chain([crate::run::life(self.first_step, run)]).collect()
    }
}

/// The runs that executed a turn's steps, for the run that continues it. `messages`: the thread as this run read it.
pub(super) fn lives(continued: Option<&Continued>, run: Uuid, messages: Option<Vec<Value>>) -> Vec<TurnLife> {
    let (mut lives, step) = match continued {
        Some(before) => (before.lives.clone(), before.first_step),
        None => (Vec::new(), 1),
    };
    // Runs that started no step are not needed.
    lives.retain(|life| life.step < step);
    let before = last_read(&lives);
    let is_same = |(read, before): &(&Value, &Value)| read == before;
    let kept = messages.iter().flatten().zip(&before).take_while(is_same).count();
    let messages = messages.map(|mut messages| messages.split_off(kept));
    lives.push(TurnLife { step, run, kept, messages });
    lives
}

impl TurnLife {
    /// Updates the previous run's messages in `read` to this run's messages.
    fn reads(&self, read: &mut Vec<Value>) {
        read.truncate(self.kept);
        read.extend(self.messages.iter().flatten().cloned());
    }
}

/// The messages that the last run read.
fn last_read(lives: &[TurnLife]) -> Vec<Value> {
    let mut read = Vec::new();
    lives.iter().for_each(|life| life.reads(&mut read));
    read
}

impl Left {
    /// The message that the turn answers.
    pub(super) fn message(&self) -> Option<ItemKey> {
        self.message.as_deref().and_then(|id| ItemKey::parse(id).ok())
    }
}

/// Creates the run that continues a turn, with the first events for its stream. `items`: those with answers.
pub(crate) fn continuation(
    run: Uuid,
    stream: Uuid,
    dialect: Option<Dialect>,
    items: &[&ThreadItem],
) -> Continuation {
    let options = ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } };
    // The client knows its own tool's output.
    let answered = items.iter().filter(|item| matches!(item.body, ItemBody::StructuredInput { .. }));
    let answered = answered.map(|item| ChatEvent::ItemReplaced { item: (*item).clone() });
    let (mut frames, mut last_seq) = (String::new(), 0);
    for event in std::iter::once(options).chain(answered) {
        last_seq += 1;
        sse::push_event(&mut frames, stream, last_seq, &json(&event));
    }
    Continuation { run, stream, dialect, frames, last_seq }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[test]
    fn a_thread_that_several_runs_have_read_is_stored_once() {
        let (one, two, three) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let thread: Vec<Value> = ["a", "b", "c", "d"].map(message).into();
        let first = lives(None, one, Some(thread[..2].to_vec()));
        let before = Continued { lives: first, first_step: 3, ..Continued::default() };
        let both = lives(Some(&before), two, Some(thread.clone()));
        assert_eq!((both[1].kept, both[1].messages.as_deref()), (2, Some(&thread[2..])));
        let before = Continued { lives: both, first_step: 5, ..Continued::default() };
        let read: Vec<_> =
            before.lives_of(three).into_iter().map(|life| (life.step, life.messages)).collect();
        assert_eq!(read, [(1, Some(thread[..2].to_vec())), (3, Some(thread)), (5, None)]);
    }

    #[test]
    fn runs_without_steps_are_left_out_and_inserted_messages_are_kept() {
        let (one, two, three) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let first = lives(None, one, Some(vec![message("a"), message("b")]));
        let before = Continued { lives: first, first_step: 2, ..Continued::default() };
        let skipped = lives(Some(&before), two, Some(vec![message("a"), message("b"), message("c")]));
        let before = Continued { lives: skipped, first_step: 2, ..Continued::default() };
        let last = lives(Some(&before), three, Some(vec![message("a"), message("new"), message("b")]));
        assert_eq!(last.iter().map(|life| (life.run, life.kept)).collect::<Vec<_>>(), [(one, 0), (three, 1)]);
        assert_eq!(last_read(&last), [message("a"), message("new"), message("b")]);
    }

    #[test]
    fn a_life_of_an_older_build_stores_its_whole_thread() {
        let old = json!({"step": 1, "run": Uuid::nil(), "messages": [message("a")]});
        let old: TurnLife = serde_json::from_value(old).unwrap();
        assert_eq!(last_read(&[old]), [message("a")]);
    }
}
