//! The provider's metadata: fetched on demand, cached for an hour.

use std::sync::Arc;
use std::time::Duration;

use auth::jwt::jwks::{CachedKeys, KeySet, Remote};
use auth::oidc::Metadata;
use config::Oidc;
use kernel::Clock;
use net::{Client, Method, Request, StatusCode};
use parking_lot::Mutex;

use super::{PATIENCE, limits};
use crate::tokens::HttpKeySource;

/// Cache lifetime of metadata, and its extension while fetching fails.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// Cache lifetime of keys.
const KEYS_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Pause after a failed fetch, with and without older metadata.
const RETRY_GAP: Duration = Duration::from_secs(10);
const RETRY_GAP_EMPTY: Duration = Duration::from_secs(1);

/// A provider that is ready for sign-in.
pub(crate) struct ReadyProvider {
    pub(crate) metadata: Metadata,
    pub(crate) keys: Arc<CachedKeys>,
}

/// Cached metadata, refreshed when it is too old.
pub(super) struct Discovery {
    issuer: String,
    client: Client,
    clock: Arc<dyn Clock>,
    state: Mutex<DiscoveryCache>,
    /// Held during a fetch; other callers wait or use older metadata.
    flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct DiscoveryCache {
    loaded: Option<(Arc<ReadyProvider>, Duration)>,
    failed_at: Option<Duration>,
}

impl Discovery {
    pub(super) fn new(config: &Oidc, client: Client, clock: Arc<dyn Clock>) -> Self {
        let issuer = config.issuer.clone();
        Self { issuer, client, clock, state: Mutex::default(), flight: tokio::sync::Mutex::default() }
    }

    /// Returns the metadata, fetched first if it is absent or too old; `None` if it cannot be fetched.
    pub(super) async fn known(&self) -> Option<Arc<ReadyProvider>> {
        if let Some(fresh) = self.within(LIFETIME) {
            return Some(fresh);
        }
        let stale = self.within(LIFETIME.saturating_add(STALE));
        let _flight = match self.flight.try_lock() {
            Ok(flight) => flight,
            Err(_) if stale.is_some() => return stale,
            Err(_) => self.flight.lock().await,
        };
        // A caller that waited uses the metadata fetched meanwhile.
        if let Some(fresh) = self.within(LIFETIME) {
            return Some(fresh);
        }
        if !self.is_resting() {
            self.fetch().await;
        }
        self.within(LIFETIME.saturating_add(STALE))
    }

    fn within(&self, age: Duration) -> Option<Arc<ReadyProvider>> {
        let now = self.clock.monotonic();
        let state = self.state.lock();
        let (known, at) = state.loaded.as_ref()?;
        (now.saturating_sub(*at) < age).then(|| Arc::clone(known))
    }

    fn is_resting(&self) -> bool {
        let now = self.clock.monotonic();
        let state = self.state.lock();
        let gap = if state.loaded.is_some() { RETRY_GAP } else { RETRY_GAP_EMPTY };
        state.failed_at.is_some_and(|at| now.saturating_sub(at) < gap)
    }

    async fn fetch(&self) {
        let began = self.clock.monotonic();
        let came = self.metadata().await;
        let mut state = self.state.lock();
        match came {
            Ok(metadata) => {
                let before =
                    state.loaded.take().filter(|(known, _)| known.metadata.jwks_uri == metadata.jwks_uri);
                let keys = before
                    .map_or_else(|| Arc::new(self.keys(&metadata)), |(known, _)| Arc::clone(&known.keys));
                state.loaded = Some((Arc::new(ReadyProvider { metadata, keys }), began));
                state.failed_at = None;
            }
            Err(why) => {
                tracing::warn!(error = why, "failed to fetch the OpenID provider's metadata");
                state.failed_at = Some(self.clock.monotonic());
            }
        }
    }

    async fn metadata(&self) -> Result<Metadata, String> {
        let request =
            Request::new(Method::GET, Metadata::address(&self.issuer)).header("accept", "application/json");
        let request = request.map_err(|error| error.message)?;
        let answer = self.client.send(request, &limits()).await.map_err(|error| error.message)?;
        if answer.status() != StatusCode::OK {
            return Err(format!("the response is {}", answer.status()));
        }
        let body = answer.bytes().await.map_err(|error| error.message)?;
        Metadata::parse(&body, &self.issuer).map_err(|error| error.to_string())
    }

    fn keys(&self, metadata: &Metadata) -> CachedKeys {
        let source = HttpKeySource::new(self.client.clone(), metadata.jwks_uri.to_string(), PATIENCE);
        let remote = Remote::new(Arc::new(source), KEYS_LIFETIME, PATIENCE, Arc::clone(&self.clock));
        CachedKeys::new(KeySet::default(), Some(remote.named("the OpenID provider")))
    }
}
