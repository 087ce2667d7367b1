//! Waits in real time: for the database, the network and other threads, which a manual clock does not move.

use std::future::Future;
use std::time::Duration;

use kernel::{Clock, SystemClock};

/// The timeout for any test operation: many times the expected duration, because machines are shared.
pub(crate) const LONGEST: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);

/// Sleeps for a while.
pub async fn pause(millis: u64) {
    SystemClock::new().sleep(Duration::from_millis(millis)).await;
}

/// Waits for the future's value.
///
/// # Panics
/// On a timeout; `what` names the awaited thing.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let value = kernel::timeout(&SystemClock::new(), LONGEST, future).await;
    value.unwrap_or_else(|| panic!("waited too long: {what}"))
}

/// Polls until `holds` returns true.
///
/// # Panics
/// On a timeout; `what` names the awaited thing.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let clock = SystemClock::new();
    let looking = async {
        while !holds().await {
            clock.sleep(POLL).await;
        }
    };
    within(what, looking).await;
}
