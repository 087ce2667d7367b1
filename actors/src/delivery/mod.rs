//! Queues whose rows are claimed, sent and recorded: mail and the outbox. One actor per instance sends due rows.
//!
//! A row is sent at least once: after a crash between sending and recording, it is sent again.

mod actor;
pub mod mail;
pub(crate) mod outbox;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use kernel::{Clock, backoff};
use store::StoreError;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::runtime::{ActorKind, Guardian, Handle};
use actor::{SendingBlueprint, Wake};

/// Maximum concurrent deliveries.
const AT_ONCE: usize = 8;
/// Pause before the second attempt; doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// A queue in the database.
#[async_trait]
pub(crate) trait Queue: Send + Sync + 'static {
    /// A claimed row.
    type Item: Send;
    /// Name in logs.
    const NAME: &'static str;
    /// Poll interval without a notification: another instance may have died, and failed rows become due again.
    const EVERY: Duration;

    /// Time.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// Releases the claims that an earlier life of this instance left; returns their number.
    async fn give_back(&self) -> Result<usize, StoreError>;

    /// Claims at most `most` due rows.
    async fn claim(&self, most: i64) -> Result<Vec<Self::Item>, StoreError>;

    /// Sends a row and records the result. If recording fails, the claim expires.
    async fn send(&self, item: Self::Item) -> Result<(), StoreError>;
}

/// The actor of a queue.
pub(crate) struct Sender(Handle<Wake>);

impl Sender {
    /// Starts the actor.
    pub(crate) fn start<Q: Queue>(guardian: &Guardian, kind: ActorKind, queue: Q) -> Self {
        let blueprint = SendingBlueprint { queue: Arc::new(queue), wake: Arc::new(Notify::new()) };
        Self(guardian.supervise(kind, blueprint))
    }

    /// Notifies the actor of a new row. If the notification is lost, the next poll finds the row.
    pub(crate) fn wake(&self) {
        let _ = self.0.tell(Wake);
    }
}

/// Releases the claims that an earlier life of this instance left.
async fn take_up<Q: Queue>(queue: &Q) {
    match queue.give_back().await {
        Ok(0) => {}
        Ok(rows) => tracing::info!(queue = Q::NAME, rows, "interrupted deliveries requeued"),
        Err(error) => unreadable::<Q>(&error),
    }
}

/// Sends due rows until shutdown, at most [`AT_ONCE`] concurrently: a slow row occupies one slot, and only that many
/// slow rows block the rest. Each row is a separate task, so deliveries do not wait for queries. If the database does
/// not answer, the query is retried later.
async fn work<Q: Queue>(queue: &Arc<Q>, wake: &Notify, drain: &CancellationToken) {
    take_up(&**queue).await;
    let mut sending = JoinSet::new();
    while !drain.is_cancelled() {
        let room = AT_ONCE.saturating_sub(sending.len());
        if room > 0 {
            match queue.claim(i64::try_from(room).unwrap_or(0)).await {
                Ok(items) => {
                    for item in items {
                        let queue = Arc::clone(queue);
                        sending.spawn(async move { queue.send(item).await });
                    }
                }
                Err(error) => unreadable::<Q>(&error),
            }
        }
        tokio::select! {
            Some(sent) = sending.join_next() => told::<Q>(sent),
            () = queue.clock().sleep(Q::EVERY) => {}
            () = wake.notified() => {}
            () = drain.cancelled() => {}
        }
    }
    while let Some(sent) = sending.join_next().await {
        told::<Q>(sent);
    }
}

fn told<Q: Queue>(sent: Result<Result<(), StoreError>, JoinError>) {
    match sent {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(queue = Q::NAME, %error, "failed to record a delivery result");
        }
        // The claim expires, and the row is sent again.
        Err(error) => {
            kernel::warn_once_a_minute!("delivery.failed", queue = Q::NAME, %error, "delivery panicked")
        }
    }
}

fn unreadable<Q: Queue>(error: &StoreError) {
    tracing::warn!(queue = Q::NAME, %error, "failed to poll a queue; retrying");
}

/// The pause before the next attempt, after this many attempts.
pub(crate) fn pause(attempts: i32, longest: TimeDelta) -> TimeDelta {
    let failures = u32::try_from(attempts).unwrap_or_default();
    let pause = backoff(FIRST_PAUSE, failures, longest.to_std().unwrap_or_default());
    TimeDelta::from_std(pause).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let minute = TimeDelta::seconds(60);
        let seconds: Vec<i64> = (1..9).map(|attempts| pause(attempts, minute).num_seconds()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pause(i32::MAX, minute), minute);
    }
}
