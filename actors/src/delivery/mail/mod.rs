//! The mail queue: rows that a request has committed, sent by one actor per instance.
//!
//! The request only writes rows. Whether an address may sign in is checked when its mail is sent, so response times do
//! not reveal registered addresses. A mail is sent at least once: after a crash between sending and recording, it is
//! sent again, and its code still works only once.

mod delivery;
mod queue;

use std::sync::Arc;

use auth::keyring::KeyRing;
use kernel::Clock;
use store::Store;
use uuid::Uuid;

use crate::delivery::Sender;
use crate::runtime::{ActorKind, Guardian};
pub(crate) use delivery::MailFailure;
pub use delivery::{Delivery, DeliveryError};
use queue::Letters;

/// Settings of the mail queue.
pub struct Settings {
    /// Decrypts the letters.
    pub ring: Arc<KeyRing>,
    /// The mail transport.
    pub delivery: Delivery,
    /// Restricts recipients to workspace members and this address; `None`: unrestricted.
    pub members_and: Option<Option<String>>,
}

/// The queue's actor.
pub struct MailQueue(Sender);

impl MailQueue {
    pub(crate) fn start(
        guardian: &Guardian,
        settings: Settings,
        store: Store,
        instance: Uuid,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Sender::start(guardian, ActorKind::Mail, Letters { settings, store, instance, clock }))
    }

    /// Notifies the queue of a committed mail. If the notification is lost, the next poll finds the mail.
    pub fn committed(&self) {
        self.0.wake();
    }
}
