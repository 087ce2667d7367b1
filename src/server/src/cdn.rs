//! The hosted chat widget's script from its CDN: cached, revalidated, and served for a day if the CDN fails.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use config::Integrity;
use kernel::Clock;
use net::{Client, Limits, Method, NetError, Request, Response, StatusCode};
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA384, digest};
use tokio::task::JoinHandle;

/// The script's path on the CDN.
const PATH: &str = "/deployments/chatkit/chatkit.js";
/// Maximum age of a script without confirmation by the CDN.
const MAX_STALE: Duration = Duration::from_secs(24 * 3_600);
/// Pause before the next request after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Maximum script bytes.
const MAX_BYTES: u64 = 5 << 20;
/// Timeouts for the response head and for the whole response.
const HEAD: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(10);

/// The script as served.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) bytes: Bytes,
    /// The `ETag`, with its quotes.
    pub(crate) tag: String,
}

/// The error if the script is unavailable.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoScript(String);

/// Fetches and caches the script. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WidgetScript {
    inner: Arc<ScriptSource>,
}

struct ScriptSource {
    client: Client,
    url: String,
    /// Time during which a script is served without asking the CDN.
    ttl: Duration,
    integrity: Option<Integrity>,
    clock: Arc<dyn Clock>,
    state: Mutex<ScriptCache>,
    /// Held while the CDN is queried, so that concurrent callers share the response.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ScriptCache {
    cached: Option<Cached>,
    /// The monotonic time and the error of the last CDN failure.
    failed: Option<(Duration, NoScript)>,
}

#[derive(Clone)]
struct Cached {
    script: Script,
    /// The CDN's `ETag`.
    validator: Option<String>,
    /// The last time the CDN confirmed this script, in monotonic time.
    checked: Duration,
}

impl WidgetScript {
    pub(crate) fn new(client: Client, config: &config::Chat, clock: Arc<dyn Clock>) -> Self {
        let url = config.cdn_base_url.join(PATH);
        let (ttl, integrity) = (config.cdn_cache_ttl, config.cdn_integrity.clone());
        let (state, fetching) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { inner: Arc::new(ScriptSource { client, url, ttl, integrity, clock, state, fetching }) }
    }

    /// Returns the script, confirmed by the CDN within the time to live if the CDN responds.
    ///
    /// # Errors
    /// [`NoScript`] if the CDN fails and no script from the last 24 hours is cached.
    pub(crate) async fn get(&self) -> Result<Script, NoScript> {
        let inner = &self.inner;
        let begun = inner.clock.monotonic();
        let cached = inner.state.lock().cached.clone();
        match cached {
            Some(cached) if begun.saturating_sub(cached.checked) < inner.ttl => Ok(cached.script),
            // If a recent script is usable, a page does not wait for the CDN.
            Some(cached) if !inner.ttl.is_zero() && inner.is_usable(&cached, begun) => {
                if inner.fetching.try_lock().is_ok() {
                    drop(self.refreshed(begun));
                }
                Ok(cached.script)
            }
            _ => self.refreshed(begun).await.unwrap_or_else(|error| Err(NoScript(error.to_string()))),
        }
    }

    /// Queries the CDN on a separate task, so that a caller who leaves does not cancel it for others.
    fn refreshed(&self, begun: Duration) -> JoinHandle<Result<Script, NoScript>> {
        let script = self.clone();
        tokio::spawn(async move { script.inner.refresh(begun).await })
    }
}

impl ScriptSource {
    fn is_usable(&self, cached: &Cached, now: Duration) -> bool {
        now.saturating_sub(cached.checked) < MAX_STALE.max(self.ttl)
    }

    /// Queries the CDN, unless another caller has done so since `begun` or it failed a moment ago.
    async fn refresh(&self, begun: Duration) -> Result<Script, NoScript> {
        let _alone = self.fetching.lock().await;
        let now = self.clock.monotonic();
        let (cached, failed) = {
            let state = self.state.lock();
            (state.cached.clone(), state.failed.clone())
        };
        let usable = cached.clone().filter(|cached| self.is_usable(cached, now)).map(|cached| cached.script);
        if let Some(cached) = cached.as_ref().filter(|cached| cached.checked >= begun) {
            return Ok(cached.script.clone());
        }
        if let Some((at, error)) = failed
            && now.saturating_sub(at) < RETRY_PAUSE
        {
            return usable.ok_or(error);
        }
        match self.fetch(cached).await {
            Ok(fetched) => {
                let script = fetched.script.clone();
                *self.state.lock() = ScriptCache { cached: Some(fetched), failed: None };
                Ok(script)
            }
            Err(error) => {
                tracing::warn!(%error, url = self.url, "failed to fetch the script of the chat widget");
                self.state.lock().failed = Some((self.clock.monotonic(), error.clone()));
                usable.ok_or(error)
            }
        }
    }

    async fn fetch(&self, cached: Option<Cached>) -> Result<Cached, NoScript> {
        let failed = |error: NetError| NoScript(error.message);
        let limits = Limits {
            head: HEAD,
            total: Some(TOTAL),
            idle: TOTAL,
            rate: None,
            body_bytes: MAX_BYTES,
            redirects: 0,
            same_origin: true,
            ..Limits::default()
        };
        let mut request = Request::new(Method::GET, self.url.as_str())
            .header("accept", "text/javascript, application/javascript")
            .map_err(failed)?;
        let validator = cached.as_ref().and_then(|cached| cached.validator.as_deref());
        if let Some(validator) = validator {
            request = request.header("if-none-match", validator).map_err(failed)?;
        }
        let answer = self.client.send(request, &limits).await.map_err(failed)?;
        match (answer.status(), cached) {
            (StatusCode::NOT_MODIFIED, Some(cached)) => {
                Ok(Cached { checked: self.clock.monotonic(), ..cached })
            }
            (StatusCode::OK, _) => self.read(answer).await,
            (status, _) => Err(NoScript(format!("the CDN returned {status}"))),
        }
    }

    async fn read(&self, answer: Response) -> Result<Cached, NoScript> {
        let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let kind = text("content-type").unwrap_or_default();
        if !is_script(kind) {
            return Err(NoScript(format!(
                "the CDN returned the media type '{kind}'; expected text/javascript"
            )));
        }
        let validator = text("etag").map(str::to_owned);
        let bytes = answer.bytes().await.map_err(|error| NoScript(error.message))?;
        if let Some(integrity) = &self.integrity
            && digest(&SHA384, &bytes).as_ref() != integrity.0
        {
            return Err(NoScript(
                "the script does not have the digest in SERVICE_CHAT_CDN_INTEGRITY".to_owned(),
            ));
        }
        let tag = hex::encode(digest(&SHA256, &bytes).as_ref().get(..16).unwrap_or_default());
        let script = Script { bytes, tag: format!("\"{tag}\"") };
        // The current time counts, so that callers who arrived during the read share the result.
        Ok(Cached { script, validator, checked: self.clock.monotonic() })
    }
}

/// Whether a media type is JavaScript.
fn is_script(kind: &str) -> bool {
    let name = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(name.as_str(), "text/javascript" | "application/javascript" | "application/x-javascript")
}
