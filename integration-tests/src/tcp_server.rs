//! A server on a free port.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Serves every connection in the same way. Ends with the runtime in which it was started.
pub struct TcpServer {
    /// The server's address.
    pub address: SocketAddr,
    serve: Arc<dyn Fn(TcpStream) -> BoxFuture<'static, ()> + Send + Sync>,
    accepting: Option<JoinHandle<()>>,
}

impl TcpServer {
    /// Starts listening.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start<F>(serve: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let serve = Arc::new(move |stream: TcpStream| -> BoxFuture<'static, ()> {
            let serving = serve(stream);
            Box::pin(async move {
                serving.await;
            })
        });
        let mut server = Self { address, serve, accepting: None };
        server.accept(listener);
        server
    }

    fn accept(&mut self, listener: TcpListener) {
        let serve = Arc::clone(&self.serve);
        self.accepting = Some(tokio::spawn(async move {
            // Ends with this task, and the connections with it.
            let mut connections = JoinSet::new();
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    connections.spawn(serve(stream));
                }
            }
        }));
    }

    /// Goes down, and every connection with it.
    ///
    /// # Panics
    /// When it is down.
    pub async fn go_down(&mut self) {
        let accepting = self.accepting.take().expect("it is up");
        accepting.abort();
        let _ = accepting.await;
    }

    /// Comes up again at the same address.
    ///
    /// # Panics
    /// When the address has been taken meanwhile.
    pub async fn come_up(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the same port");
        self.accept(listener);
    }
}

/// An HTTP request that a server has received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl ReceivedRequest {
    /// Reads the next request of a connection; `None` at its end. `unread`: bytes that have arrived after a request.
    ///
    /// # Panics
    /// When the length of the body is not a number.
    pub async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Self> {
        loop {
            if let Some(end) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let mut request = Self { head: text(&unread[..end]), body: String::new() };
                let length = request.header("content-length").map_or(Ok(0), str::parse::<usize>);
                let (begin, end) = (end + 4, end + 4 + length.expect("a number"));
                if unread.len() >= end {
                    request.body = text(&unread[begin..end]);
                    unread.drain(..end);
                    return Some(request);
                }
            }
            if stream.read_buf(unread).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}
