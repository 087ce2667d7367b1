//! The outbox: requests that a step has left with its row, sent by one actor of each instance.
//!
//! A request is sent at least once: who dies between sending and noting it sends it again, under the same
//! `Idempotency-Key`. Its secrets are read for each attempt.

mod actor;
mod round;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::run::RunPorts;
use crate::runtime::{ActorKind, Guardian};
use actor::OutboxBlueprint;
use round::Rounds;

/// Starts the actor. Nobody wakes it: what is committed is found within a second.
pub(crate) fn start(guardian: &Guardian, ports: &RunPorts) {
    let rounds = Rounds {
        store: ports.store.clone(),
        vault: ports.vault.clone(),
        outbound: ports.outbound.clone(),
        instance: ports.writer,
        clock: Arc::clone(&ports.clock),
    };
    let wake = Arc::new(Notify::new());
    let _ = guardian.supervise(ActorKind::Outbox, OutboxBlueprint { rounds: Arc::new(rounds), wake });
}
