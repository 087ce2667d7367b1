//! One look at the outbox: claim what is due, send it, note what became of it.

use std::sync::Arc;

use auth::keyring::KeyRing;
use chrono::TimeDelta;
use engine::outbox::{Undelivered, deliver};
use engine::ports::Outbound;
use futures_util::future::join_all;
use kernel::Clock;
use store::{ClaimedDelivery, Store, StoreError};
use uuid::Uuid;

use crate::run::CredentialsOf;
use crate::turn::text::stored_json;

/// Sent at the same time.
const AT_ONCE: i64 = 8;
/// For how long a claimed request is nobody else's; longer than one attempt may take.
const SENDING: TimeDelta = TimeDelta::seconds(60);
/// Before the second attempt; doubles with each.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(2);
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// For how long it is tried.
const PATIENCE: TimeDelta = TimeDelta::days(1);

pub(super) struct Rounds {
    pub(super) store: Store,
    pub(super) vault: Option<Arc<KeyRing>>,
    pub(super) outbound: Outbound,
    pub(super) instance: Uuid,
    pub(super) clock: Arc<dyn Clock>,
}

impl Rounds {
    /// What an earlier life of this instance was sending.
    pub(super) async fn take_up(&self) {
        match self.store.give_deliveries_back(self.instance).await {
            Ok(0) => {}
            Ok(requests) => tracing::info!(requests, "requests that were being sent are sent again"),
            Err(error) => tracing::warn!(%error, "the outbox cannot be read; it is tried again"),
        }
    }

    /// Sends all that is due. A database that does not answer is asked again next time.
    pub(super) async fn go(&self) {
        loop {
            match self.store.claim_deliveries(self.instance, SENDING, AT_ONCE).await {
                Ok(claimed) if claimed.is_empty() => return,
                Ok(claimed) => {
                    join_all(claimed.into_iter().map(|claimed| self.see_to(claimed))).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the outbox cannot be read; it is tried again");
                    return;
                }
            }
        }
    }

    async fn see_to(&self, claimed: ClaimedDelivery) {
        let id = claimed.id;
        if let Err(error) = self.send(claimed).await {
            // Its claim runs out by itself.
            tracing::warn!(%id, %error, "what became of a request is not noted");
        }
    }

    async fn send(&self, claimed: ClaimedDelivery) -> Result<(), StoreError> {
        let ClaimedDelivery { id, workspace_id, request, attempts, created_at } = claimed;
        let credentials =
            CredentialsOf { workspace: workspace_id, store: &self.store, ring: self.vault.as_ref() };
        let sent = match stored_json(&request) {
            Ok(request) => deliver(id, request, &credentials, &self.outbound, &*self.clock).await,
            Err(error) => Err(Undelivered { message: error.to_string(), permanent: true, retry_after: None }),
        };
        let undelivered = match sent {
            Ok(status) => {
                tracing::info!(%id, attempts, status, "a webhook was taken");
                return self.store.note_delivery(id, None, None).await;
            }
            Err(undelivered) => undelivered,
        };
        let now = self.clock.now();
        let asked = undelivered.retry_after.and_then(|wait| TimeDelta::from_std(wait).ok());
        let next = now + pause(attempts).max(asked.unwrap_or_default().min(LONGEST_PAUSE));
        let over = undelivered.permanent || next > created_at + PATIENCE;
        // What the receiver said may quote what users said; it is in the row.
        tracing::warn!(%id, attempts, over, "a webhook was not taken");
        let next = (!over).then_some(next);
        self.store.note_delivery(id, next, Some(&undelivered.message)).await
    }
}

/// Before the next attempt, after so many.
fn pause(attempts: i32) -> TimeDelta {
    let doubled = u32::try_from(attempts.saturating_sub(1)).ok().and_then(|n| 2_i32.checked_pow(n));
    doubled.and_then(|n| FIRST_PAUSE.checked_mul(n)).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let seconds: Vec<i64> = (1..12).map(|attempts| pause(attempts).num_seconds()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(pause(i32::MAX), LONGEST_PAUSE);
    }
}
