//! Ends expired questions, and continues turns for which something else is due.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use store::{ExpiredQuestion, StoreError};
use uuid::Uuid;
use wire::chat::{InputSubmission, ThreadItem};

use super::{Job, JobError};
use crate::kinds::turn::continuation;
use crate::run::{RunPorts, SharedPorts};
use crate::runtime::ActorKind;
use crate::text::json;

/// Maximum time to commit an answer, or the end of its turn.
const ANSWERS: TimeDelta = TimeDelta::minutes(5);

/// The question rounds.
pub(crate) struct QuestionRounds {
    ports: RunPorts,
    /// When the last round polled for answers.
    answered: Arc<Mutex<Option<DateTime<Utc>>>>,
}

impl QuestionRounds {
    pub(crate) fn new(ports: RunPorts) -> Self {
        Self { ports, answered: Arc::default() }
    }

    async fn poll(&self) -> Result<(), StoreError> {
        let SharedPorts { store, clock, .. } = &*self.ports;
        for question in store.expired_questions().await? {
            // A failure must not block the other questions.
            if let Err(error) = self.expire(&question).await {
                tracing::warn!(%error, item = %question.id.wire("item"), "failed to end a question that has expired");
            }
        }
        // A turn may be answered just as it ends.
        let (now, last) = (clock.now(), *self.answered.lock());
        store.wake_answered_turns(last.map_or(DateTime::UNIX_EPOCH, |last| last - ANSWERS)).await?;
        *self.answered.lock() = Some(now);
        for turn in store.due_turns().await? {
            if let Err(error) = self.continue_turn(turn).await {
                tracing::warn!(%error, run = %turn, "failed to continue a turn that is due");
            }
        }
        Ok(())
    }

    async fn expire(&self, question: &ExpiredQuestion) -> Result<(), StoreError> {
        let SharedPorts { store, ids, .. } = &*self.ports;
        let item = store.items_named(question.thread, &[question.id]).await?.pop();
        let answered = item.as_ref().and_then(|item| {
            let answer = item.body.submitted(&InputSubmission::skipped())?;
            Some(ThreadItem { body: answer.body, ..item.clone() })
        });
        let (Ok(run), Ok(stream)) = (ids.uuid(), ids.uuid()) else { return Ok(()) };
        let shown: Vec<&ThreadItem> = answered.iter().collect();
        let next = continuation(run, stream, None, &shown);
        // A question that a retry cut from the thread continues nothing.
        let next = Some(&next).filter(|_| question.continues && item.is_some());
        let content = answered.as_ref().map(json);
        if store.end_question(question, content.as_deref(), next).await? && next.is_some() {
            self.ports.wakeups.queue();
        }
        Ok(())
    }

    async fn continue_turn(&self, turn: Uuid) -> Result<(), StoreError> {
        let ids = &self.ports.ids;
        let (Ok(run), Ok(stream)) = (ids.uuid(), ids.uuid()) else { return Ok(()) };
        let next = continuation(run, stream, None, &[]);
        if self.ports.store.continue_due_turn(turn, &next).await? {
            self.ports.wakeups.queue();
        }
        Ok(())
    }
}

#[async_trait]
impl Job for QuestionRounds {
    const KIND: ActorKind = ActorKind::Questions;
    const PAUSE: Duration = Duration::from_secs(1);

    async fn round(&self) -> Result<(), JobError> {
        if let Err(error) = self.poll().await {
            tracing::warn!(%error, "failed to poll for questions that have expired");
        }
        Ok(())
    }
}
