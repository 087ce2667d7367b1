//! Starts gate evaluations, and settles those that have ended without a result.

use std::time::Duration;

use async_trait::async_trait;

use super::{Job, JobError};
use crate::kinds::training::Trainings;
use crate::run::SharedPorts;
use crate::runtime::ActorKind;

/// Interval of the polls for evaluations that another process has left.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The gate rounds.
pub(crate) struct GateRounds {
    trainings: Trainings,
}

impl GateRounds {
    pub(crate) fn new(trainings: Trainings) -> Self {
        Self { trainings }
    }
}

#[async_trait]
impl Job for GateRounds {
    const KIND: ActorKind = ActorKind::Gates;
    const PAUSE: Duration = Duration::from_millis(100);

    async fn round(&self) -> Result<(), JobError> {
        let SharedPorts { rollouts, clock, .. } = &*self.trainings.ports;
        if let Err(error) = self.trainings.advance_gates().await {
            tracing::warn!(%error, "failed to advance the gates of versions; retrying");
        }
        rollouts.wait_gates(&**clock, POLL_INTERVAL).await;
        Ok(())
    }
}
