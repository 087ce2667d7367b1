//! Answers to what runs ask.

use kernel::RandomError;
use store::{Answered, Continuation, OpenQuestion, StoreError};
use uuid::Uuid;
use wire::chat::ThreadItem;

use super::Runs;
use crate::kinds::turn::continuation;

impl Runs {
    /// What a run waits for from people, the oldest question first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        self.ports.store.open_questions(run).await
    }

    /// The run that continues the turn of this run now: itself, if no other does.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn latest_continuation(&self, run: Uuid) -> Result<Uuid, StoreError> {
        self.ports.store.latest_continuation(run).await
    }

    /// The run that would continue a turn with an answer. `item`: that asks, with its answer.
    ///
    /// # Errors
    /// [`RandomError`] if there are no random bytes.
    pub fn continuation(&self, item: Option<&ThreadItem>) -> Result<Continuation, RandomError> {
        let ids = (self.ports.ids.uuid()?, self.ports.ids.uuid()?);
        let items: Vec<&ThreadItem> = item.into_iter().collect();
        Ok(continuation(ids, None, &items))
    }

    /// An answer is stored: its run resumes, on any instance. If no notification was possible, it resumes at the next poll.
    pub async fn answered(&self, run: Uuid, answered: Answered) {
        match answered {
            Answered::Queued | Answered::Continues => self.ports.wakeups.queue(),
            Answered::With(writer) if writer == self.ports.writer => self.ports.wakeups.answered(run),
            Answered::With(writer) => {
                if let Err(error) = self.ports.store.signal(writer, run).await {
                    tracing::warn!(%run, %error, "another instance was not told of an answer");
                }
            }
            Answered::TooLate => {}
        }
    }
}
