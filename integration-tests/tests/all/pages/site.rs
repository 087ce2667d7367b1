//! Another site, whose pages embed the chat.

use std::collections::BTreeMap;
use std::sync::Arc;

use integration_tests::{ReceivedRequest, TcpServer};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Media types and bodies by path.
type Files = Arc<Mutex<BTreeMap<String, (&'static str, String)>>>;

/// A site at `localhost`, where the service is `127.0.0.1`.
pub(super) struct Site {
    server: TcpServer,
    files: Files,
}

impl Site {
    pub(super) async fn start() -> Self {
        let files = Files::default();
        let served = Arc::clone(&files);
        let server = TcpServer::start(move |stream| answer(stream, Arc::clone(&served))).await;
        Self { server, files }
    }

    pub(super) fn origin(&self) -> String {
        format!("http://localhost:{}", self.server.address.port())
    }

    /// Adds or replaces a file.
    pub(super) fn put(&self, path: &str, media_type: &'static str, body: String) {
        self.files.lock().insert(path.to_owned(), (media_type, body));
    }
}

/// Responds to one request with the file at its path. A browser may open a connection that it does not use.
async fn answer(mut stream: TcpStream, files: Files) -> Option<()> {
    let request = ReceivedRequest::read(&mut stream, &mut Vec::new()).await?;
    let path = request.head.split(' ').nth(1).unwrap_or_default();
    let found = files.lock().get(path).cloned();
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let (kind, body) = found.unwrap_or(("text/plain", "This site has no such page.".to_owned()));
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}", body.len());
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await.ok()
}
