//! The CDN of the hosted chat widget.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
    address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Cdn {
    /// Starts listening.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start(script: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let behaviour = Behaviour {
            status: 200,
            kind: "application/javascript".to_owned(),
            script: script.to_owned(),
            answers: true,
        };
        let (behaviour, requests) = (Arc::new(Mutex::new(behaviour)), Arc::<Mutex<Vec<String>>>::default());
        let (shared, kept) = (Arc::clone(&behaviour), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (behaviour, kept) = (Arc::clone(&shared), Arc::clone(&kept));
                tokio::spawn(async move { answer(stream, &behaviour, &kept).await });
            }
        });
        Self { address, behaviour, requests }
    }

    /// The value for `SERVICE_CHAT_CDN_BASE_URL`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
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
    behaviour: &Mutex<Behaviour>,
    kept: &Mutex<Vec<String>>,
) -> Option<()> {
    let (mut head, mut buffer) = (String::new(), vec![0; 8_192]);
    while !head.contains("\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        head.push_str(&String::from_utf8_lossy(buffer.get(..count)?));
    }
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
