//! Shared test support.

pub(crate) mod house;
pub(crate) mod lanes;
pub(crate) mod probe;

use std::future::Future;
use std::time::Duration;

use kernel::{Clock, SystemClock};
use store::testing::TestDatabase;

/// Maximum time for any step: many times the usual one, because machines are shared.
pub(crate) const LONGEST: Duration = Duration::from_mins(1);

/// Runs a test inside an actix system whose runtime has two threads.
pub(crate) fn system<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    actix_rt::System::with_tokio_rt(runtime).block_on(test)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn pause(duration: Duration) {
    SystemClock::new().sleep(duration).await;
}

/// Queries the database until the condition holds, at most [`LONGEST`].
pub(crate) async fn until_sql(event: &str, database: &TestDatabase, sql: &str) {
    let clock = SystemClock::new();
    while clock.monotonic() < LONGEST {
        if database.scalar(sql).await == "true" {
            return;
        }
        pause(millis(10)).await;
    }
    panic!("timed out waiting for: {event}");
}

/// Opens a separate database session.
pub(crate) async fn session(dsn: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(dsn, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Polls until the condition holds, at most [`LONGEST`].
pub(crate) async fn until(event: &str, mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while clock.monotonic() < LONGEST {
        if holds() {
            return;
        }
        pause(millis(2)).await;
    }
    panic!("timed out waiting for: {event}");
}
