//! Cancels a run of any kind.

use std::time::Duration;

use store::{StoreError, StoredRun};
use uuid::Uuid;

use super::RunPorts;
use super::kind::Kinds;
use crate::streams::Readout;

/// Maximum wait for the run's end before a stop request returns.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);
/// Interval at which the actor is notified during that wait.
const RESEND_INTERVAL: Duration = Duration::from_millis(100);

/// Stops runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cancel {
    pub(crate) ports: RunPorts,
    pub(crate) kinds: Kinds,
}

impl Cancel {
    /// Stores a request to stop the run and waits briefly for its end. Returns the run as it is then, or `None` if it
    /// does not exist.
    pub(crate) async fn cancel(&self, run: Uuid) -> Result<Option<StoredRun>, StoreError> {
        match self.request(run).await? {
            Some(stored) if !stored.status.is_terminal() => self.await_end(stored).await,
            other => Ok(other),
        }
    }

    /// Stores a request to stop the run. The run's owner polls for such requests.
    pub(crate) async fn request(&self, run: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let stored = self.ports.store.request_cancel(run).await?;
        if stored.as_ref().is_some_and(|stored| !stored.status.is_terminal()) {
            self.ports.wakeups.queue();
        }
        Ok(stored)
    }

    /// Waits briefly for the end of a run whose stop was requested. Notifies its actor at once if this instance owns
    /// it.
    pub(crate) async fn await_end(&self, requested: StoredRun) -> Result<Option<StoredRun>, StoreError> {
        let run = requested.id;
        if let Some(stream) = requested.stream_id {
            let kind = self.kinds.for_trigger(&requested.trigger);
            let notify = || kind.iter().for_each(|kind| kind.stop(run, requested.thread_id));
            let ended = until_ended(&self.ports, stream, notify);
            kernel::timeout(&*self.ports.clock, LIMIT, ended).await.transpose()?;
        }
        self.ports.store.run(run).await
    }
}

/// Notifies a run's actor until the run's stream has ended. Repeats because a run is stored shortly before its actor
/// exists.
pub(crate) async fn until_ended(ports: &RunPorts, stream: Uuid, notify: impl Fn()) -> Result<(), StoreError> {
    // Starts after every event, so it reads only the end.
    let mut reader = ports.read(stream, u64::MAX - 1, false);
    let ended = async {
        while reader.next().await? != Readout::End {}
        Ok(())
    };
    // Keeps polling the same reader: only a long-lived reader sees another instance's writes.
    let mut ended = Box::pin(ended);
    loop {
        notify();
        if let Some(ended) = kernel::timeout(&*ports.clock, RESEND_INTERVAL, &mut ended).await {
            return ended;
        }
    }
}
