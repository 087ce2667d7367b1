//! Answers to items that ask.

use kernel::{ItemKey, ThreadId};
use store::{Answered, AnsweredItem, NewAnswer, Reservation, Reserved};
use wire::chat::{Dialect, ItemAnswer, ThreadItem};

use super::start::TurnIds;
use super::{Chat, StartedTurn};
use crate::kinds::turn::continuing::continuation;
use crate::run::start::{IdempotencyKey, RunStartError};
use crate::text::json;

/// An answer to an item that waits for one.
#[derive(Debug, Clone)]
pub struct NewItemAnswer {
    /// The thread.
    pub thread: ThreadId,
    /// The key of the item.
    pub key: ItemKey,
    /// The stored item.
    pub item: ThreadItem,
    /// The answer.
    pub answer: ItemAnswer,
    /// The author, if known.
    pub by: Option<String>,
    /// Dialect for the texts of the continuing turn.
    pub dialect: Dialect,
    /// The request's key, if any.
    pub idempotency: Option<IdempotencyKey>,
}

impl Chat {
    /// Stores an answer with the turn that continues, and opens that turn's stream; `None` if the item no longer waits.
    /// The answer, the item and the turn are one commit: only one of several concurrent answers is stored, and any
    /// instance executes the turn.
    ///
    /// # Errors
    /// [`RunStartError`]; if the database does not answer, the answer may or may not be stored.
    pub async fn answer(&self, new: NewItemAnswer) -> Result<Option<StartedTurn>, RunStartError> {
        let store = &self.ports.store;
        let mut ids = TurnIds {
            run: self.ports.ids.uuid()?,
            stream: self.ports.ids.uuid()?,
            thread: new.thread.0,
            item: new.key.0,
        };
        if let Some(key) = &new.idempotency {
            let wanted = Reservation { scope: &key.scope, key: &key.key, digest: &key.digest, outcome: &ids };
            match store.reserve_key(wanted).await? {
                Reserved::New => {}
                Reserved::Different => return Err(RunStartError::KeyReused),
                Reserved::Same(known) => ids = known,
            }
            if store.stream(ids.stream).await?.is_some() {
                return Ok(Some(self.replayed(ids)));
            }
        }
        let NewItemAnswer { thread, key, item, answer, by, dialect, .. } = new;
        let item = ThreadItem { body: answer.body, ..item };
        let next = continuation(ids.run, ids.stream, Some(dialect), &[&item]);
        let answered = AnsweredItem { thread, id: key, content: json(&item) };
        let stored = store
            .change(async |changes| {
                let (answer, by) = (&answer.value, by.as_deref());
                let new = NewAnswer { answer, by, item: Some(answered), next: Some(&next) };
                changes.answer_question(None, new).await
            })
            .await?;
        if stored == Answered::Continues {
            self.ports.wakeups.queue();
            let reader = self.open(ids.stream, 0);
            return Ok(Some(StartedTurn { reader, thread, replayed: false }));
        }
        // This may be a retry of the request that stored the answer.
        match store.stream_of_answer(key).await? {
            Some(stream) if stream == ids.stream => Ok(Some(self.replayed(ids))),
            _ => Ok(None),
        }
    }
}
