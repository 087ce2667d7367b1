//! Sends an outbox mail: to all recipients at once or, if the mail server rejects that, to each separately. Successful
//! recipients are recorded, so they do not get the mail again while others wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::outbox::{Mail, Undelivered};
use serde::{Deserialize, Serialize};
use store::{ClaimedDelivery, StoreError};

use super::queue::Requests;
use crate::delivery::mail::MailFailure;

/// Maximum time per attempt.
const LONGEST: Duration = Duration::from_secs(45);
/// Time after which no further recipient is started: a recipient that is cut off may have the mail, and gets it again.
const BEGINS: Duration = Duration::from_secs(15);

/// The result for each recipient; those missing here still wait.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RecipientProgress {
    have: BTreeSet<String>,
    /// Permanently refused recipients, with the reason.
    refused: BTreeMap<String, String>,
}

impl RecipientProgress {
    /// Recipients that neither have the mail nor are refused.
    fn open<'a>(&self, all: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let is_open = |one: &&str| !self.have.contains(*one) && !self.refused.contains_key(*one);
        all.iter().copied().filter(is_open).collect()
    }

    /// The result: sent, given up, or to be retried for waiting recipients.
    fn outcome(&self, all: &BTreeSet<&str>, waiting: &BTreeMap<&str, String>) -> Result<(), Undelivered> {
        let why = |who: &str| {
            let known = self.refused.get(who).or_else(|| waiting.get(who));
            format!("{who} ({})", known.map_or("not tried yet", String::as_str))
        };
        let without = all.iter().filter(|who| !self.have.contains(**who));
        let without: Vec<String> = without.map(|who| why(who)).collect();
        if without.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} of {} recipients received it, but not {}",
            self.have.len(),
            all.len(),
            without.join(", ")
        );
        Err(Undelivered { message, permanent: self.open(all).is_empty(), retry_after: None })
    }
}

impl Requests {
    /// Sends a mail to the recipients that do not have it yet.
    ///
    /// # Errors
    /// [`StoreError`] when the recipients' progress cannot be recorded.
    pub(super) async fn send_mail(
        &self,
        mail: &Mail,
        claimed: &ClaimedDelivery,
    ) -> Result<Result<(), Undelivered>, StoreError> {
        let begun = self.clock.monotonic();
        let all: BTreeSet<&str> = mail.to.iter().chain(&mail.cc).map(String::as_str).collect();
        let noted = claimed.progress.as_deref();
        // A server that refuses one recipient does not get the mail, so no recipient has it then.
        if noted.is_none()
            && let Some(result) = self.send_to_all(mail, claimed, &all).await?
        {
            return Ok(result);
        }
        let mut progress: RecipientProgress =
            noted.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let mut open = progress.open(&all);
        // Rotated, so that a recipient that makes the server hang up blocks the others only once.
        let turns = usize::try_from(claimed.attempts).unwrap_or(1).saturating_sub(1);
        let first = turns.checked_rem(open.len()).unwrap_or(0);
        open.rotate_left(first);
        let mut waiting = BTreeMap::new();
        for recipient in open {
            let taken = self.clock.monotonic().saturating_sub(begun);
            if taken > BEGINS {
                break;
            }
            let recipients = [recipient];
            let sent = self.mail.send_mail(claimed.id, mail, &recipients);
            let sent = kernel::timeout(&*self.clock, LONGEST.saturating_sub(taken), sent).await;
            match sent.unwrap_or_else(|| Err(MailFailure::too_slow())) {
                Ok(()) => {
                    progress.have.insert(recipient.to_owned());
                }
                Err(failure) if failure.permanent => {
                    progress.refused.insert(recipient.to_owned(), failure.reason);
                }
                Err(failure) => {
                    waiting.insert(recipient, failure.reason);
                    if failure.is_of_server {
                        break;
                    }
                    continue;
                }
            }
            self.note(claimed, &progress).await?;
        }
        Ok(progress.outcome(&all, &waiting))
    }

    /// Sends the mail to all recipients at once. Returns the result, or `None` if no recipient has the mail and each must
    /// get it separately.
    async fn send_to_all(
        &self,
        mail: &Mail,
        claimed: &ClaimedDelivery,
        all: &BTreeSet<&str>,
    ) -> Result<Option<Result<(), Undelivered>>, StoreError> {
        let recipients: Vec<&str> = all.iter().copied().collect();
        let sent = self.mail.send_mail(claimed.id, mail, &recipients);
        match kernel::timeout(&*self.clock, LONGEST, sent).await {
            Some(Ok(())) => Ok(Some(Ok(()))),
            Some(Err(failure)) if is_of_all(&failure, recipients.len(), claimed.attempts) => {
                Ok(Some(Err(undelivered(failure))))
            }
            Some(Err(failure)) if !failure.may_have_it => Ok(None),
            None if recipients.len() == 1 => Ok(Some(Err(undelivered(MailFailure::too_slow())))),
            // Recipients may have the mail. If one of them causes the delay, the others get it next time.
            unknown => {
                let failure = unknown.and_then(Result::err).unwrap_or_else(MailFailure::too_slow);
                let progress = RecipientProgress::default();
                self.note(claimed, &progress).await?;
                let waiting = recipients.iter().map(|one| (*one, failure.reason.clone())).collect();
                Ok(Some(progress.outcome(all, &waiting)))
            }
        }
    }

    async fn note(&self, claimed: &ClaimedDelivery, progress: &RecipientProgress) -> Result<(), StoreError> {
        self.store.note_progress(claimed.id, &serde_json::to_string(progress).unwrap_or_default()).await
    }
}

/// Whether separate sends would fail too. A server may hang up because of one recipient, so this is assumed only once.
fn is_of_all(failure: &MailFailure, recipients: usize, attempts: i32) -> bool {
    recipients == 1 || failure.is_of_server && (failure.permanent || attempts <= 1)
}

fn undelivered(failure: MailFailure) -> Undelivered {
    Undelivered { message: failure.reason, permanent: failure.permanent, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_names_recipients_without_the_mail() {
        let all = BTreeSet::from(["a", "b", "c", "d"]);
        let mut progress = RecipientProgress::default();
        progress.have.insert("a".to_owned());
        progress.refused.insert("b".to_owned(), "550".to_owned());
        let waits = progress.outcome(&all, &BTreeMap::from([("c", "450".to_owned())])).unwrap_err();
        assert_eq!(
            (waits.message.as_str(), waits.permanent),
            ("1 of 4 recipients received it, but not b (550), c (450), d (not tried yet)", false)
        );
        progress.have.extend(["c".to_owned(), "d".to_owned()]);
        let last_outcome = progress.outcome(&all, &BTreeMap::new()).unwrap_err();
        assert_eq!(
            (last_outcome.message.as_str(), last_outcome.permanent),
            ("3 of 4 recipients received it, but not b (550)", true)
        );
        progress.refused.clear();
        progress.have.insert("b".to_owned());
        assert_eq!(progress.outcome(&all, &BTreeMap::new()), Ok(()));
    }
}
