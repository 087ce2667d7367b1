//! Decides when a run that only waits is parked.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use engine::{Activity, AskingStep, Idle};
use kernel::Clock;

/// Minimum idle time.
const SETTLED: Duration = Duration::from_millis(20);
/// Shorter waits do not park the run.
const SHORT: TimeDelta = TimeDelta::seconds(10);

/// Ends when a run that cannot be parked only waits: for a person, or past its deadline.
pub(crate) async fn waits_too_long(activity: &Activity, deadline: Option<DateTime<Utc>>, clock: &dyn Clock) {
    loop {
        let idle = activity.idle();
        let too_long = |until: DateTime<Utc>| deadline.is_some_and(|deadline| until >= deadline);
        let may_wait = |idle: &Idle| !idle.for_person && idle.until.is_some_and(|until| !too_long(until));
        if idle.as_ref().is_none_or(may_wait) {
            activity.changed().await;
            continue;
        }
        // A task that was just woken may not have been polled yet.
        clock.sleep(SETTLED).await;
        if activity.idle() == idle {
            return;
        }
    }
}

/// The events that an idle run waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// When the next one is due; questions in items have separate due times.
    pub(crate) due: Option<DateTime<Utc>>,
    /// Attempts that wait for answers to questions in items.
    pub(crate) asking: Vec<AskingStep>,
}

/// Ends when the run is parkable: it waits long or for a person.
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
        // A task that was just woken may not have been polled yet.
        clock.sleep(SETTLED).await;
        let asking = activity.asking();
        if activity.idle() == idle {
            return Waits { due, asking };
        }
    }
}
