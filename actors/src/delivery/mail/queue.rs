//! Sends queued mails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auth::sign_in::Letter;
use chrono::TimeDelta;
use kernel::Clock;
use store::{OutgoingMail, Store, StoreError};
use uuid::Uuid;

use super::Settings;
use super::delivery::MailFailure;
use crate::delivery::{Queue, pause};

/// Duration of a claim on a mail.
const SENDING: TimeDelta = TimeDelta::seconds(40);
/// Maximum time to send a mail.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum pause between two attempts.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(60);

/// The mail queue.
pub(super) struct Letters {
    pub(super) settings: Settings,
    pub(super) store: Store,
    pub(super) instance: Uuid,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Queue for Letters {
    type Item = OutgoingMail;
    const NAME: &'static str = "mail queue";
    const EVERY: Duration = Duration::from_secs(2);

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    async fn give_back(&self) -> Result<usize, StoreError> {
        self.store.give_mail_back(self.instance).await
    }

    async fn claim(&self, most: i64) -> Result<Vec<OutgoingMail>, StoreError> {
        self.store.claim_mail(self.instance, SENDING, most).await
    }

    async fn send(&self, mail: OutgoingMail) -> Result<(), StoreError> {
        let (id, attempts) = (mail.id, mail.attempts);
        if self.clock.now() >= mail.expires_at {
            kernel::warn_once_a_minute!("mail.expired", %id, attempts, "mail expired; deleted");
            return self.store.delete_mail(id).await;
        }
        if !self.may_sign_in(&mail.recipient).await? {
            return self.store.delete_mail(id).await;
        }
        let letter = match Letter::open(&self.settings.ring, id, &mail.content) {
            Ok(letter) => letter,
            Err(error) => {
                tracing::error!(%id, %error, "failed to open a mail; deleted");
                return self.store.delete_mail(id).await;
            }
        };
        let sending = self.settings.delivery.send(id, &mail.recipient, &letter);
        let sent = kernel::timeout(&*self.clock, PATIENCE, sending).await;
        match sent.unwrap_or_else(|| Err(MailFailure::too_slow())) {
            Ok(()) => {
                tracing::info!(%id, attempts, "mail sent");
                self.store.delete_mail(id).await
            }
            Err(MailFailure { reason, permanent: true, .. }) => {
                kernel::warn_once_a_minute!("mail.refused", %id, reason, "mail rejected permanently; deleted");
                self.store.delete_mail(id).await
            }
            Err(MailFailure { reason, .. }) => {
                let pause = pause(attempts, LONGEST_PAUSE);
                let seconds = pause.num_seconds();
                tracing::warn!(%id, attempts, reason, seconds, "failed to send a mail; retrying");
                self.store.retry_mail(id, self.clock.now() + pause).await
            }
        }
    }
}

impl Letters {
    async fn may_sign_in(&self, recipient: &str) -> Result<bool, StoreError> {
        match &self.settings.members_and {
            None => Ok(true),
            Some(owner) if owner.as_deref() == Some(recipient) => Ok(true),
            Some(_) => self.store.is_member(recipient).await,
        }
    }
}
