//! Answers to a run's questions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::{Answer, Answers, JournalError, StepKey};
use kernel::Clock;
use store::{QuestionKey, Store, StoreError, StoredAnswerOf};
use uuid::Uuid;

use super::wakeups::Wakeups;
use crate::text::stored_json;

/// Interval of the polls for answers whose notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Pause before the next poll if the database does not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The answers to one run's questions.
pub(super) struct AnswersOf {
    pub(super) run: Uuid,
    pub(super) store: Store,
    pub(super) wakeups: Wakeups,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Answers for AnswersOf {
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError> {
        let key = self.key(step);
        let listening = self.wakeups.listen(self.run);
        loop {
            // Enabled before the query, so an answer that arrives in between wakes this task too.
            let mut woken = std::pin::pin!(listening.woken.notified());
            woken.as_mut().enable();
            let wait = match self.store.answer_to(&key).await.map(read) {
                Ok(Some(answer)) => return answer,
                Ok(None) => POLL_INTERVAL,
                Err(error) => {
                    self.complain(&error);
                    RETRY_PAUSE
                }
            };
            tokio::select! {
                () = woken => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    async fn stored(&self, step: StepKey<'_>) -> Result<Option<Answer>, JournalError> {
        let key = self.key(step);
        loop {
            match self.store.answer_to(&key).await.map(read) {
                Ok(answer) => return answer.transpose(),
                Err(error) => self.complain(&error),
            }
            self.clock.sleep(RETRY_PAUSE).await;
        }
    }
}

impl AnswersOf {
    fn key(&self, step: StepKey<'_>) -> QuestionKey {
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let (visit, attempt) = (number(step.visit), number(step.attempt));
        QuestionKey { run: self.run, node: step.node.to_owned(), visit, attempt }
    }

    fn complain(&self, error: &StoreError) {
        tracing::warn!(run = %self.run, %error, "failed to poll for answers");
    }
}

fn read(stored: Option<StoredAnswerOf>) -> Option<Result<Answer, JournalError>> {
    let StoredAnswerOf { answer, by, at } = stored?;
    let value =
        stored_json(&answer).map_err(|error| JournalError(format!("an answer cannot be read: {error}")));
    Some(value.map(|value| Answer { value, by, at }))
}
