//! A proxy that breaks connections to the service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::TcpServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The connections to break.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    /// Each event stream, after this many bytes.
    StreamsAfter(usize),
    /// The first response to a request with this method and path prefix, before its first byte.
    FirstAnswerTo(&'static str),
    /// Requests with this prefix never arrive, without an error.
    Swallows(&'static str),
}

pub(super) struct Proxy {
    address: SocketAddr,
    broken: Arc<AtomicUsize>,
}

impl Proxy {
    pub(super) async fn to(service: SocketAddr, fault: Fault) -> Self {
        let broken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&broken);
        let server = TcpServer::start(move |from| pass(from, service, fault, Arc::clone(&counted))).await;
        Self { address: server.address, broken }
    }

    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of broken connections.
    pub(super) fn broken(&self) -> usize {
        self.broken.load(Ordering::SeqCst)
    }
}

/// Passes bytes both ways until it is time to break the connection.
async fn pass(mut from: TcpStream, service: SocketAddr, fault: Fault, broken: Arc<AtomicUsize>) {
    let mut to = TcpStream::connect(service).await.unwrap();
    let (mut request_bytes, mut answered) = (Vec::new(), Vec::new());
    let (mut up, mut down) = ([0; 4096], [0; 256]);
    loop {
        tokio::select! {
            read = from.read(&mut up) => {
                let Ok(read @ 1..) = read else { return };
                request_bytes.extend_from_slice(&up[..read]);
                answered.clear();
                if matches!(fault, Fault::Swallows(request) if String::from_utf8_lossy(&request_bytes).contains(request)) {
                    broken.fetch_add(1, Ordering::SeqCst);
                    return std::future::pending().await;
                }
                if to.write_all(&up[..read]).await.is_err() {
                    return;
                }
            }
            read = to.read(&mut down) => {
                let Ok(read @ 1..) = read else { return };
                answered.extend_from_slice(&down[..read]);
                let breaks = match fault {
                    Fault::StreamsAfter(bytes) => {
                        answered.len() > bytes && String::from_utf8_lossy(&answered).contains("text/event-stream")
                    }
                    Fault::FirstAnswerTo(request) => {
                        broken.load(Ordering::SeqCst) == 0 && String::from_utf8_lossy(&request_bytes).contains(request)
                    }
                    Fault::Swallows(_) => false,
                };
                if breaks {
                    broken.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if from.write_all(&down[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
