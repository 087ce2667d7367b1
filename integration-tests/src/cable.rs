//! A network cable between a client and the service, or between the service and its database, that tests can cut or
//! stall.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Forwards every connection, until it is cut or stalled.
pub struct Cable {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    whole: AtomicBool,
    cut: Notify,
    stalled: watch::Sender<bool>,
}

impl State {
    /// Forwards a connection in both directions, except while the cable is stalled.
    async fn forward(&self, near: &mut TcpStream, far: &mut TcpStream) {
        let mut stalled = self.stalled.subscribe();
        let mut copying = std::pin::pin!(copy_bidirectional(near, far));
        loop {
            let is_stalled = *stalled.borrow_and_update();
            tokio::select! {
                _ = &mut copying, if !is_stalled => return,
                _ = stalled.changed() => {}
                () = self.cut.notified() => return,
            }
        }
    }
}

impl Cable {
    /// A cable to an address.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn to(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State {
            whole: AtomicBool::new(true),
            cut: Notify::new(),
            stalled: watch::Sender::new(false),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // While the cable is cut, new connections are closed at once.
                if !state.whole.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(service).await else { return };
                    state.forward(&mut near, &mut far).await;
                });
            }
        });
        Self { address, state }
    }

    /// The URL to reach the service through the cable.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the near end.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops forwarding: connections stay open, and new ones are accepted.
    pub fn stall(&self) {
        self.state.stalled.send_replace(true);
    }

    /// Resumes forwarding, including the delayed bytes.
    pub fn resume(&self) {
        self.state.stalled.send_replace(false);
    }

    /// Cuts the cable: open connections break, new ones fail.
    pub fn cut(&self) {
        self.state.whole.store(false, Ordering::SeqCst);
        self.state.cut.notify_waiters();
    }

    /// Repairs the cable.
    pub fn mend(&self) {
        self.state.whole.store(true, Ordering::SeqCst);
    }
}
