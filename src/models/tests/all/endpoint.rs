//! A model endpoint: real connections, scripted to the byte.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kernel::{Clock as _, Secret, SystemClock};
use models::{
    Dialect, EndpointSettings, Message, Model, ModelAnswer, ModelError, ModelRequest, NoPieces, OpenAi,
    Pieces, Role,
};
use net::Client;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub(crate) const KEY: &str = "sk-test-0123456789";

/// The endpoint's steps for each request, in order.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends status and headers; the body is chunked unless the headers say otherwise.
    Head(u16, &'static str),
    /// Sends one body chunk.
    Chunk(Vec<u8>),
    /// Sends chunks until the peer stops reading.
    Forever(Vec<u8>),
    /// Ends the body normally.
    End,
    /// Closes the connection in the middle of the body.
    Cut,
    /// Waits until the client has received the next piece.
    Met,
    /// Waits until the client closes the connection.
    Hold,
}

pub(crate) struct Endpoint {
    pub(crate) at: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    /// The time at which a client closed its connection during [`Act::Hold`].
    pub(crate) left: Arc<Mutex<Option<Instant>>>,
    pub(crate) holding: Arc<Notify>,
    pub(crate) met: Arc<Notify>,
    pub(crate) sent: Arc<Mutex<usize>>,
}

impl Endpoint {
    pub(crate) async fn new(acts: Vec<Act>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Arc::new(Self {
            at: listener.local_addr().unwrap(),
            requests: Arc::default(),
            left: Arc::default(),
            holding: Arc::default(),
            met: Arc::default(),
            sent: Arc::default(),
        });
        let serving = Arc::clone(&endpoint);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, acts) = (Arc::clone(&serving), acts.clone());
                tokio::spawn(async move { serving.serve(stream, acts).await });
            }
        });
        endpoint
    }

    /// Streams these events as one chunk and ends the body.
    pub(crate) async fn streaming(events: &str) -> Arc<Self> {
        Self::new(vec![Act::Head(200, EVENTS), Act::Chunk(events.into()), Act::End]).await
    }

    /// Responds with a status, headers and a body.
    pub(crate) async fn answering(status: u16, headers: &'static str, body: &str) -> Arc<Self> {
        Self::new(vec![Act::Head(status, headers), Act::Chunk(body.into()), Act::End]).await
    }

    async fn serve(&self, mut stream: TcpStream, acts: Vec<Act>) -> Option<()> {
        loop {
            let request = read_request(&mut stream).await?;
            self.requests.lock().push(request);
            for act in &acts {
                match act {
                    Act::Head(status, headers) => {
                        let head =
                            format!("HTTP/1.1 {status} X\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
                        stream.write_all(head.as_bytes()).await.ok()?;
                    }
                    Act::Chunk(bytes) => chunk(&mut stream, bytes).await?,
                    Act::Forever(bytes) => loop {
                        chunk(&mut stream, bytes).await?;
                        *self.sent.lock() += bytes.len();
                    },
                    Act::End => stream.write_all(b"0\r\n\r\n").await.ok()?,
                    Act::Cut => return None,
                    Act::Met => self.met.notified().await,
                    Act::Hold => {
                        self.holding.notify_one();
                        let mut byte = [0];
                        let gone = stream.read(&mut byte).await;
                        assert!(!matches!(gone, Ok(1..)), "the client sent more");
                        *self.left.lock() = Some(now());
                        return None;
                    }
                }
            }
        }
    }

    /// Drops a call while the endpoint holds; returns the time until the endpoint notices.
    pub(crate) async fn drop_call(&self, model: Arc<dyn Model>) -> Duration {
        let call = tokio::spawn(async move { model.call(&request(), &NoPieces).await });
        self.holding.notified().await;
        wait(50).await;
        let began = now();
        call.abort();
        while self.left.lock().is_none() {
            assert!(began.elapsed() < Duration::from_secs(30), "the connection stays");
            wait(5).await;
        }
        began.elapsed()
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.at)
    }

    pub(crate) fn model(&self) -> OpenAi {
        self.model_at(&self.base(), Some(KEY))
    }

    pub(crate) fn model_at(&self, base: &str, key: Option<&str>) -> OpenAi {
        OpenAi::new(client(), base, key.map(Secret::from), Arc::new(SystemClock::new())).unwrap()
    }

    /// This endpoint as a model in `dialect`.
    pub(crate) fn model_in(&self, dialect: Dialect) -> Arc<dyn Model> {
        let base_url = Some(format!("http://{}", self.at));
        let settings =
            EndpointSettings { base_url, api_key: Some(Secret::from(KEY)), ..EndpointSettings::default() };
        dialect.at(settings, client(), Arc::new(SystemClock::new())).unwrap()
    }

    /// Like [`Self::ask`], in another dialect.
    pub(crate) async fn ask_in(&self, dialect: Dialect) -> (Result<ModelAnswer, ModelError>, Vec<String>) {
        let pieces = CollectedPieces::default();
        let answer = self.model_in(dialect).call(&request(), &pieces).await;
        (answer, pieces.0.into_inner())
    }

    pub(crate) async fn answer_in(&self, dialect: Dialect) -> ModelAnswer {
        self.ask_in(dialect).await.0.unwrap()
    }

    pub(crate) async fn error_in(&self, dialect: Dialect) -> ModelError {
        let error = self.ask_in(dialect).await.0.unwrap_err();
        assert!(!error.message.contains(KEY), "{error}");
        error
    }

    /// The body of the last request.
    pub(crate) fn request_body(&self) -> serde_json::Value {
        let seen = self.requests.lock().last().unwrap().clone();
        serde_json::from_str(seen.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Makes one call and returns the answer with the received pieces.
    pub(crate) async fn ask(&self) -> (Result<ModelAnswer, ModelError>, Vec<String>) {
        let pieces = CollectedPieces::default();
        let answer = self.model().call(&request(), &pieces).await;
        (answer, pieces.0.into_inner())
    }

    pub(crate) async fn answer(&self) -> ModelAnswer {
        self.ask().await.0.unwrap()
    }

    pub(crate) async fn error(&self) -> ModelError {
        let error = self.ask().await.0.unwrap_err();
        assert!(!error.message.contains(KEY), "{error}");
        error
    }
}

/// Shared, because reading the machine's certificates takes longer than most tests.
fn client() -> Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| Client::operator(Arc::new(SystemClock::new())).unwrap()).clone()
}

async fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    let mut written = format!("{:x}\r\n", bytes.len()).into_bytes();
    written.extend_from_slice(bytes);
    written.extend_from_slice(b"\r\n");
    stream.write_all(&written).await.ok()
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text);
        }
    }
}

pub(crate) const EVENTS: &str = "Content-Type: text/event-stream\r\n";

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "hi")],
        idempotency_key: Some("key-1".into()),
        ..ModelRequest::default()
    }
}

/// A stream event with this text.
pub(crate) fn says(text: &str) -> String {
    let content = serde_json::to_string(text).unwrap();
    format!(
        "data: {{\"model\":\"m-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{content}}}}}]}}\n\n"
    )
}

pub(crate) fn ends(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

#[derive(Default)]
pub(crate) struct CollectedPieces(pub Mutex<Vec<String>>);

#[async_trait]
impl Pieces for CollectedPieces {
    async fn piece(&self, text: &str) {
        self.0.lock().push(text.to_owned());
    }
}

pub(crate) async fn wait(millis: u64) {
    SystemClock::new().sleep(Duration::from_millis(millis)).await;
}

#[expect(clippy::disallowed_methods, reason = "tests of real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
