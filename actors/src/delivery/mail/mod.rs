//! The mail queue: rows that a request has committed, sent by one actor of each instance.
//!
//! The request only writes rows, and whether an address may sign in at all is asked when its mail is sent: no answer's
//! time tells one address from another. A mail is sent at least once: who dies between sending and noting it sends it
//! again, and its code is good once all the same.

mod delivery;
mod queue;

use std::sync::Arc;

use auth::keyring::KeyRing;
use kernel::Clock;
use store::Store;
use uuid::Uuid;

use crate::delivery::Sender;
use crate::runtime::{ActorKind, Guardian};
pub(crate) use delivery::Failure;
pub use delivery::{Delivery, DeliveryError};
use queue::Letters;

/// How mail is sent.
pub struct Settings {
    /// Opens the letters.
    pub ring: Arc<KeyRing>,
    /// Where they go.
    pub delivery: Delivery,
    /// Only members of a workspace, and this address, are sent any; `None`: everybody is.
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

    /// A mail was committed. If this notification is lost, the next poll finds the mail.
    pub fn committed(&self) {
        self.0.wake();
    }
}
