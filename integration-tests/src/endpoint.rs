//! A model endpoint with OpenAI's protocol whose responses the test controls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};

use crate::{Builder, ReceivedRequest, TcpServer, TestService};

/// An endpoint for `SERVICE_MODEL_BASE_URL`. Responds with scripted content, or with `You said: <the last message>`,
/// word by word; embeddings count each letter of the alphabet in the text.
pub struct Endpoint {
    server: TcpServer,
    shared: Arc<Shared>,
}

struct Shared {
    released: watch::Sender<bool>,
    asked: AtomicUsize,
    gone: AtomicUsize,
    requests: Mutex<Vec<Value>>,
    /// Deltas of the scripted responses.
    script: Mutex<VecDeque<Value>>,
    keys: Mutex<Vec<String>>,
}

impl Endpoint {
    /// An endpoint that responds at once.
    pub async fn quick() -> Self {
        Self::start(true).await
    }

    /// An endpoint that responds only after [`Endpoint::release`].
    pub async fn holding() -> Self {
        Self::start(false).await
    }

    /// Scripts the next unscripted response to say this.
    pub async fn says(&self, text: &str) {
        self.shared.script.lock().await.push_back(json!({"content": text}));
    }

    /// Scripts the next unscripted response to refuse with these words.
    pub async fn declines(&self, text: &str) {
        self.shared.script.lock().await.push_back(json!({"refusal": text}));
    }

    /// Scripts the next unscripted response to call this tool.
    pub async fn calls(&self, tool: &str, arguments: &Value) {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call", "type": "function", "function": function});
        self.shared.script.lock().await.push_back(json!({"tool_calls": [call]}));
    }

    async fn start(released: bool) -> Self {
        let shared = Arc::new(Shared {
            released: watch::Sender::new(released),
            asked: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            requests: Mutex::default(),
            script: Mutex::default(),
            keys: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let server = TcpServer::start(move |stream| while_open(stream, Arc::clone(&serving))).await;
        Self { server, shared }
    }

    /// Starts configuring a service that uses this endpoint.
    #[must_use]
    pub fn builder(&self) -> Builder {
        TestService::builder().set("SERVICE_MODEL_BASE_URL", self.base_url())
    }

    /// A service that uses this endpoint.
    pub async fn service(&self) -> TestService {
        self.builder().start().await
    }

    /// The value for `SERVICE_MODEL_BASE_URL`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.server.address)
    }

    /// Responds to everything from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Number of requests so far.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// Number of callers that disconnected before their response.
    #[must_use]
    pub fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }

    /// The bodies of all requests.
    pub async fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().await.clone()
    }

    /// The `Idempotency-Key` of each request.
    pub async fn keys(&self) -> Vec<String> {
        self.shared.keys.lock().await.clone()
    }
}

/// Responds to the requests of one connection.
async fn while_open(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    while let Some(request) = ReceivedRequest::read(&mut stream, &mut unread).await {
        let Ok(body) = serde_json::from_str::<Value>(&request.body) else { return };
        shared.asked.fetch_add(1, Ordering::SeqCst);
        shared.keys.lock().await.extend(request.header("idempotency-key").map(str::to_owned));
        shared.requests.lock().await.push(body.clone());
        let mut released = shared.released.subscribe();
        let mut byte = [0];
        tokio::select! {
            ready = released.wait_for(|released| *released) => assert!(ready.is_ok(), "the endpoint is there"),
            // The client sends nothing more before the response: any read means that it has disconnected.
            _ = stream.read(&mut byte) => {
                shared.gone.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
        let answer = match body["input"].as_array() {
            Some(texts) => vectors(texts, &body),
            None => answer(&body, shared.script.lock().await.pop_front()),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A vector for each text, cut to the requested dimensions.
fn vectors(texts: &[Value], request: &Value) -> String {
    let most = request["dimensions"].as_u64().unwrap_or(26);
    let counted = |text: &str| -> Vec<usize> {
        (b'a'..=b'z')
            .map(|letter| text.bytes().filter(|byte| byte.to_ascii_lowercase() == letter).count())
            .collect()
    };
    let entry = |(index, text): (usize, &Value)| {
        let mut vector = counted(text.as_str().unwrap_or_default());
        vector.truncate(usize::try_from(most).unwrap_or(26));
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let data: Vec<Value> = texts.iter().enumerate().map(entry).collect();
    let usage = json!({"prompt_tokens": 3, "total_tokens": 3});
    let body = json!({"object": "list", "model": "test", "data": data, "usage": usage}).to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The response as a stream: scripted content, or words.
fn answer(request: &Value, told: Option<Value>) -> String {
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let text = format!("You said: {}", last["content"].as_str().unwrap_or_default());
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "model": "test", "choices": [choice]})
        )
    };
    let words = || text.split_inclusive(' ').map(|word| json!({"content": word})).collect();
    let deltas: Vec<Value> = told.map_or_else(words, |delta| vec![delta]);
    let reason =
        if deltas.iter().any(|delta| delta.get("tool_calls").is_some()) { "tool_calls" } else { "stop" };
    let mut body: String = deltas.into_iter().map(|delta| chunk(delta, Value::Null)).collect();
    body.push_str(&chunk(json!({}), json!(reason)));
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    let last =
        json!({"id": "c", "object": "chat.completion.chunk", "model": "test", "choices": [], "usage": usage});
    body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len())
}
