//! Failing instances behind HAProxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::{AnswerExt, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::front::Engine;
use super::proxies::ProxiedService;

/// An instance that is ready, but closes the connection of every request other than readiness checks without a
/// response.
struct FailingInstance {
    gets: Arc<AtomicUsize>,
    posts: Arc<AtomicUsize>,
}

impl FailingInstance {
    async fn listen(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let dying = Self { gets: Arc::default(), posts: Arc::default() };
        let (gets, posts) = (Arc::clone(&dying.gets), Arc::clone(&dying.posts));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&gets), Arc::clone(&posts)));
            }
        });
        dying
    }
}

async fn serve(mut connection: TcpStream, gets: Arc<AtomicUsize>, posts: Arc<AtomicUsize>) {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match connection.read(&mut buffer).await {
            Ok(length) if length > 0 => head.extend_from_slice(&buffer[..length]),
            _ => return,
        }
    }
    if head.starts_with(b"GET /readyz") {
        let _ =
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    } else if head.starts_with(b"POST") {
        posts.fetch_add(1, Ordering::SeqCst);
    } else {
        gets.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn haproxy_retries_get_requests_only() {
    let setting = ProxiedService::start(Engine::Haproxy).await;
    let dying = FailingInstance::listen(setting.front.refusing).await;
    until("a GET to reach the dying instance", async || {
        assert_eq!(setting.get("/api/system/health").await.status, 200);
        dying.gets.load(Ordering::SeqCst) > 0
    })
    .await;
    let mut failed = 0;
    until("a POST to reach the dying instance", async || {
        let answer = setting.send(2, "POST", "/api/auth/logout", &[], "").await;
        failed += usize::from(answer.status == 502);
        assert!(matches!(answer.status, 204 | 502), "{}", answer.status);
        dying.posts.load(Ordering::SeqCst) > 0
    })
    .await;
    assert_eq!(dying.posts.load(Ordering::SeqCst), failed, "no POST was retried");
}

#[tokio::test]
async fn haproxy_responds_with_json_while_no_instance_is_ready() {
    let mut setting = ProxiedService::start(Engine::Haproxy).await;
    setting.t.stop().await;
    let answer = setting.get("/api/workflows").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.whole().await.refusal(), "503 unavailable");
}
