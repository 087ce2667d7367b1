//! Connections that read streams with as little work as possible.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Connections per local address; each address has about 28,000 ports.
const EACH_ADDRESS: usize = 5_000;

/// An open stream; its head has been read.
pub(super) struct Open {
    pub(super) socket: TcpStream,
    /// The head's `X-Chat-Stream-Id`.
    pub(super) stream: String,
    /// Bytes read but not yet parsed.
    pub(super) unread: Vec<u8>,
}

/// Begins a turn.
pub(super) async fn begin(address: &str, workflow: &str, nth: usize) -> Result<Open> {
    let body = json!({
        "type": "threads.create", "workflow_id": workflow,
        "params": {"input": {"content": [{"type": "input_text", "text": "go"}], "attachments": [],
                             "inference_options": {}}}
    })
    .to_string();
    let head = format!("POST /api/chat HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    open(address, nth, None, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await
}

/// Reads an existing stream, optionally from after an event.
pub(super) async fn join(address: &str, path: &str, nth: usize, after: Option<&str>) -> Result<Open> {
    open(address, nth, None, &get(address, path, after)).await
}

/// Like [`join`], with a small window: unread data waits at the sender.
pub(super) async fn join_narrow(address: &str, path: &str) -> Result<Open> {
    open(address, 0, Some(4096), &get(address, path, None)).await
}

fn get(address: &str, path: &str, after: Option<&str>) -> String {
    let after = after.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{after}\r\n")
}

async fn open(address: &str, nth: usize, window: Option<u32>, request: &str) -> Result<Open> {
    let to: SocketAddr = address.parse()?;
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = window {
        socket.set_recv_buffer_size(bytes)?;
    }
    // 127.0.0.2, 127.0.0.3, …: one address may have too few ports.
    let from = u8::try_from(2 + nth / EACH_ADDRESS)?;
    socket.bind(SocketAddr::from(([127, 0, 0, from], 0)))?;
    let mut socket = socket.connect(to).await?;
    socket.set_nodelay(true)?;
    socket.write_all(request.as_bytes()).await?;
    let mut unread = Vec::with_capacity(if window.is_some() { 1 } else { 1024 });
    let end = loop {
        if let Some(end) = find(&unread, b"\r\n\r\n") {
            break end + 4;
        }
        ensure!(socket.read_buf(&mut unread).await? > 0, "closed without an answer");
    };
    let rest = unread.split_off(end);
    let head = String::from_utf8(unread)?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{head}{}", String::from_utf8_lossy(&rest));
    }
    let stream = head.lines().find_map(|line| line.strip_prefix("x-chat-stream-id: "));
    Ok(Open { socket, stream: stream.unwrap_or_default().to_owned(), unread: rest })
}

impl Open {
    /// Passes on the complete events' sequence numbers, and drops their bytes.
    pub(super) fn events(&mut self, mut seen: impl FnMut(u64)) {
        let mut done = 0;
        while let Some(rest) = self.unread.get(done..)
            && let Some(end) = find(rest, b"\n\n")
        {
            let event = rest.get(..end).unwrap_or_default();
            if let Some(seq) = sequence(event) {
                seen(seq);
            }
            done += end + 2;
        }
        self.unread.drain(..done);
    }

    /// Reads more bytes.
    pub(super) async fn more(&mut self) -> Result<()> {
        let read = self.socket.read_buf(&mut self.unread).await.context("a reader's connection")?;
        ensure!(read > 0, "the server closed a reader's connection");
        Ok(())
    }
}

/// The number after the dot of the line `id: <stream>.<number>`, which a chunk length may precede.
fn sequence(event: &[u8]) -> Option<u64> {
    let at = find(event, b"id: ")?;
    let line = event.get(at..)?.split(|byte| *byte == b'\n').next()?;
    let number = line.rsplit(|byte| *byte == b'.').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
