//! A load balancer before several instances: each connection goes to one of those that take it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// Balances connections, in turn. Ends with the runtime it was started in.
pub struct Balancer {
    address: SocketAddr,
}

impl Balancer {
    /// A balancer before these addresses, `host:port`.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn before(instances: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (instances, next) = (Arc::new(instances), AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (instances, first) = (Arc::clone(&instances), next.fetch_add(1, Ordering::Relaxed));
                tokio::spawn(async move {
                    for n in 0..instances.len() {
                        let instance = &instances[(first + n) % instances.len()];
                        if let Ok(mut far) = TcpStream::connect(instance).await {
                            let _ = copy_bidirectional(&mut near, &mut far).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address }
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Where to reach the instances through it.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}
