//! A network cable between a client and the service, to be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Hands every connection on to the service, until it is cut.
pub struct Cable {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    whole: AtomicBool,
    cut: Notify,
}

impl Cable {
    /// A cable to an address.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn to(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State { whole: AtomicBool::new(true), cut: Notify::new() });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // While it is cut, whoever comes is sent away at once.
                if !state.whole.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(service).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        () = state.cut.notified() => {}
                    }
                });
            }
        });
        Self { address, state }
    }

    /// Where to reach the service through it.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts it: open connections break, new ones do not come about.
    pub fn cut(&self) {
        self.state.whole.store(false, Ordering::SeqCst);
        self.state.cut.notify_waiters();
    }

    /// Mends it.
    pub fn mend(&self) {
        self.state.whole.store(true, Ordering::SeqCst);
    }
}
