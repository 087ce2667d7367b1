//! The parts of HTTP that a provider needs.

use std::collections::HashMap;
use std::future::pending;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to the provider.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) query: HashMap<String, String>,
    pub(super) form: HashMap<String, String>,
    pub(super) authorization: String,
}

/// A response from the provider.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) location: Option<String>,
}

impl Answer {
    pub(super) fn new(status: u16, body: String) -> Self {
        Self { status, body, location: None }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, body.to_string())
    }
}

/// Serves one request per connection; without a response, the connection stays open.
pub(super) async fn serve(mut stream: TcpStream, answer: impl Fn(&Request) -> Option<Answer>) {
    let Some(request) = read(&mut stream).await else { return };
    let Some(Answer { status, body, location }) = answer(&request) else { return pending().await };
    let location = location.map(|to| format!("location: {to}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} .\r\ncontent-type: application/json\r\n{location}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
            let header = |wanted: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned())
            };
            let length = header("content-length").map_or(0, |length| length.parse().expect("a number"));
            if bytes.len() >= end + 4 + length {
                let target = head.split(' ').nth(1)?;
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                let pairs = |text: &[u8]| url::form_urlencoded::parse(text).into_owned().collect();
                return Some(Request {
                    path: path.to_owned(),
                    query: pairs(query.as_bytes()),
                    form: pairs(&bytes[end + 4..end + 4 + length]),
                    authorization: header("authorization").unwrap_or_default(),
                });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
