//! The outbox: requests and mails stored with a step's row, sent by one actor per instance.
//!
//! A request is sent at least once: after a crash between sending and recording, it is sent again under the same
//! `Idempotency-Key`. Its secrets are read for each attempt.

mod mail;
mod queue;

use std::sync::Arc;

use crate::delivery::Sender;
use crate::delivery::mail::Delivery;
use crate::run::RunPorts;
use crate::runtime::{ActorKind, Guardian};
use queue::Requests;

/// Starts the actor.
pub(crate) fn start(guardian: &Guardian, ports: &RunPorts, mail: Delivery) {
    let requests = Requests {
        store: ports.store.clone(),
        reads: ports.reads.clone(),
        vault: ports.vault.clone(),
        outbound: ports.outbound.clone(),
        mail,
        instance: ports.writer,
        clock: Arc::clone(&ports.clock),
    };
    Sender::start(guardian, ActorKind::Outbox, requests);
}
