//! The table of actor kinds: how each is restarted and bounded.

use std::time::Duration;

use kernel::backoff;

/// Every kind of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// Orders the turns of one chat thread.
    Thread,
    /// Runs one workflow run.
    Run,
    /// Runs one run of an app.
    AppRun,
    /// Renews the lease and takes over from the dead.
    Lease,
    /// Makes partitions ahead, forgets what is too old.
    Maintenance,
    /// Takes runs out of the queue.
    Queue,
    /// Ends questions that have expired.
    Questions,
    /// Continues erasures of visitors' data.
    Erasures,
    /// Sends what waits in the mail queue.
    Mail,
    /// Sends what waits in the outbox.
    Outbox,
    /// Begins the runs of cron triggers.
    Triggers,
    /// Measures what workspaces keep.
    Usage,
    /// Compresses files of apps.
    Encodings,
    /// Starts evaluations of gates.
    Gates,
    /// Judges canaries.
    Canaries,
    /// Erases replies of models that are not kept.
    Replies,
    /// Polls events of streams that other instances write.
    Streams,
}

/// What happens when an actor has used up its restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// What it stands for fails, and its clients are told.
    FailEntity,
    /// Readiness goes red and the process ends: without this actor the service is not sound.
    Escalate,
}

/// How a kind of actor is restarted and bounded.
#[derive(Debug, Clone, Copy)]
pub struct RestartPolicy {
    /// First pause before a restart; doubles with each.
    pub backoff: Duration,
    /// Longest pause.
    pub backoff_max: Duration,
    /// Restarts allowed within `window`.
    pub restarts: usize,
    /// See `restarts`.
    pub window: Duration,
    /// What comes after the last.
    pub exhausted: Exhausted,
    /// Messages that may be waiting; one more is refused.
    pub mailbox: usize,
    /// Longest time without taking a waiting message.
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
    /// The row of this kind.
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

    /// Its name in logs.
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
    fn pauses_double_up_to_the_longest() {
        let policy = ActorKind::Thread.policy();
        let millis: Vec<u128> = (0..12).map(|n| policy.pause(n).as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000]);
        assert_eq!(policy.pause(usize::MAX), policy.backoff_max);
    }
}
