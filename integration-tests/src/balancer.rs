//! A load balancer in front of several instances: each connection goes to an instance that accepts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};

/// Balances connections round-robin. Ends with the runtime in which it was started.
pub struct Balancer {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

/// Cuts each connection after a random number of bytes from the instance, at most `within`.
#[derive(Clone)]
struct Cut {
    random: Arc<dyn Random>,
    within: u64,
}

impl Balancer {
    /// A balancer in front of these addresses, `host:port`.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn before(instances: Vec<String>) -> Self {
        Self::start(instances, None).await
    }

    /// A balancer that cuts each connection after at most `within` response bytes.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn cutting(instances: Vec<String>, random: Arc<dyn Random>, within: u64) -> Self {
        Self::start(instances, Some(Cut { random, within })).await
    }

    /// Number of connections that it has cut.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }

    async fn start(instances: Vec<String>, cut: Option<Cut>) -> Self {
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cuts);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (instances, next) = (Arc::new(instances), AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (instances, first) = (Arc::clone(&instances), next.fetch_add(1, Ordering::Relaxed));
                let (cut, counted) = (cut.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    for n in 0..instances.len() {
                        let instance = &instances[(first + n) % instances.len()];
                        if let Ok(mut far) = TcpStream::connect(instance).await {
                            match cut {
                                None => pass(&mut near, &mut far).await,
                                Some(cut) => {
                                    let is_cut = cut.copy(&mut near, &mut far).await;
                                    counted.fetch_add(usize::from(is_cut), Ordering::Relaxed);
                                }
                            }
                            return;
                        }
                    }
                });
            }
        });
        Self { address, cuts }
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The URL to reach the instances through the balancer.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Copies until both sides end. An instance may respond and stop reading while the client still sends.
async fn pass(near: &mut TcpStream, far: &mut TcpStream) {
    let (mut from_client, mut to_client) = near.split();
    let (mut from_instance, mut to_instance) = far.split();
    let asks = async {
        if copy(&mut from_client, &mut to_instance).await.is_err() {
            let _ = copy(&mut from_client, &mut sink()).await;
        }
        let _ = to_instance.shutdown().await;
    };
    let answers = async {
        let _ = copy(&mut from_instance, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::join!(asks, answers);
}

impl Cut {
    /// Copies until one side ends, or the instance has sent its bytes. Returns whether it has cut the connection.
    async fn copy(&self, near: &mut TcpStream, far: &mut TcpStream) -> bool {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes).expect("random bytes");
        let mut left = 1 + u64::from_le_bytes(bytes) % self.within;
        let (mut asks, mut answers) = (vec![0; 8_192], vec![0; 8_192]);
        loop {
            tokio::select! {
                asked = near.read(&mut asks) => match asked {
                    Ok(count) if count > 0 && far.write_all(&asks[..count]).await.is_ok() => {}
                    _ => return false,
                },
                answered = far.read(&mut answers) => match answered {
                    Ok(count) if count > 0 => {
                        let most = usize::try_from(left).unwrap_or(usize::MAX).min(count);
                        if near.write_all(&answers[..most]).await.is_err() {
                            return false;
                        }
                        left -= u64::try_from(most).unwrap_or(left);
                        if left == 0 {
                            return true;
                        }
                    }
                    _ => return false,
                },
            }
        }
    }
}
