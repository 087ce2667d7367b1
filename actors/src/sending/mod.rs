//! Queues of rows that are claimed, sent and noted: mail and the outbox. One actor of each instance sends what is due.
//!
//! A row is sent at least once: who dies between sending and noting it leaves it to be sent again.

mod actor;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::Clock;
use store::StoreError;
use tokio::sync::Notify;

use crate::runtime::{ActorKind, Guardian, Handle};
use actor::{SendingBlueprint, Wake};

/// Sent at the same time.
const AT_ONCE: i64 = 8;
/// Before the second attempt; doubles with each.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(2);

/// A queue in the database.
#[async_trait]
pub(crate) trait Queue: Send + Sync + 'static {
    /// A claimed row.
    type Item: Send;
    /// What it is called in the log.
    const NAME: &'static str;
    /// How often it is looked at when nobody says that something is in it: another instance may have died, and what
    /// failed comes round again.
    const EVERY: Duration;

    /// Time.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// What an earlier life of this instance was sending is due again; says how much.
    async fn give_back(&self) -> Result<usize, StoreError>;

    /// Claims what is due, at most `most`.
    async fn claim(&self, most: i64) -> Result<Vec<Self::Item>, StoreError>;

    /// Sends one and notes what became of it. Where that cannot be noted, its claim runs out by itself.
    async fn send(&self, item: Self::Item) -> Result<(), StoreError>;
}

/// The actor of a queue.
pub(crate) struct Sender(Handle<Wake>);

impl Sender {
    /// Starts it.
    pub(crate) fn start<Q: Queue>(guardian: &Guardian, kind: ActorKind, queue: Q) -> Self {
        let blueprint = SendingBlueprint { queue: Arc::new(queue), wake: Arc::new(Notify::new()) };
        Self(guardian.supervise(kind, blueprint))
    }

    /// Something was put into the queue. When nobody hears of it, it is found a little later.
    pub(crate) fn wake(&self) {
        let _ = self.0.tell(Wake);
    }
}

/// What an earlier life of this instance was sending.
async fn take_up<Q: Queue>(queue: &Q) {
    match queue.give_back().await {
        Ok(0) => {}
        Ok(rows) => tracing::info!(queue = Q::NAME, rows, "what was being sent is sent again"),
        Err(error) => unreadable::<Q>(&error),
    }
}

/// Sends all that is due. A database that does not answer is asked again next time.
async fn go<Q: Queue>(queue: &Q) {
    loop {
        match queue.claim(AT_ONCE).await {
            Ok(items) if items.is_empty() => return,
            Ok(items) => {
                let sent = join_all(items.into_iter().map(|item| queue.send(item))).await;
                for error in sent.into_iter().filter_map(Result::err) {
                    tracing::warn!(queue = Q::NAME, %error, "what became of something that was sent is not noted");
                }
            }
            Err(error) => return unreadable::<Q>(&error),
        }
    }
}

fn unreadable<Q: Queue>(error: &StoreError) {
    tracing::warn!(queue = Q::NAME, %error, "a queue cannot be read; it is tried again");
}

/// Before the next attempt, after so many.
pub(crate) fn pause(attempts: i32, longest: TimeDelta) -> TimeDelta {
    let doubled = u32::try_from(attempts.saturating_sub(1)).ok().and_then(|n| 2_i32.checked_pow(n));
    doubled.and_then(|n| FIRST_PAUSE.checked_mul(n)).unwrap_or(longest).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let minute = TimeDelta::seconds(60);
        let seconds: Vec<i64> = (1..9).map(|attempts| pause(attempts, minute).num_seconds()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pause(i32::MAX, minute), minute);
    }
}
