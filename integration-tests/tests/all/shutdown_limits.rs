//! A shutdown is announced, and limited by a second signal or by the watchdog.

use std::time::Duration;

use client::Client;
use integration_tests::{Cable, JSON, Raw, TestService, WorkflowBuilder, chat, graphs, until};
use store::testing::TestDatabase;

use crate::crash::service::{Service, suspend_postmaster};

/// The watchdog ends a shutdown after 25 s; the rest is for a busy machine.
const ENDED: Duration = Duration::from_secs(40);

async fn ready(service: &Service) -> Client {
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    until("the service to be ready", async || {
        client.send("GET", "/readyz", &[], "").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    client
}

#[tokio::test]
async fn requests_are_served_during_the_notice() {
    let mut t = TestService::builder().alone().manual_clock().set("SERVICE_DRAIN_NOTICE", "30").start().await;
    let workflow = t.workflow().echo().published().create().await;
    t.assert_healthy().await;
    let address = t.address();
    let stopping = t.begin_stop();
    let mut report = String::new();
    until("readiness to end", async || {
        let answer = t.get("/readyz").await;
        report = answer.text();
        answer.status == 503
    })
    .await;
    assert!(report.contains(r#""lifecycle":{"ready":false,"reason":"draining"}"#), "{report}");
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.status, 200, "a turn starts and ends");
    t.advance(Duration::from_secs(29));
    assert_eq!(t.get("/healthz").await.status, 200);
    t.advance(Duration::from_secs(1));
    until("the listener to close", async || tokio::net::TcpStream::connect(address).await.is_err()).await;
    t.while_time_passes(stopping.done()).await;
    assert_eq!(t.scalar("SELECT string_agg(status, ' ') FROM runs").await, "succeeded");
}

#[tokio::test]
async fn a_stalled_database_does_not_keep_the_process_alive() {
    let database = TestDatabase::create().await;
    let (dsn, address) = database.over_network().await;
    let cable = Cable::to(address).await;
    let dsn = dsn.replace(&address.to_string(), &cable.address().to_string());
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(&dsn));
    service.start();
    ready(&service).await;
    cable.stall();
    service.terminate();
    let ended = tokio::task::spawn_blocking(move || {
        service.ended(ENDED);
        service.logged()
    });
    let log = ended.await.unwrap();
    assert!(log.contains("stopping"), "{log}");
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    service.set("SERVICE_DRAIN_NOTICE", "60".to_owned());
    service.start();
    let client = ready(&service).await;
    service.terminate();
    until("readiness to end", async || {
        client.send("GET", "/readyz", &[], "").await.is_ok_and(|answer| answer.status == 503)
    })
    .await;
    service.terminate();
    let (status, log) =
        tokio::task::spawn_blocking(move || (service.ended(ENDED), service.logged())).await.unwrap();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("a second signal"), "{log}");
}

#[tokio::test]
async fn the_watchdog_ends_a_stuck_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), None);
    service.start();
    let client = ready(&service).await;
    // The turn has 16 s to end, and then the database 15 s.
    let graph = graphs::words("one two three four", 10_000);
    let workflow = WorkflowBuilder::new(client).graph(graph).published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let raw = Raw::connect(service.address().parse().unwrap()).await;
    let mut answer = raw.request("POST", "/api/chat", &[JSON], body).await;
    answer.until("one").await;
    suspend_postmaster(service.data_dir());
    service.terminate();
    let (status, log) =
        tokio::task::spawn_blocking(move || (service.ended(ENDED), service.logged())).await.unwrap();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("the stop took too long"), "{log}");
}
