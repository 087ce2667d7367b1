//! When a run that only waits is given to the queue.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use engine::{Activity, AskingStep, Idle};
use kernel::Clock;

/// How long a run has to be idle.
const SETTLED: Duration = Duration::from_millis(20);
/// A wait that is shorter is waited for where the run is.
const SHORT: TimeDelta = TimeDelta::seconds(10);

/// Ends when a run that cannot be parked only waits: for a person, or beyond its deadline.
pub(crate) async fn waits_too_long(activity: &Activity, deadline: Option<DateTime<Utc>>, clock: &dyn Clock) {
    loop {
        let idle = activity.idle();
        let too_long = |until: DateTime<Utc>| deadline.is_some_and(|deadline| until >= deadline);
        let may_wait = |idle: &Idle| !idle.for_person && idle.until.is_some_and(|until| !too_long(until));
        if idle.as_ref().is_none_or(may_wait) {
            activity.changed().await;
            continue;
        }
        // What has just been woken may not have had its turn.
        clock.sleep(SETTLED).await;
        if activity.idle() == idle {
            return;
        }
    }
}

/// What a run waits for of which nothing is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// When something is due; the questions of items have their own times.
    pub(crate) due: Option<DateTime<Utc>>,
    /// The attempts that wait for answers to questions of items.
    pub(crate) asking: Vec<AskingStep>,
}

/// Ends when the run is parkable, because it waits long or for a person.
pub(crate) async fn only_waits(
    activity: &Activity,
    deadline: Option<DateTime<Utc>>,
    clock: &dyn Clock,
) -> Waits {
    loop {
        let idle = activity.idle();
        let due = idle.map(|idle| idle.until.into_iter().chain(deadline).min());
        let Some(due) = due.filter(|due| due.is_none_or(|due| due - clock.now() > SHORT)) else {
            activity.changed().await;
            continue;
        };
        // What has just been woken may not have had its turn.
        clock.sleep(SETTLED).await;
        let asking = activity.asking();
        if activity.idle() == idle {
            return Waits { due, asking };
        }
    }
}
