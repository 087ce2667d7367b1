//! The parts of HTTP that a provider needs.

use std::collections::HashMap;
use std::future::pending;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::ReceivedRequest;

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
    let request = ReceivedRequest::read(stream, &mut Vec::new()).await?;
    let target = request.head.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = |text: &str| url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    Some(Request {
        path: path.to_owned(),
        query: pairs(query),
        form: pairs(&request.body),
        authorization: request.header("authorization").unwrap_or_default().to_owned(),
    })
}
