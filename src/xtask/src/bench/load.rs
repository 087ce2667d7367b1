//! The load: keep-alive connections that send one turn after another, with as little client work as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One turn's durations, from the request's first byte.
#[derive(Clone, Copy)]
pub(super) struct TurnTimes {
    /// Until the body's first byte: the turn's start is stored.
    pub(super) accepted: Duration,
    /// Until the reply's first piece.
    pub(super) first_piece: Duration,
    /// Until the stream's end.
    pub(super) done: Duration,
}

/// Runs `turns` turns over `connections` connections.
pub(super) async fn run(
    address: &str,
    request: &str,
    connections: usize,
    turns: usize,
) -> Result<(Vec<TurnTimes>, Duration)> {
    let left = Arc::new(AtomicUsize::new(turns));
    let began = now();
    let mut workers = Vec::new();
    for _ in 0..connections {
        let (left, address, request) = (Arc::clone(&left), address.to_owned(), request.to_owned());
        workers.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let mut taken = Vec::new();
            let mut buffer = Vec::with_capacity(64 * 1024);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                taken.push(turn(&mut stream, request.as_bytes(), &mut buffer).await?);
            }
            Ok::<_, anyhow::Error>(taken)
        }));
    }
    let mut all = Vec::with_capacity(turns);
    for worker in workers {
        all.extend(worker.await??);
    }
    Ok((all, began.elapsed()))
}

async fn turn(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) -> Result<TurnTimes> {
    buffer.clear();
    let began = now();
    stream.write_all(request).await?;
    let (mut accepted, mut first_piece) = (None, None);
    loop {
        let before = buffer.len();
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        if accepted.is_none() {
            ensure!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(buffer));
            accepted = find(buffer, b"thread.created").map(|_| began.elapsed());
        }
        if first_piece.is_none() {
            let fresh = buffer.get(before.saturating_sub(32)..).unwrap_or_default();
            first_piece = find(fresh, b"content_part_added").map(|_| began.elapsed());
        }
        if buffer.ends_with(b"\r\n0\r\n\r\n") {
            break;
        }
    }
    ensure!(find(buffer, b"assistant_message").is_some(), "no reply: {}", String::from_utf8_lossy(buffer));
    let done = began.elapsed();
    Ok(TurnTimes { accepted: accepted.unwrap_or(done), first_piece: first_piece.unwrap_or(done), done })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
fn now() -> Instant {
    Instant::now()
}
