//! Sends queued outbox requests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auth::keyring::KeyRing;
use chrono::TimeDelta;
use engine::outbox::{Mail, Undelivered, deliver};
use engine::ports::Outbound;
use kernel::Clock;
use store::{ClaimedDelivery, Store, StoreError};
use uuid::Uuid;

use crate::delivery::mail::Delivery;
use crate::delivery::{Queue, pause};
use crate::run::{CredentialsOf, WorkspaceShares};
use crate::text::stored_json;

/// Duration of a claim on a request; longer than one attempt may take.
const SENDING: TimeDelta = TimeDelta::seconds(60);
/// Maximum pause between two attempts.
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// Time after which a request is given up.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// The outbox.
pub(super) struct Requests {
    pub(super) store: Store,
    pub(super) reads: WorkspaceShares,
    pub(super) vault: Option<Arc<KeyRing>>,
    pub(super) outbound: Outbound,
    pub(super) mail: Delivery,
    pub(super) instance: Uuid,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Queue for Requests {
    type Item = ClaimedDelivery;
    const NAME: &'static str = "outbox";
    // Writers do not wake it, so it polls for committed rows.
    const EVERY: Duration = Duration::from_secs(1);

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    async fn give_back(&self) -> Result<usize, StoreError> {
        self.store.give_deliveries_back(self.instance).await
    }

    async fn claim(&self, most: i64) -> Result<Vec<ClaimedDelivery>, StoreError> {
        self.store.claim_deliveries(self.instance, SENDING, most).await
    }

    async fn send(&self, claimed: ClaimedDelivery) -> Result<(), StoreError> {
        let ClaimedDelivery { id, workspace_id, attempts, created_at, .. } = claimed;
        let credentials = CredentialsOf {
            workspace: workspace_id,
            store: &self.store,
            reads: self.reads.for_workspace(workspace_id),
            ring: self.vault.as_ref(),
        };
        let sent = match stored_json(&claimed.request).map(|request| (Mail::from_request(&request), request))
        {
            // The SMTP success code as the status.
            Ok((Some(mail), _)) => self.send_mail(&mail, &claimed).await?.map(|()| 250),
            Ok((None, request)) => deliver(id, request, &credentials, &self.outbound, &*self.clock).await,
            Err(error) => Err(Undelivered { message: error.to_string(), permanent: true, retry_after: None }),
        };
        let undelivered = match sent {
            Ok(status) => {
                tracing::info!(%id, attempts, status, "outbox delivery succeeded");
                return self.store.note_delivery(id, None, None).await;
            }
            Err(undelivered) => undelivered,
        };
        let now = self.clock.now();
        let asked = undelivered.retry_after.and_then(|wait| TimeDelta::from_std(wait).ok());
        let next = now + pause(attempts, LONGEST_PAUSE).max(asked.unwrap_or_default().min(LONGEST_PAUSE));
        let over = undelivered.permanent || next > created_at + PATIENCE;
        // The receiver's reply may quote user input; the row has it.
        tracing::warn!(%id, attempts, over, "outbox delivery failed");
        let next = (!over).then_some(next);
        self.store.note_delivery(id, next, Some(&undelivered.message)).await
    }
}
