//! A judge service with scripted responses that records its requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::pause;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct JudgeRequest {
    head: String,
    pub(super) body: String,
}

impl JudgeRequest {
    pub(super) fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        line.unwrap_or_else(|| panic!("no {name}: {}", self.head))
    }

    /// The complete context that the evaluator sends for a case.
    pub(super) fn context(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Chooses a response; the first request has the number 1.
type Decide = dyn Fn(usize, &Value) -> JudgeReply + Send + Sync;

pub(super) struct JudgeServer {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    decide: Box<Decide>,
    requests: Mutex<Vec<JudgeRequest>>,
    gone: AtomicUsize,
}

impl JudgeServer {
    pub(super) async fn start(decide: impl Fn(usize, &Value) -> JudgeReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            decide: Box::new(decide),
            requests: Mutex::default(),
            gone: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move { while_open(stream, &shared).await });
            }
        });
        Self { address, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/judge", self.address)
    }

    /// The value for `SERVICE_EGRESS_ALLOW`.
    pub(super) fn allow(&self) -> String {
        json!([self.address.to_string()]).to_string()
    }

    pub(super) fn requests(&self) -> Vec<JudgeRequest> {
        self.shared.requests.lock().clone()
    }

    /// Number of callers that disconnected before their response.
    pub(super) fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }
}

/// Responds to the requests of one connection.
async fn while_open(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut unread = Vec::new();
    loop {
        let received = request(&mut stream, &mut unread).await?;
        let context = received.context();
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

async fn request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<JudgeRequest> {
    loop {
        if let Some(end) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&unread[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            })?;
            if unread.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&unread[end + 4..end + 4 + length]).into_owned();
                unread.drain(..end + 4 + length);
                return Some(JudgeRequest { head, body });
            }
        }
        if stream.read_buf(unread).await.ok()? == 0 {
            return None;
        }
    }
}
