//! The mail queue: rows that a request has committed, sent by one actor of each instance.
//!
//! The request only writes rows, and whether an address may sign in at all is asked when its mail is sent: no answer's
//! time tells one address from another. A mail is sent at least once: who dies between sending and noting it sends it
//! again, and its code is good once all the same.

mod actor;
mod delivery;
mod round;

use std::sync::Arc;

use auth::keyring::KeyRing;
use kernel::Clock;
use store::Store;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::runtime::{ActorKind, Guardian, Handle};
use actor::{MailBlueprint, Wake};
pub use delivery::{Delivery, DeliveryError};
use round::Rounds;

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
pub struct MailQueue(Handle<Wake>);

impl MailQueue {
    pub(crate) fn start(
        guardian: &Guardian,
        settings: Settings,
        store: Store,
        instance: Uuid,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let rounds = Arc::new(Rounds { settings, store, instance, clock });
        let wake = Arc::new(Notify::new());
        Self(guardian.supervise(ActorKind::Mail, MailBlueprint { rounds, wake }))
    }

    /// A mail was committed. When nobody hears of it, it is found a little later.
    pub fn committed(&self) {
        let _ = self.0.tell(Wake);
    }
}
