//! A token in a URL is never revealed.

use std::net::SocketAddr;

use integration_tests::{JSON, Raw, Socket, until};
use serde_json::json;
use store::testing::TestDatabase;

use super::HANDSHAKE;
use crate::crash::service::Service;

const HEADER: &str = "canary-header-7f3c1d9ab2e84506";
const TOKEN: &str = "canary-token-52b8e07c6f1a4d93";
const ACCESS: &str = "canary-access-d4915fe8a36b72c0";
const OFFERED: &str = "canary-offered-0e6a9c3b8d27f514";

/// Searches everything that the service writes at `trace`, in addition to the sockets' data.
#[tokio::test]
async fn tokens_from_all_four_sources_reach_no_log_and_no_response() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let good = "canary-good-token-b7d20f4e91a6c835";
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    for (name, value) in [
        ("SERVICE_LOG", "trace"),
        ("SERVICE_AUTH_MODE", "required"),
        ("SERVICE_AUTH_RATE_LIMIT_IP", "12"),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", good),
    ] {
        service.set(name, value.to_owned());
    }
    service.start();
    let address: SocketAddr = service.address().parse().unwrap();
    until("the service to be ready", async || {
        let Ok(stream) = tokio::net::TcpStream::connect(address).await else { return false };
        drop(stream);
        Raw::connect(address).await.request("GET", "/readyz", &[("connection", "close")], "").await.status
            == 200
    })
    .await;
    let body = json!({"name": "Desk"}).to_string();
    let bearer = format!("Bearer {good}");
    let headers = [("authorization", bearer.as_str()), JSON, ("connection", "close")];
    let made =
        Raw::connect(address).await.request("POST", "/api/workflows", &headers, body).await.whole().await;
    assert_eq!(made.status, 201, "{}", made.text());
    let path = "/ws/workflow/desk";
    for (path, protocol) in [
        (format!("{path}?token={good}"), None),
        (format!("{path}?access_token={good}"), None),
        (path.to_owned(), Some(format!("callboard, bearer.{good}"))),
    ] {
        let headers: Vec<(&str, &str)> =
            protocol.iter().map(|offered| ("sec-websocket-protocol", offered.as_str())).collect();
        let mut socket = Socket::open(address, &path, &headers).await;
        assert!(socket.settle().await.is_empty());
        socket.close().await;
    }
    let bearer = format!("Bearer {HEADER}");
    let offered = format!("bearer.{OFFERED}");
    let query = format!("?token={TOKEN}&access_token={ACCESS}");
    let one = format!("?token={TOKEN}");
    let mut answers = String::new();
    for number in 0..16 {
        // Upgraded or not, to a workflow or to nothing, broken or complete: until the failure limit is reached.
        let headers = match number % 4 {
            0 => [&HANDSHAKE[..], &[("authorization", bearer.as_str())]].concat(),
            1 => [&HANDSHAKE[..], &[("sec-websocket-protocol", offered.as_str())]].concat(),
            2 => HANDSHAKE.to_vec(),
            _ => vec![("authorization", bearer.as_str()), ("connection", "close")],
        };
        let path = match number % 5 {
            0 => format!("{path}{query}"),
            1 => format!("{path}{one}"),
            2 => format!("/ws/workflow/{query}"),
            3 => format!("/ws/workflow/%ff{one}"),
            _ => path.to_owned(),
        };
        let answer = Raw::connect(address).await.request("GET", &path, &headers, "").await.whole().await;
        assert!(answer.status >= 400, "{path} {}", answer.text());
        answers.push_str(&format!("{:?}{}", answer.headers, answer.text()));
    }
    let bad = format!("GET {path}{query} HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n");
    let mut broken = Raw::connect(address).await;
    broken.write(bad).await;
    answers.push_str(&String::from_utf8_lossy(&broken.rest().await));
    let log = service.logged();
    assert!(log.contains("TRACE") && log.contains("/ws/workflow/desk"), "the log has the level trace");
    for canary in [HEADER, TOKEN, ACCESS, OFFERED, good] {
        assert!(!answers.contains(canary), "a response contains {canary}");
        let line = log.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "the log contains {canary}");
    }
    service.stop();
}
