//! Answers to what runs ask.

use store::{Answered, OpenQuestion, StoreError};
use uuid::Uuid;

use super::Runs;

impl Runs {
    /// What a run waits for from people, the oldest question first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        self.ports.store.open_questions(run).await
    }

    /// An answer is stored: its run goes on, wherever it is. Where nobody could be told, it goes on a little later.
    pub async fn answered(&self, run: Uuid, answered: Answered) {
        match answered {
            Answered::Queued => self.ports.wakes.queue(),
            Answered::With(writer) if writer == self.ports.writer => self.ports.wakes.answered(run),
            Answered::With(writer) => {
                if let Err(error) = self.ports.store.signal(writer, run).await {
                    tracing::warn!(%run, %error, "another instance was not told of an answer");
                }
            }
            Answered::TooLate => {}
        }
    }
}
