//! Cancels a run of any kind.

use std::time::Duration;

use futures_util::future::try_join_all;
use kernel::ThreadId;
use store::{StoreError, StoredRun, TurnsToStop, UnfinishedTurn};
use uuid::Uuid;

use crate::kinds::turn::thread::Threads;
use crate::kinds::workflow::Registry;
use crate::run::RunPorts;
use crate::run::recover::Recovery;
use crate::streams::Readout;

/// How long a stop waits for the run's end before it answers that it is on its way.
const LIMIT: Duration = Duration::from_secs(5);
/// How long it waits before it tells the actor once more.
const RESEND_INTERVAL: Duration = Duration::from_millis(100);

/// Stops runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cancel {
    pub(crate) ports: RunPorts,
    pub(crate) threads: Threads,
    pub(crate) runs: Registry,
}

impl Cancel {
    /// Hands runs to their actors.
    pub(crate) fn recovery(&self) -> Recovery {
        Recovery { threads: self.threads.clone(), runs: self.runs.clone() }
    }

    /// Stores that the run shall end, and waits for its end for a moment. Yields how it stands then; `None` when
    /// there is no such run.
    pub(crate) async fn cancel(&self, run: Uuid) -> Result<Option<StoredRun>, StoreError> {
        let Some(stored) = self.ports.store.request_cancel(run).await? else { return Ok(None) };
        if stored.status.is_terminal() {
            return Ok(Some(stored));
        }
        // The owner polls for it; if this instance owns it, it is notified at once.
        self.ports.wakeups.queue();
        if let Some(stream) = stored.stream_id {
            let ended = self.ended(stored.thread_id, run, stream);
            kernel::timeout(&*self.ports.clock, LIMIT, ended).await.transpose()?;
        }
        self.ports.store.run(run).await
    }

    /// Stores that turns of a thread shall end, and waits for their end for a moment.
    pub(crate) async fn cancel_thread(&self, thread: ThreadId, which: TurnsToStop) -> Result<(), StoreError> {
        let all = async {
            loop {
                // Once more behind them: one may have been stored meanwhile.
                let turns = self.ports.store.request_cancel_of_thread(thread, which).await?;
                if turns.is_empty() {
                    return Ok(());
                }
                self.tell(thread, &turns);
                try_join_all(turns.iter().map(|turn| self.ended(Some(thread), turn.run, turn.stream)))
                    .await?;
            }
        };
        kernel::timeout(&*self.ports.clock, LIMIT, all).await.unwrap_or(Ok(()))
    }

    /// Tells a thread that turns shall end. They come with the latest first: none of those that wait begins when the
    /// running one ends.
    pub(crate) fn tell(&self, thread: ThreadId, turns: &[UnfinishedTurn]) {
        turns.iter().for_each(|turn| self.threads.stop(thread, turn.run));
        // Parked turns have no actor; the queue ends them.
        self.ports.wakeups.queue();
    }

    /// Tells the actor until the stream has ended: a run is stored a moment before its actor knows of it.
    async fn ended(&self, thread: Option<ThreadId>, run: Uuid, stream: Uuid) -> Result<(), StoreError> {
        // Behind every event: all it ever reads is the end.
        let mut reader = self.ports.read(stream, u64::MAX - 1, false);
        let ended = async {
            while reader.next().await? != Readout::End {}
            Ok(())
        };
        // Polled on over all the telling: what another instance writes is found only by who is patient.
        let mut ended = Box::pin(ended);
        loop {
            match thread {
                Some(thread) => self.threads.stop(thread, run),
                None => self.runs.stop(run),
            }
            if let Some(ended) = kernel::timeout(&*self.ports.clock, RESEND_INTERVAL, &mut ended).await {
                return ended;
            }
        }
    }
}
