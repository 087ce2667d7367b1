//! A database that keeps its connections open but does not respond.

use std::time::Duration;

use integration_tests::{AnswerExt, Cable, JSON, TestService, graphs, until, within};
use kernel::{Clock, SystemClock};

/// A request's statement has 10 s, and a new connection 5 s; the rest is for a busy machine.
const ANSWERED: Duration = Duration::from_secs(30);

/// `/readyz` responds within 2 s; the rest is for the request itself.
const PROBED: Duration = Duration::from_millis(2_500);

/// A service whose connections to the database pass through a cable.
async fn service() -> (TestService, Cable) {
    let mut t = TestService::builder().alone().start().await;
    let (database, dsn) = t.database_over_network().await;
    let cable = Cable::to(database).await;
    t.set("SERVICE_POSTGRES_DSN", &dsn(cable.address()));
    t.restart().await;
    (t, cable)
}

#[tokio::test]
async fn requests_are_answered_in_time_while_the_database_stalls() {
    let (t, cable) = service().await;
    let workflow = t.workflow().graph(graphs::words("done", 0)).create().await;
    let path = workflow.path("/runs");
    let start =
        async |key: &str| t.send("POST", &path, &[JSON, ("idempotency-key", key)], r#"{"inputs":{}}"#).await;
    assert_eq!(start("before").await.status, 202);
    cable.stall();
    let clock = SystemClock::new();
    let requests = async {
        // More than there are database connections.
        let starts = futures_util::future::join_all((0..8).map(|n| {
            let (start, clock) = (&start, &clock);
            async move {
                let begun = clock.monotonic();
                let answer = start(&format!("key-{n}")).await;
                (answer.refusal(), clock.monotonic() - begun)
            }
        }));
        let probes = async {
            let mut slowest = Duration::ZERO;
            for _ in 0..10 {
                let begun = clock.monotonic();
                let answer = t.get("/readyz").await.expect(503);
                assert!(answer.text().contains("the database does not respond"), "{}", answer.text());
                slowest = slowest.max(clock.monotonic() - begun);
            }
            slowest
        };
        tokio::join!(starts, probes)
    };
    let (starts, slowest) = within("answers", requests).await;
    for (refusal, took) in starts {
        assert_eq!(refusal, "503 service.database_unavailable");
        assert!(took < ANSWERED, "answered after {took:?}");
    }
    assert!(slowest < PROBED, "/readyz took {slowest:?}");
    cable.resume();
    until("readiness to come back", async || t.get("/readyz").await.status == 200).await;
    until("a start to be accepted", async || start("key-0").await.status == 202).await;
    let again = start("key-0").await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (202, Some("true")));
    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    t.until_scalar("every run to end", unfinished, "0").await;
}
