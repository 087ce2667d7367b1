//! The CDN of the hosted chat widget.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::{ReceivedRequest, TcpServer};

/// The CDN's current responses.
#[derive(Clone)]
struct Behaviour {
    status: u16,
    kind: String,
    script: String,
    answers: bool,
}

/// Serves one script with an `ETag`, and files on other paths; can stop responding on request.
pub struct Cdn {
    server: TcpServer,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Cdn {
    /// Starts listening.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start(script: &str) -> Self {
        let behaviour = Behaviour {
            status: 200,
            kind: "application/javascript".to_owned(),
            script: script.to_owned(),
            answers: true,
        };
        let (behaviour, requests) = (Arc::new(Mutex::new(behaviour)), Arc::<Mutex<Vec<String>>>::default());
        let (shared, kept) = (Arc::clone(&behaviour), Arc::clone(&requests));
        let serve = move |stream| answer(stream, Arc::clone(&shared), Arc::clone(&kept));
        Self { server: TcpServer::start(serve).await, behaviour, requests }
    }

    /// The value for `SERVICE_CHAT_CDN_BASE_URL`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Replaces the script from now on.
    pub fn publish(&self, script: &str) {
        script.clone_into(&mut self.behaviour.lock().script);
    }

    /// Responds with this status and media type from now on.
    pub fn answers_with(&self, status: u16, kind: &str) {
        let mut behaviour = self.behaviour.lock();
        behaviour.status = status;
        kind.clone_into(&mut behaviour.kind);
    }

    /// Accepts connections without responding, until switched back.
    pub fn hangs(&self, hangs: bool) {
        self.behaviour.lock().answers = !hangs;
    }

    /// The heads of all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    behaviour: Arc<Mutex<Behaviour>>,
    kept: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let head = ReceivedRequest::read(&mut stream, &mut Vec::new()).await?.head;
    kept.lock().push(head.clone());
    let Behaviour { status, kind, script, answers } = behaviour.lock().clone();
    if !answers {
        std::future::pending::<()>().await;
    }
    let tag = format!("\"{}-{}\"", script.len(), script.bytes().map(u64::from).sum::<u64>());
    let known = head.lines().any(|line| line.to_ascii_lowercase() == format!("if-none-match: {tag}"));
    let reply = if known && status == 200 {
        format!("HTTP/1.1 304 Not Modified\r\netag: {tag}\r\nconnection: close\r\n\r\n")
    } else {
        let length = script.len();
        format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\netag: {tag}\r\nset-cookie: cdn=1\r\nx-cdn: 1\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{script}"
        )
    };
    stream.write_all(reply.as_bytes()).await.ok()
}
