//! One look at the queue: claim what is due, send it, note what became of it.

use std::sync::Arc;
use std::time::Duration;

use auth::sign_in::Letter;
use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::Clock;
use store::{OutgoingMail, Store, StoreError};
use uuid::Uuid;

use super::Settings;
use super::delivery::Failure;

/// Sent at the same time.
const AT_ONCE: i64 = 8;
/// For how long a claimed mail is nobody else's.
const SENDING: TimeDelta = TimeDelta::seconds(40);
/// Longest time that sending one may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before the second attempt; doubles with each.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(2);
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(60);

pub(super) struct Rounds {
    pub(super) settings: Settings,
    pub(super) store: Store,
    pub(super) instance: Uuid,
    pub(super) clock: Arc<dyn Clock>,
}

impl Rounds {
    /// What an earlier life of this instance was sending.
    pub(super) async fn take_up(&self) {
        match self.store.give_mail_back(self.instance).await {
            Ok(0) => {}
            Ok(mails) => tracing::info!(mails, "mail that was being sent is sent again"),
            Err(error) => tracing::warn!(%error, "the mail queue cannot be read; it is tried again"),
        }
    }

    /// Sends all that is due. A database that does not answer is asked again next time.
    pub(super) async fn go(&self) {
        loop {
            match self.store.claim_mail(self.instance, SENDING, AT_ONCE).await {
                Ok(mails) if mails.is_empty() => return,
                Ok(mails) => {
                    join_all(mails.into_iter().map(|mail| self.see_to(mail))).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the mail queue cannot be read; it is tried again");
                    return;
                }
            }
        }
    }

    async fn see_to(&self, mail: OutgoingMail) {
        let id = mail.id;
        if let Err(error) = self.send(mail).await {
            // Its claim runs out by itself.
            tracing::warn!(%id, %error, "what became of a mail is not noted");
        }
    }

    async fn send(&self, mail: OutgoingMail) -> Result<(), StoreError> {
        let (id, attempts) = (mail.id, mail.attempts);
        if self.clock.now() >= mail.expires_at {
            tracing::error!(%id, attempts, "a mail could not be sent in time and is worth nothing now");
            return self.store.delete_mail(id).await;
        }
        if !self.may_sign_in(&mail.recipient).await? {
            return self.store.delete_mail(id).await;
        }
        let letter = match Letter::open(&self.settings.ring, id, &mail.content) {
            Ok(letter) => letter,
            Err(error) => {
                tracing::error!(%id, %error, "a mail cannot be opened and is not sent");
                return self.store.delete_mail(id).await;
            }
        };
        let sending = self.settings.delivery.send(id, &mail.recipient, &letter);
        let sent = kernel::timeout(&*self.clock, PATIENCE, sending).await;
        match sent.unwrap_or_else(|| Err(Failure::too_slow())) {
            Ok(()) => {
                tracing::info!(%id, attempts, "a mail was sent");
                self.store.delete_mail(id).await
            }
            Err(Failure { reason, permanent: true }) => {
                tracing::error!(%id, reason, "a mail was refused for good");
                self.store.delete_mail(id).await
            }
            Err(Failure { reason, permanent: false }) => {
                let pause = pause(attempts);
                let seconds = pause.num_seconds();
                tracing::warn!(%id, attempts, reason, seconds, "a mail was not sent; it is tried again");
                self.store.retry_mail(id, self.clock.now() + pause).await
            }
        }
    }

    async fn may_sign_in(&self, recipient: &str) -> Result<bool, StoreError> {
        match &self.settings.members_and {
            None => Ok(true),
            Some(owner) if owner.as_deref() == Some(recipient) => Ok(true),
            Some(_) => self.store.is_member(recipient).await,
        }
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
    fn pauses_double_up_to_a_minute() {
        let seconds: Vec<i64> = (1..9).map(|attempts| pause(attempts).num_seconds()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pause(i32::MAX), LONGEST_PAUSE);
    }
}
