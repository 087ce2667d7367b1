//! A running service and its ordered shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actors::System;
use kernel::Clock;
use store::data_dir::DataDir;
use store::embedded::Embedded;
use tokio::task::JoinHandle;

use crate::http::App;

/// Maximum time for running turns to end at shutdown.
const DRAIN: Duration = Duration::from_secs(16);
/// Maximum time for each later shutdown phase.
const STOP: Duration = Duration::from_secs(3);
/// Maximum time that connections may stay open at shutdown.
pub(crate) const STREAMS_END: Duration = DRAIN.saturating_add(STOP);

/// A service's work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Chat threads with a running turn.
    pub threads: usize,
    /// Streams being written or read.
    pub streams: usize,
}

/// A running service.
pub struct Running {
    pub(crate) address: SocketAddr,
    /// Reloads a changed certificate.
    pub(crate) watching: Option<JoinHandle<()>>,
    pub(crate) system: Arc<System>,
    pub(crate) app: App,
    pub(crate) server: ServerHandle,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
    pub(crate) children: tokio::runtime::Runtime,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) embedded: Option<Embedded>,
    /// `SERVICE_DRAIN_NOTICE`.
    pub(crate) notice: Duration,
    // Last, because the folder must be released after everything that uses it.
    pub(crate) _data_dir: DataDir,
}

impl Running {
    /// The listen address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The scheme and address of the service on this machine.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.app.speaks_tls() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The current work in progress.
    #[must_use]
    pub fn load(&self) -> Load {
        Load { threads: self.system.threads().len(), streams: self.system.topics().len() }
    }

    /// Waits until a fatal error; returns the reason.
    pub async fn failed(&self) -> String {
        self.system.health().failed().await
    }

    /// `SERVICE_DRAIN_NOTICE`.
    #[must_use]
    pub fn notice(&self) -> Duration {
        self.notice
    }

    /// Starts draining and continues to serve for `SERVICE_DRAIN_NOTICE`, unless the service fails meanwhile.
    pub async fn announce_stop(&self) {
        self.app.begin_drain();
        if !self.notice.is_zero() {
            let _ = kernel::timeout(&*self.clock, self.notice, self.failed()).await;
        }
    }

    /// Shuts down in order: becomes unready, accepts no connections, ends turns or hands them over, asks stream clients
    /// to reconnect, commits everything, and stops the database.
    pub async fn stop(self) {
        self.app.begin_drain();
        let stopping = self.server.stop(true);
        let draining = async {
            self.system.drain(DRAIN).await;
            self.app.close_streams();
        };
        tokio::join!(stopping, draining);
        let _ = kernel::timeout(&*self.clock, STOP, self.serving).await;
        self.system.stop(STOP).await;
        self.children.shutdown_background();
        if let Some(watching) = self.watching {
            watching.abort();
        }
        if let Some(embedded) = self.embedded {
            match tokio::task::spawn_blocking(move || embedded.stop()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "failed to stop the embedded database cleanly"),
                Err(error) => tracing::warn!(%error, "failed to stop the embedded database cleanly"),
            }
        }
    }
}
