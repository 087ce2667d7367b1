//! Waiting in real time: for the database, the network and other threads, which no clock in hand moves.

use std::future::Future;
use std::time::Duration;

use kernel::{Clock, SystemClock};

/// Longest time that anything in a test may take: many times what it takes, since machines have neighbours.
pub(crate) const LONGEST: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);

/// Does nothing for a while.
pub async fn pause(millis: u64) {
    SystemClock::new().sleep(Duration::from_millis(millis)).await;
}

/// The future's value.
///
/// # Panics
/// When it takes too long; `what` says what was waited for.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let value = kernel::timeout(&SystemClock::new(), LONGEST, future).await;
    value.unwrap_or_else(|| panic!("waited too long: {what}"))
}

/// Looks again and again until `holds`.
///
/// # Panics
/// When it takes too long; `what` says what was waited for.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let clock = SystemClock::new();
    let looking = async {
        while !holds().await {
            clock.sleep(POLL).await;
        }
    };
    within(what, looking).await;
}
