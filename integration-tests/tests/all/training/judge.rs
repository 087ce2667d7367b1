//! A judge service with scripted responses that records its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{ReceivedRequest, TcpServer, pause};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The signing secret.
pub(super) const SECRET: &str = "canary-of-the-judge-0123456789";

/// Keys for a vault.
pub(super) fn vault_keys() -> String {
    json!({"active": "a", "keys": {"a": STANDARD.encode([7; 32])}}).to_string()
}

/// The response to a request.
#[derive(Debug, Clone)]
pub(super) enum JudgeReply {
    /// 200 with this JSON.
    Verdict(Value),
    /// 200 with this JSON, after this many milliseconds.
    Late(u64, Value),
    /// This status and text.
    Text(u16, String),
    /// No response.
    Nothing,
}

/// Chooses a response; the first request has the number 1.
type Decide = dyn Fn(usize, &Value) -> JudgeReply + Send + Sync;

pub(super) struct JudgeServer {
    server: TcpServer,
    shared: Arc<Shared>,
}

struct Shared {
    decide: Box<Decide>,
    requests: Mutex<Vec<ReceivedRequest>>,
    gone: AtomicUsize,
}

impl JudgeServer {
    pub(super) async fn start(decide: impl Fn(usize, &Value) -> JudgeReply + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            decide: Box::new(decide),
            requests: Mutex::default(),
            gone: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        let server = TcpServer::start(move |stream| while_open(stream, Arc::clone(&serving))).await;
        Self { server, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/judge", self.server.address)
    }

    /// The value for `SERVICE_EGRESS_ALLOW`.
    pub(super) fn allow(&self) -> String {
        json!([self.server.address.to_string()]).to_string()
    }

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().clone()
    }

    /// Number of callers that disconnected before their response.
    pub(super) fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }
}

/// Responds to the requests of one connection.
async fn while_open(mut stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let mut unread = Vec::new();
    loop {
        let received = ReceivedRequest::read(&mut stream, &mut unread).await?;
        let context = received.json();
        let number = {
            let mut all = shared.requests.lock();
            all.push(received);
            all.len()
        };
        let (status, body) = match (shared.decide)(number, &context) {
            JudgeReply::Verdict(verdict) => (200, verdict.to_string()),
            JudgeReply::Late(millis, verdict) => {
                pause(millis).await;
                (200, verdict.to_string())
            }
            JudgeReply::Text(status, text) => (status, text),
            JudgeReply::Nothing => {
                let mut byte = [0];
                let _ = stream.read(&mut byte).await;
                shared.gone.fetch_add(1, Ordering::SeqCst);
                return None;
            }
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
    }
}
