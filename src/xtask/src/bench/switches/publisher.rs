//! Publishes and rolls back repeatedly.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};

use super::super::hosted::{App, Broken, Deployment, RequestFailure};
use super::super::server::pause;
use super::content::{files, page};
use super::found::{SwitchCounts, add};

/// The pause between two switches.
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts before the publisher gives up.
const ATTEMPTS: u32 = 20;

pub(super) struct Publisher {
    pub(super) found: Arc<SwitchCounts>,
    pub(super) app: App,
    pub(super) addresses: [String; 2],
    /// The next instance's index.
    next: usize,
    /// Deployed contents by deployment id.
    contents: HashMap<String, u64>,
}

/// A way to make a content active.
enum Switch<'a> {
    Publish(&'a Deployment),
    RollBack(&'a str),
}

impl Publisher {
    pub(super) fn new(found: Arc<SwitchCounts>, app: App, addresses: [String; 2]) -> Self {
        Self { found, app, addresses, next: 0, contents: HashMap::new() }
    }

    fn address(&mut self) -> String {
        self.next = 1 - self.next;
        self.addresses.get(self.next).cloned().unwrap_or_default()
    }

    /// Deploys and publishes a content. Returns its release id.
    ///
    /// # Errors
    /// If it is rejected, or neither instance does it.
    pub(super) async fn publish(&mut self, content: u64) -> Result<String> {
        let [(script, code), (style, rules)] = files(content);
        let page = page(content);
        let files: [(&str, &[u8]); 3] =
            [("index.html", page.as_bytes()), (&script, code.as_bytes()), (&style, rules.as_bytes())];
        for _ in 0..ATTEMPTS {
            let address = self.address();
            match self.app.deploy(&address, &files).await {
                Ok(deployment) => {
                    self.contents.insert(deployment.id.clone(), content);
                    let release = self.switch(content, &Switch::Publish(&deployment)).await?;
                    add(&self.found.publishes);
                    return Ok(release);
                }
                Err(failure) => self.broke(failure).await?,
            }
        }
        bail!("release {content} is not deployed after {ATTEMPTS} attempts")
    }

    /// Publishes one content after another; after each one except the first, it rolls back to the previous one.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub(super) async fn keep_switching(&mut self, mut release: String) -> Result<()> {
        for content in 2.. {
            if self.found.ends.load(Ordering::SeqCst) {
                break;
            }
            let newer = self.publish(content).await?;
            pause(PAUSE).await;
            self.switch(content - 1, &Switch::RollBack(&release)).await?;
            add(&self.found.rollbacks);
            pause(PAUSE).await;
            release = newer;
        }
        Ok(())
    }

    /// Makes a content active. After an attempt without a response, asks whether it was done.
    async fn switch(&mut self, content: u64, switch: &Switch<'_>) -> Result<String> {
        for _ in 0..ATTEMPTS {
            let address = self.address();
            let attempt = self.found.attempt(content);
            let done = match switch {
                Switch::Publish(deployment) => self.app.publish(&address, deployment).await,
                Switch::RollBack(release) => self.app.roll_back(&address, release).await,
            };
            let release = match done {
                Ok(release) => Some(release),
                Err(failure) => {
                    self.broke(failure).await?;
                    let (release, deployment) = self.active().await?;
                    (self.contents.get(&deployment) == Some(&content)).then_some(release)
                }
            };
            if let Some(release) = release {
                self.found.done(attempt);
                return Ok(release);
            }
        }
        bail!("release {content} is not active after {ATTEMPTS} attempts")
    }

    async fn active(&mut self) -> Result<(String, String)> {
        for _ in 0..ATTEMPTS {
            let address = self.address();
            match self.app.active(&address).await {
                Ok(active) => return Ok(active),
                Err(failure) => self.broke(failure).await?,
            }
        }
        bail!("neither instance returned the active release")
    }

    /// Counts a failure, then pauses.
    ///
    /// # Errors
    /// If the service has rejected the request.
    async fn broke(&self, failure: RequestFailure) -> Result<()> {
        match failure {
            RequestFailure::Broken(Broken::Connection) => add(&self.found.broken),
            RequestFailure::Broken(Broken::Late) => add(&self.found.late),
            RequestFailure::Refused(status, _) if status >= 500 => add(&self.found.errors),
            RequestFailure::Refused(..) => return Err(failure.into()),
        }
        pause(PAUSE).await;
        Ok(())
    }
}
