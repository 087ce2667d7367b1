//! The table of actor kinds, with their restart policies and bounds.

use std::time::Duration;

use kernel::backoff;

/// The actor kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// Orders a chat thread's turns.
    Thread,
    /// Executes a workflow run.
    Run,
    /// Executes an app run.
    AppRun,
    /// Renews the lease and takes over dead instances' runs.
    Lease,
    /// Creates partitions ahead and deletes expired data.
    Maintenance,
    /// Claims runs from the queue.
    Queue,
    /// Ends expired questions.
    Questions,
    /// Continues visitor data erasures.
    Erasures,
    /// Sends queued mails.
    Mail,
    /// Sends queued outbox requests.
    Outbox,
    /// Starts runs of cron triggers.
    Triggers,
    /// Measures workspace storage.
    Usage,
    /// Compresses app files.
    Encodings,
    /// Starts gate evaluations.
    Gates,
    /// Evaluates canaries.
    Canaries,
    /// Erases model replies that are not kept.
    Replies,
    /// Polls events in streams that other instances write.
    Streams,
}

/// The action when an actor has used up its restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// Its entity fails, and the clients are notified.
    FailEntity,
    /// The service becomes not ready and the process ends: it cannot work without this actor.
    Escalate,
}

/// Restart policy and bounds of an actor kind.
#[derive(Debug, Clone, Copy)]
pub struct RestartPolicy {
    /// First pause before a restart; doubles with each further one.
    pub backoff: Duration,
    /// Maximum pause.
    pub backoff_max: Duration,
    /// Restarts allowed within `window`.
    pub restarts: usize,
    /// See `restarts`.
    pub window: Duration,
    /// The action after the last restart.
    pub exhausted: Exhausted,
    /// Maximum waiting messages; further ones are refused.
    pub mailbox: usize,
    /// Maximum time without handling a waiting message.
    pub stuck_after: Duration,
}

const BASE: RestartPolicy = RestartPolicy {
    backoff: Duration::from_millis(100),
    backoff_max: Duration::from_secs(30),
    restarts: 5,
    window: Duration::from_secs(60),
    exhausted: Exhausted::FailEntity,
    mailbox: 64,
    stuck_after: Duration::from_secs(30),
};

impl ActorKind {
    /// The row for this kind.
    #[must_use]
    pub const fn policy(self) -> RestartPolicy {
        match self {
            Self::Thread => BASE,
            Self::Run | Self::AppRun | Self::Usage | Self::Encodings => RestartPolicy { mailbox: 8, ..BASE },
            Self::Lease
            | Self::Maintenance
            | Self::Queue
            | Self::Questions
            | Self::Erasures
            | Self::Mail
            | Self::Outbox
            | Self::Triggers
            | Self::Gates
            | Self::Canaries
            | Self::Replies
            | Self::Streams => RestartPolicy { exhausted: Exhausted::Escalate, mailbox: 8, ..BASE },
        }
    }

    /// Name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Run => "run",
            Self::AppRun => "app run",
            Self::Lease => "lease",
            Self::Maintenance => "maintenance",
            Self::Queue => "queue",
            Self::Questions => "questions",
            Self::Erasures => "erasures",
            Self::Mail => "mail",
            Self::Outbox => "outbox",
            Self::Triggers => "triggers",
            Self::Usage => "usage",
            Self::Encodings => "encodings",
            Self::Gates => "gates",
            Self::Canaries => "canaries",
            Self::Replies => "replies",
            Self::Streams => "streams",
        }
    }
}

impl RestartPolicy {
    /// The pause before restart `n` (from 0), before jitter.
    #[must_use]
    pub fn pause(&self, n: usize) -> Duration {
        let failures = u32::try_from(n.saturating_add(1)).unwrap_or(u32::MAX);
        backoff(self.backoff, failures, self.backoff_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let policy = ActorKind::Thread.policy();
        let millis: Vec<u128> = (0..12).map(|n| policy.pause(n).as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000]);
        assert_eq!(policy.pause(usize::MAX), policy.backoff_max);
    }
}
