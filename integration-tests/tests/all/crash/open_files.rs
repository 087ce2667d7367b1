//! The service at its open-file limit.

use std::net::SocketAddr;

use client::Client;
use integration_tests::{AnswerExt, JSON, Raw, RawAnswer, until};
use store::testing::TestDatabase;

use super::folder;
use super::service::Service;
use crate::websocket::HANDSHAKE;

/// More than the connections that are served with 256 files.
const MANY: usize = 200;

async fn get(address: SocketAddr, path: &str) -> RawAnswer {
    Raw::connect(address).await.request("GET", path, &[], "").await
}

#[tokio::test]
async fn only_health_checks_are_answered_at_the_open_file_limit() {
    let database = TestDatabase::create().await;
    let folder = folder("open_files");
    let mut service = Service::new(&folder, Some(database.dsn()));
    service.limit_open_files(256);
    service.start();
    let address: SocketAddr = service.address().parse().unwrap();
    let health = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    until("the service to be ready", async || health.ready().await.is_ok_and(|answer| answer.status == 200))
        .await;
    drop(health);
    let made =
        Raw::connect(address).await.request("POST", "/api/workflows", &[JSON], r#"{"name": "w"}"#).await;
    let workflow = made.whole().await.value()["id"].as_str().unwrap().to_owned();
    let path = format!("/ws/workflow/{workflow}");
    let mut open = Vec::new();
    let refused = loop {
        let answer = Raw::connect(address).await.request("GET", &path, &HANDSHAKE, "").await;
        if answer.status != 101 {
            break answer;
        }
        open.push(answer);
        assert!(open.len() < MANY, "no connection is refused");
    };
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(refused.whole().await.refusal(), "503 service.overloaded");
    for path in ["/healthz", "/readyz", "/api/system/health"] {
        assert_eq!(get(address, path).await.status, 200, "{path}");
    }
    assert!(service.logged().contains("open files"), "{}", service.logged());
    drop(open);
    until("capacity for requests", async || get(address, "/api/workflows").await.status == 200).await;
    service.stop();
}
