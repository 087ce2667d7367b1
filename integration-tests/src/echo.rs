//! A server for graphs to call; it repeats the request in every form that servers use.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::{ReceivedRequest, TcpServer};

/// Responds with 200 and everything that it received, or with a prepared page; with 422 below `/fail`, and with 503 to
/// the first request below `/once`.
pub struct Echo {
    server: TcpServer,
    requests: Arc<Mutex<Vec<String>>>,
    /// Request prefixes with their responses.
    pages: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Echo {
    /// Starts listening.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start() -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let pages: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (kept, answers) = (Arc::clone(&requests), Arc::clone(&pages));
        let serve = move |stream| answer(stream, Arc::clone(&kept), Arc::clone(&answers));
        Self { server: TcpServer::start(serve).await, requests, pages }
    }

    /// Responds to requests that begin with `request`, such as `GET /orders/1`, with `answer`: a text as it is,
    /// anything else as JSON.
    #[must_use]
    pub fn with_page(self, request: &str, answer: Value) -> Self {
        self.pages.lock().push((request.to_owned(), answer));
        self
    }

    /// The server's URL with this path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    /// The value for `SERVICE_EGRESS_ALLOW`.
    #[must_use]
    pub fn allow(&self) -> String {
        json!([self.server.address.to_string()]).to_string()
    }

    /// All requests so far, head and body.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    kept: Arc<Mutex<Vec<String>>>,
    pages: Arc<Mutex<Vec<(String, Value)>>>,
) -> Option<()> {
    let ReceivedRequest { head, body } = ReceivedRequest::read(&mut stream, &mut Vec::new()).await?;
    let text = format!("{head}\r\n\r\n{body}");
    let line = text.lines().next().unwrap_or_default().to_owned();
    let is_first = !kept.lock().iter().any(|request| request.starts_with(&line));
    kept.lock().push(text.clone());
    let status = match line.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/fail") => "422 No",
        path if path.starts_with("/once") && is_first => "503 Later",
        _ => "200 OK",
    };
    let page = pages.lock().iter().find(|(begin, _)| line.starts_with(begin)).map(|(_, page)| page.clone());
    let echo = || {
        json!({
            "raw": text,
            "base64": STANDARD.encode(&text),
            "url64": URL_SAFE_NO_PAD.encode(&text),
            "hex": text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "form": url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>(),
        })
    };
    let (kind, said) = match page {
        Some(Value::String(text)) => ("text/plain", text),
        other => ("application/json", other.unwrap_or_else(echo).to_string()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        said.len()
    );
    stream.write_all(format!("{head}{said}").as_bytes()).await.ok()
}
