//! Responses that exceed a limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use net::{Limits, NetError, NetErrorKind, Rate};

use crate::support::{Server, Step, client_of, get, ok, pause};

const HEAD: &str = "HTTP/1.1 200 OK\r\n\r\n";

fn small() -> Limits {
    Limits { body_bytes: 1 << 20, ..Limits::default() }
}

/// Limits with a short idle timeout.
fn short() -> Limits {
    Limits { idle: Duration::from_millis(300), ..small() }
}

async fn server(steps: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> Server {
    Server::on("127.0.0.1", 0, Arc::new(move |_| steps())).await
}

async fn body(server: &Server, limits: &Limits) -> Result<usize, NetError> {
    let answer = get(&client_of(server), &server.url("a.test"), limits).await?;
    answer.bytes().await.map(|body| body.len())
}

async fn fails(server: &Server, limits: &Limits) -> (NetErrorKind, Duration) {
    let began = now();
    let error = body(server, limits).await.unwrap_err();
    assert!(!error.message.contains("secret"), "{error}");
    (error.kind, began.elapsed())
}

#[expect(clippy::disallowed_methods, reason = "a test of real time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn an_endless_body_ends_at_its_limit() {
    let server =
        server(|| vec![Step::Send(HEAD.into()), Step::Forever(vec![b'x'; 1 << 16], Duration::ZERO)]).await;
    let (kind, took) = fails(&server, &small()).await;
    assert_eq!(kind, NetErrorKind::TooLarge);
    assert!(took < Duration::from_secs(30));
    pause(Duration::from_millis(50)).await;
    assert!(*server.sent.lock() < 16 << 20, "the connection was ended, not read on");
}

#[tokio::test]
async fn a_body_with_an_excessive_length_is_not_read() {
    let server = server(|| {
        vec![
            Step::Send("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n".into()),
            Step::Forever(vec![b'x'; 1 << 16], Duration::ZERO),
        ]
    })
    .await;
    assert_eq!(fails(&server, &small()).await.0, NetErrorKind::TooLarge);
    assert!(*server.sent.lock() < 16 << 20);
}

#[tokio::test]
async fn a_body_at_its_limit_is_complete() {
    let server = Server::answering(ok(&"x".repeat(1 << 20))).await;
    assert_eq!(body(&server, &small()).await, Ok(1 << 20));
    let server = Server::answering(ok(&"x".repeat((1 << 20) + 1))).await;
    assert_eq!(fails(&server, &small()).await.0, NetErrorKind::TooLarge);
}

#[tokio::test]
async fn a_stalled_body_times_out() {
    let server =
        server(|| vec![Step::Send(HEAD.into()), Step::Send("x".into()), Step::Wait(Duration::from_secs(60))])
            .await;
    let (kind, took) = fails(&server, &short()).await;
    assert_eq!(kind, NetErrorKind::TimedOut);
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test]
async fn a_slow_body_fails_by_its_rate_and_by_its_deadline() {
    let drip = || vec![Step::Send(HEAD.into()), Step::Forever(b"x".to_vec(), Duration::from_millis(20))];
    let rate = Rate { bytes_per_second: 1000, grace: Duration::from_millis(500) };
    let by_rate = Limits { rate: Some(rate), ..short() };
    let by_time = Limits { rate: None, total: Some(Duration::from_secs(1)), ..short() };
    for limits in [by_rate, by_time] {
        let (kind, took) = fails(&server(drip).await, &limits).await;
        assert_eq!(kind, NetErrorKind::TimedOut);
        assert!((Duration::from_millis(400)..Duration::from_secs(30)).contains(&took), "{took:?}");
    }
}

#[tokio::test]
async fn a_large_or_late_head_fails() {
    let large = Server::answering(format!(
        "HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n",
        "x".repeat(70_000)
    ))
    .await;
    assert_eq!(fails(&large, &small()).await.0, NetErrorKind::TooLarge);
    let endless = server(|| {
        vec![Step::Send("HTTP/1.1 200 OK\r\nX: ".into()), Step::Forever(vec![b'x'; 1 << 16], Duration::ZERO)]
    })
    .await;
    assert_eq!(fails(&endless, &small()).await.0, NetErrorKind::Broken);
    assert!(*endless.sent.lock() < 16 << 20);
    let many = Server::answering(format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(101))).await;
    assert_eq!(fails(&many, &small()).await.0, NetErrorKind::Broken);
    let late = server(|| vec![Step::Wait(Duration::from_secs(60))]).await;
    let (kind, took) = fails(&late, &Limits { head: Duration::from_millis(300), ..short() }).await;
    assert_eq!(kind, NetErrorKind::TimedOut);
    assert!(took < Duration::from_secs(30));
}

#[tokio::test]
async fn nothing_is_decompressed() {
    // A gzip member's header; the rest does not matter because nothing parses it.
    let bomb = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0; 1000]].concat();
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1010\r\n\r\n".to_vec();
    answer.extend_from_slice(&bomb);
    let server = Server::answering(answer).await;
    let answer = get(&client_of(&server), &server.url("a.test"), &short()).await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.bytes().await.unwrap(), bomb);
}

#[tokio::test]
async fn a_broken_connection_differs_from_a_complete_body() {
    // The server announces ten bytes, sends one and closes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx";
        tokio::io::AsyncWriteExt::write_all(&mut stream, head).await.unwrap();
    });
    let broken = Server { at, seen: Arc::default(), sent: Arc::default() };
    assert_eq!(fails(&broken, &short()).await.0, NetErrorKind::Broken);
    let closed = Server { at, seen: Arc::default(), sent: Arc::default() };
    assert_eq!(fails(&closed, &short()).await.0, NetErrorKind::Unreachable);
}

#[tokio::test]
async fn an_excerpt_reads_no_more_than_needed() {
    let server =
        server(|| vec![Step::Send(HEAD.into()), Step::Forever(vec![b'x'; 1 << 16], Duration::ZERO)]).await;
    let answer = get(&client_of(&server), &server.url("a.test"), &short()).await.unwrap();
    assert_eq!(answer.excerpt(10).await, "xxxxxxxxxx");
}
