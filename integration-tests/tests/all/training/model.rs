//! A model endpoint with scripted replies: correct, slow, silent or broken. It counts the requests that it receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::{Builder, ReceivedRequest, TcpServer, TestService, pause};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// The reply to a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// This text.
    Text(String),
    /// This text, after this many milliseconds.
    After(u64, String),
    /// This text, after [`ModelServer::release`].
    Held(String),
    /// A status, and the seconds of its `Retry-After`.
    Refused(u16, Option<u64>),
}

/// Chooses a reply; the first request has the number 1.
type Decide = dyn Fn(usize, &Value) -> Reply + Send + Sync;

pub(super) struct ModelServer {
    server: TcpServer,
    shared: Arc<Shared>,
}

struct Shared {
    decide: Box<Decide>,
    requests: Mutex<Vec<Value>>,
    released: watch::Sender<bool>,
    /// Number of callers that disconnected before their reply.
    gone: AtomicUsize,
    in_flight: AtomicUsize,
    most: AtomicUsize,
}

/// A request that is not answered yet.
struct InFlight<'a>(&'a Shared);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ModelServer {
    pub(super) async fn start(decide: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            decide: Box::new(decide),
            requests: Mutex::default(),
            released: watch::Sender::new(false),
            gone: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        let server = TcpServer::start(move |stream| while_open(stream, Arc::clone(&serving))).await;
        Self { server, shared }
    }

    /// A service that uses this model server.
    pub(super) async fn service(&self) -> TestService {
        self.builder().start().await
    }

    pub(super) fn builder(&self) -> Builder {
        TestService::builder().set("SERVICE_MODEL_BASE_URL", self.base_url())
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.server.address)
    }

    /// Number of received requests.
    pub(super) fn request_count(&self) -> usize {
        self.shared.requests.lock().len()
    }

    /// The bodies of all requests.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().clone()
    }

    /// Number of callers that disconnected before their reply.
    pub(super) fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }

    /// Maximum number of concurrent requests.
    pub(super) fn most(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// Sends the held replies, and holds none from now on.
    pub(super) fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

/// Responds to the requests of one connection.
async fn while_open(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    while let Some(request) = ReceivedRequest::read(&mut stream, &mut unread).await {
        let Ok(body) = serde_json::from_str::<Value>(&request.body) else { return };
        let number = {
            let mut requests = shared.requests.lock();
            requests.push(body.clone());
            requests.len()
        };
        let open = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        let in_flight = InFlight(&shared);
        shared.most.fetch_max(open, Ordering::SeqCst);
        let reply = (shared.decide)(number, &body);
        let mut byte = [0];
        let answer = tokio::select! {
            answer = answer(reply, &shared) => answer,
            // The client sends nothing more before the reply: any read means that it has disconnected.
            _ = stream.read(&mut byte) => {
                shared.gone.fetch_add(1, Ordering::SeqCst);
                return;
            }
        };
        // Before the reply: the caller may send the next request at once.
        drop(in_flight);
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(reply: Reply, shared: &Shared) -> String {
    let text = match reply {
        Reply::Text(text) => text,
        Reply::After(millis, text) => {
            pause(millis).await;
            text
        }
        Reply::Held(text) => {
            let mut released = shared.released.subscribe();
            let _ = released.wait_for(|released| *released).await;
            text
        }
        Reply::Refused(status, seconds) => {
            let wait = seconds.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            let body = json!({"error": {"message": "not now"}}).to_string();
            return whole(&format!("{status} Refused\r\n{wait}"), &body);
        }
    };
    let choice =
        json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    let body =
        json!({"id": "c", "object": "chat.completion", "model": "test", "choices": [choice], "usage": usage});
    whole("200 OK\r\n", &body.to_string())
}

fn whole(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The last message in a request.
pub(super) fn last_message(request: &Value) -> &str {
    request["messages"].as_array().and_then(|all| all.last()?["content"].as_str()).unwrap_or_default()
}

/// The message in which the optimizer shows a prompt; `None` for other requests. A second attempt has more messages
/// after it.
fn shown_prompt(request: &Value) -> Option<&str> {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.filter_map(|message| message["content"].as_str()).find(|text| text.contains("<prompt name="))
}

/// Whether the request is from the optimizer.
pub(super) fn is_of_optimizer(request: &Value) -> bool {
    shown_prompt(request).is_some()
}

/// Whether the optimizer requests a new prompt, not a critique.
pub(super) fn wants_prompt(request: &Value) -> bool {
    is_of_optimizer(request) && last_message(request).contains("inside <new_prompt>")
}

/// Words with their colours. A model knows only those that its prompt names.
const WORDS: [(&str, &str); 6] = [
    ("zorp", "red"),
    ("blint", "green"),
    ("quaff", "blue"),
    ("drim", "red"),
    ("vask", "green"),
    ("plov", "blue"),
];

/// The initial prompt for colour trainings.
pub(super) const COLOURS: &str = "Name the colour.";

/// Cases in these splits, `count` per word. Each has a token that names its split.
pub(super) fn colours(splits: &[(&str, usize)]) -> Vec<Value> {
    let mut cases = Vec::new();
    for (split, count) in splits {
        for (word, colour) in WORDS {
            for number in 0..*count {
                // Long enough for the leak guard to recognize it.
                let message =
                    format!("Handle {word} in a polite letter of today canary-{split}-{word}{number}");
                cases.push(json!({"inputs": {"message": message}, "expected_output": colour,
                                  "metadata": {"split": split, "note": format!("canary-{split}-note")}}));
            }
        }
    }
    cases
}

/// As the task: returns the colour of the message's word if the prompt names it. As the optimizer: adds the words that
/// the records teach.
pub(super) fn painter(request: &Value) -> String {
    if let Some(shown) = shown_prompt(request) {
        return match wants_prompt(request) {
            true => format!("<new_prompt>{}</new_prompt>", taught(shown)),
            false => "The prompt does not say what the word means.".to_owned(),
        };
    }
    let prompt = request["messages"][0]["content"].as_str().unwrap_or_default();
    let word = last_message(request).split(' ').nth(1).unwrap_or_default();
    let rule = format!("{word} means ");
    let colour = prompt.lines().find_map(|line| line.strip_prefix(&rule)?.strip_suffix('.'));
    colour.unwrap_or("unknown").to_owned()
}

fn taught(request: &str) -> String {
    let (current, records) = request
        .split_once("<prompt name=\"rules\">\n")
        .and_then(|(_, rest)| rest.split_once("\n</prompt>"))
        .expect("the prompt is in the request");
    let mut prompt = current.to_owned();
    let mut lines = records.lines();
    while let Some(line) = lines.next() {
        let word = line.strip_prefix("Input: ").and_then(|input| input.split(' ').nth(1));
        let Some(word) = word else { continue };
        let colour = lines.next().and_then(|line| line.strip_prefix("Expected: ")).unwrap_or_default();
        let rule = format!("{word} means {colour}.");
        if !prompt.contains(&rule) {
            prompt.push('\n');
            prompt.push_str(&rule);
        }
    }
    prompt
}
