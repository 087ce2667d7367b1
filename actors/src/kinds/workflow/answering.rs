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

    /// An answer is stored: its run resumes, on any instance. If no notification was possible, it resumes at the next poll.
    pub async fn answered(&self, run: Uuid, answered: Answered) {
        match answered {
            Answered::Queued => self.ports.wakeups.queue(),
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
