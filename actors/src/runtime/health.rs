//! Health of the process.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by everything that can detect that the process must end.
#[derive(Clone)]
pub struct Health {
    fatal: Arc<watch::Sender<Option<String>>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { fatal: Arc::new(watch::Sender::new(None)) }
    }
}

impl Health {
    /// Makes the service not ready and ends the process. The first reason is kept.
    pub fn escalate(&self, reason: &str) {
        tracing::error!(reason, "shutting down after a fatal error");
        self.fatal.send_if_modified(|fatal| {
            let first = fatal.is_none();
            if first {
                *fatal = Some(reason.to_owned());
            }
            first
        });
    }

    /// The reason to end, if any.
    #[must_use]
    pub fn fatal(&self) -> Option<String> {
        self.fatal.borrow().clone()
    }

    /// Waits until there is a reason to end.
    pub async fn failed(&self) -> String {
        let mut watch = self.fatal.subscribe();
        let found = watch.wait_for(Option::is_some).await.ok().and_then(|fatal| fatal.clone());
        match found {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}
