//! The listener's own TLS: one certificate, reloaded when its files change.
//!
//! TLS 1.2 and 1.3 with ring, HTTP/1.1 only: proxies speak HTTP/2 to browsers.

mod pair;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kernel::Clock;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

pub use pair::PairError;

/// Time between two checks of the files.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// The listener's certificate.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
}

/// The certificate for new connections.
struct Current {
    files: config::Tls,
    state: RwLock<LoadedCertificate>,
}

struct LoadedCertificate {
    pair: Arc<CertifiedKey>,
    /// The modification times of the last files read, usable or not.
    changed: Changed,
    problem: Option<String>,
}

/// Modification times of certificate and key; `None` for an unreadable file.
type Changed = [Option<SystemTime>; 2];

impl Tls {
    /// Loads the certificate and its key.
    ///
    /// # Errors
    /// [`PairError`] if the files cannot be read or do not belong together.
    pub(crate) fn load(files: &config::Tls) -> Result<Self, PairError> {
        let changed = changed(files);
        let pair = Arc::new(pair::read(files)?);
        let state = RwLock::new(LoadedCertificate { pair, changed, problem: None });
        let current = Arc::new(Current { files: files.clone(), state });
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut settings = versions
            .map_err(|error| PairError::Unusable(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(settings)), current })
    }

    /// Accepts connections.
    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Whether the files have changed and are unusable.
    pub(crate) fn is_outdated(&self) -> bool {
        self.current.state.read().problem.is_some()
    }

    /// Checks the files every minute while the task lives.
    pub(crate) async fn watch(self, clock: Arc<dyn Clock>) {
        loop {
            clock.sleep(CHECK_EVERY).await;
            let current = Arc::clone(&self.current);
            // File access may block.
            let _ = tokio::task::spawn_blocking(move || current.reload()).await;
        }
    }
}

impl Current {
    /// Reloads the files if one has changed, or if the last attempt failed: a repaired file mode changes no
    /// modification time. If they are unusable, the certificate stays.
    fn reload(&self) {
        let changed = changed(&self.files);
        {
            let state = self.state.read();
            if state.changed == changed && state.problem.is_none() {
                return;
            }
        }
        let read = pair::read(&self.files);
        let mut state = self.state.write();
        state.changed = changed;
        match read {
            Ok(pair) => {
                state.pair = Arc::new(pair);
                state.problem = None;
                tracing::info!("loaded the changed TLS certificate");
            }
            Err(error) => {
                let problem = Some(error.to_string());
                if state.problem != problem {
                    tracing::error!(%error, "failed to load the changed TLS certificate; keeping the previous one");
                    state.problem = problem;
                }
            }
        }
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.state.read().pair))
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("files", &self.files).finish_non_exhaustive()
    }
}

fn changed(files: &config::Tls) -> Changed {
    let time = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    [time(&files.cert), time(&files.key)]
}
