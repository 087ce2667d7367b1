//! One request on a new connection, for clients whose server may be killed.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::server::pause;

/// The timeout for a complete response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A request: method, host, path, headers and body.
#[derive(Clone, Copy)]
pub(in super::super) struct Request<'a> {
    pub(in super::super) method: &'a str,
    pub(in super::super) host: &'a str,
    pub(in super::super) path: &'a str,
    /// Additional header lines, each with its line ending.
    pub(in super::super) headers: &'a str,
    pub(in super::super) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// A GET request for a path.
    pub(in super::super) const fn get(host: &'a str, path: &'a str) -> Self {
        Self { method: "GET", host, path, headers: "", body: b"" }
    }
}

/// A complete response.
pub(in super::super) struct Answer {
    pub(in super::super) status: u16,
    head: String,
    pub(in super::super) body: Vec<u8>,
}

/// The reason why a request has no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Broken {
    /// The connection was refused, or closed before the response was complete.
    Connection,
    /// The server did not respond within the timeout.
    Late,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "the connection broke",
            Self::Late => "no answer in time",
        })
    }
}

impl std::error::Error for Broken {}

impl Answer {
    /// Returns a header's value; `name` is in lower case.
    pub(in super::super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find_map(|(found, value)| found.eq_ignore_ascii_case(name).then(|| value.trim()))
    }
}

/// Sends a request and reads the complete response.
///
/// # Errors
/// [`Broken`] without a complete response.
pub(in super::super) async fn ask(address: &str, request: Request<'_>) -> Result<Answer, Broken> {
    tokio::select! {
        answer = exchange(address, request) => answer.map_err(|_| Broken::Connection),
        () = pause(ANSWER_TIMEOUT) => Err(Broken::Late),
    }
}

async fn exchange(address: &str, request: Request<'_>) -> Result<Answer> {
    let Request { method, host, path, headers, body } = request;
    let mut stream = TcpStream::connect(address).await?;
    let length = if method == "GET" { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}{length}\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    parsed(&bytes)
}

fn parsed(bytes: &[u8]) -> Result<Answer> {
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
    let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
    let status = head.get(9..12).unwrap_or_default().parse()?;
    let answer = Answer { status, head, body };
    let length = answer.header("content-length").map(str::parse).transpose()?;
    ensure!(length == Some(answer.body.len()), "the answer ends early");
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_counts_only_if_it_is_complete() {
        let answer = parsed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"a\"\r\n\r\nhi").unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hi".as_slice()));
        assert_eq!((answer.header("etag"), answer.header("vary")), (Some("\"a\""), None));
        for broken in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", "x"] {
            assert!(parsed(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
