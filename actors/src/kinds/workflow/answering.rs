//! Answers to a run's questions.

use kernel::RandomError;
use store::{Answered, Continuation, OpenQuestion, StoreError};
use uuid::Uuid;
use wire::chat::ThreadItem;

use super::Runs;
use crate::kinds::turn::continuation;

impl Runs {
    /// Returns a run's open questions to people, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        self.ports.store.open_questions(run).await
    }

    /// Returns the run that currently continues this run's turn, or the run itself.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn latest_continuation(&self, run: Uuid) -> Result<Uuid, StoreError> {
        self.ports.store.latest_continuation(run).await
    }

    /// Creates the run that would continue a turn with an answer. `item`: the asking item, with its answer.
    ///
    /// # Errors
    /// [`RandomError`] if the system provides no random bytes.
    pub fn continuation(&self, item: Option<&ThreadItem>) -> Result<Continuation, RandomError> {
        let (run, stream) = (self.ports.ids.uuid()?, self.ports.ids.uuid()?);
        let items: Vec<&ThreadItem> = item.into_iter().collect();
        Ok(continuation(run, stream, None, &items))
    }

    /// Resumes the run of a stored answer, on any instance. If it cannot be notified, it resumes at the next poll.
    pub async fn answered(&self, run: Uuid, answered: Answered) {
        match answered {
            Answered::Queued | Answered::Continues => self.ports.wakeups.queue(),
            Answered::With(writer) if writer == self.ports.writer => self.ports.wakeups.answered(run),
            Answered::With(writer) => {
                if let Err(error) = self.ports.store.signal(writer, run).await {
                    tracing::warn!(%run, %error, "failed to notify another instance of an answer");
                }
            }
            Answered::TooLate => {}
        }
    }
}
