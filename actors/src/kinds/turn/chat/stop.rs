//! Stops turns.

use futures_util::future::try_join_all;
use kernel::ThreadId;
use store::{RunState, StoreError, StoredStream, TurnsToStop, UnfinishedTurn};
use wire::StopStatus;

use super::Chat;
use crate::run::cancel::{LIMIT, until_ended};

impl Chat {
    /// Stores a request to stop a stream's turn, and waits briefly for its end.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn stop(&self, stream: &StoredStream) -> Result<StopStatus, StoreError> {
        let run = self.cancel.cancel(stream.run_id).await?;
        Ok(run.map_or(StopStatus::Completed, |run| stop_status(run.status)))
    }

    /// Stores requests to stop turns in a thread, and waits briefly for their ends.
    pub(super) async fn stop_turns(&self, thread: ThreadId, which: TurnsToStop) -> Result<(), StoreError> {
        let all = async {
            loop {
                // Again after their ends: another turn may have been stored meanwhile.
                let turns = self.ports.store.request_cancel_of_thread(thread, which).await?;
                if turns.is_empty() {
                    return Ok(());
                }
                self.notify_stops(thread, &turns);
                let ended = turns.iter().map(|turn| {
                    until_ended(&self.ports, turn.stream, || self.threads.notify_stop(thread, turn.run))
                });
                try_join_all(ended).await?;
            }
        };
        kernel::timeout(&*self.ports.clock, LIMIT, all).await.unwrap_or(Ok(()))
    }

    /// Notifies a thread that stops were requested. The latest turn comes first, so no waiting turn starts when the
    /// running one ends.
    pub(super) fn notify_stops(&self, thread: ThreadId, turns: &[UnfinishedTurn]) {
        turns.iter().for_each(|turn| self.threads.notify_stop(thread, turn.run));
        // Parked turns have no actor; the queue ends them.
        self.ports.wakeups.queue();
    }
}

fn stop_status(status: RunState) -> StopStatus {
    match status {
        RunState::Cancelled => StopStatus::Stopped,
        RunState::Failed => StopStatus::Failed,
        RunState::Succeeded => StopStatus::Completed,
        RunState::Queued | RunState::Running | RunState::Waiting => StopStatus::Stopping,
    }
}
