//! Stopping a run, whatever kind it is.

use std::time::Duration;

use store::{StoreError, StoredRun};
use uuid::Uuid;

use crate::publish::Readout;
use crate::run::RunPorts;
use crate::runs::Registry;
use crate::thread::Threads;

/// How long a stop waits for the run's end before it answers that it is on its way.
const LIMIT: Duration = Duration::from_secs(5);
/// How long it waits before it tells the actor once more.
const AGAIN: Duration = Duration::from_millis(100);

/// Stops runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cancel {
    pub(crate) ports: RunPorts,
    pub(crate) threads: Threads,
    pub(crate) runs: Registry,
}

impl Cancel {
    /// Stores that the run shall end, and waits for its end for a moment. Yields how it stands then; `None` when
    /// there is no such run.
    pub(crate) async fn cancel(&self, run: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let Some(stored) = self.ports.store.request_cancel(run).await? else { return Ok(None) };
        if stored.status.is_terminal() {
            return Ok(Some(stored));
        }
        if let Some(stream) = stored.stream_id {
            let ended = self.ended(&stored, stream);
            kernel::timeout(&*self.ports.clock, LIMIT, ended).await.transpose()?;
        }
        self.ports.store.run(run).await
    }

    /// Tells the actor until the stream has ended: a run is stored a moment before its actor knows of it.
    async fn ended(&self, run: &StoredRun, stream: Uuid) -> Result<(), StoreError> {
        // Behind every event: all it ever reads is the end.
        let mut reader = self.ports.read(stream, u64::MAX - 1, false);
        loop {
            match run.thread_id {
                Some(thread) => self.threads.stop(thread, run.id),
                None => self.runs.stop(run.id),
            }
            match kernel::timeout(&*self.ports.clock, AGAIN, reader.next()).await {
                Some(Ok(Readout::End)) => return Ok(()),
                Some(Ok(Readout::Frames(_))) | None => {}
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }
}
