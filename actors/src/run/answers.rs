//! What people answer to a run's questions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::{Answer, Answers, JournalError, StepKey};
use kernel::Clock;
use store::{QuestionKey, Store, StoreError, StoredAnswerOf};
use uuid::Uuid;

use super::wakes::Wakes;
use crate::turn::text::stored_json;

/// How often it is looked whether an answer came of which nobody has told.
const LOOK: Duration = Duration::from_secs(30);
/// How soon it is looked again when the database did not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// The answers to one run's questions.
pub(super) struct AnswersOf {
    pub(super) run: Uuid,
    pub(super) store: Store,
    pub(super) wakes: Wakes,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Answers for AnswersOf {
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError> {
        let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let (visit, attempt) = (number(step.visit), number(step.attempt));
        let key = QuestionKey { run: self.run, node: step.node.to_owned(), visit, attempt };
        let listening = self.wakes.listen(self.run);
        loop {
            // Before the look: what comes in between wakes too.
            let mut woken = std::pin::pin!(listening.woken.notified());
            woken.as_mut().enable();
            let wait = match self.store.answer_to(&key).await.map(read) {
                Ok(Some(answer)) => return answer,
                Ok(None) => LOOK,
                Err(error) => {
                    self.complain(&error);
                    AGAIN
                }
            };
            tokio::select! {
                () = woken => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }
}

impl AnswersOf {
    fn complain(&self, error: &StoreError) {
        tracing::warn!(run = %self.run, %error, "it was not looked whether somebody has answered");
    }
}

fn read(stored: Option<StoredAnswerOf>) -> Option<Result<Answer, JournalError>> {
    let StoredAnswerOf { answer, by, at } = stored?;
    let value =
        stored_json(&answer).map_err(|error| JournalError(format!("an answer cannot be read: {error}")));
    Some(value.map(|value| Answer { value, by, at }))
}
