//! Keys for RS256 tokens: the configured ones, and those at `SERVICE_AUTH_JWKS_URL`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auth::jwt::jwks::{BadKeySet, CachedKeys, FetchFailed, KeySet, KeySource, MOST_BYTES, Remote};
use config::Jwks;
use kernel::Clock;
use net::{Client, Limits, Method, NetError, Request, StatusCode};

/// Returns the configured keys; `None` if none are configured.
///
/// `client` is the operator client, since the operator chooses the URL; it does not follow redirects.
///
/// # Errors
/// [`BadKeySet`] if the configured set is invalid.
pub(super) fn keys(
    config: &Jwks,
    client: &Client,
    clock: &Arc<dyn Clock>,
) -> Result<Option<CachedKeys>, BadKeySet> {
    let fixed = config.static_keys.as_ref().map(|keys| KeySet::parse(keys.set.to_string().as_bytes()));
    let fixed = fixed.transpose()?;
    let remote = config.url.as_ref().map(|url| {
        let source = HttpKeySource::new(client.clone(), url.to_string(), config.timeout);
        Remote::new(Arc::new(source), config.cache_ttl, config.timeout, Arc::clone(clock))
    });
    if fixed.is_none() && remote.is_none() {
        return Ok(None);
    }
    Ok(Some(CachedKeys::new(fixed.unwrap_or_default(), remote)))
}

/// A key set at a URL.
pub(crate) struct HttpKeySource {
    client: Client,
    url: String,
    limits: Limits,
}

impl HttpKeySource {
    pub(crate) fn new(client: Client, url: String, limit: Duration) -> Self {
        let limits = Limits {
            head: limit,
            total: Some(limit),
            idle: limit,
            rate: None,
            body_bytes: u64::try_from(MOST_BYTES).unwrap_or(u64::MAX),
            redirects: 0,
            same_origin: true,
            ..Limits::default()
        };
        Self { client, url, limits }
    }
}

#[async_trait]
impl KeySource for HttpKeySource {
    async fn fetch(&self) -> Result<Vec<u8>, FetchFailed> {
        let failed = |error: NetError| FetchFailed(error.message);
        let request = Request::new(Method::GET, self.url.as_str());
        let request =
            request.header("accept", "application/jwk-set+json, application/json").map_err(failed)?;
        let answer = self.client.send(request, &self.limits).await.map_err(failed)?;
        if answer.status() != StatusCode::OK {
            return Err(FetchFailed(format!("the response is {}", answer.status())));
        }
        answer.bytes().await.map(Into::into).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::SystemClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// Answers every request with these bytes. If `slowly`, continues with occasional spaces until the client leaves.
    async fn provider(answer: Vec<u8>, slowly: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let _ = stream.read(&mut request).await;
                    let mut open = stream.write_all(&answer).await.is_ok();
                    while slowly && open {
                        SystemClock::new().sleep(Duration::from_millis(20)).await;
                        open = stream.write_all(b" ").await.is_ok();
                    }
                });
            }
        });
        url
    }

    async fn fetch(url: String, limit: Duration) -> Result<Vec<u8>, FetchFailed> {
        let client = Client::operator(Arc::new(SystemClock::new())).unwrap();
        HttpKeySource::new(client, url, limit).fetch().await
    }

    async fn fetched(answer: impl Into<Vec<u8>>) -> Result<Vec<u8>, FetchFailed> {
        fetch(provider(answer.into(), false).await, Duration::from_secs(10)).await
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    }

    #[test]
    fn the_configuration_selects_the_key_source() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let client = Client::operator(Arc::clone(&clock)).unwrap();
        let count = |url: Option<&str>, set: Option<serde_json::Value>| {
            let config = Jwks {
                url: url.map(|url| url.parse().unwrap()),
                static_keys: set.map(|set| config::StaticJwks { variable: "SERVICE_AUTH_JWKS", set }),
                cache_ttl: Duration::from_secs(300),
                timeout: Duration::from_secs(5),
            };
            keys(&config, &client, &clock).map(|keys| keys.is_some())
        };
        let set = serde_json::json!({"keys": []});
        assert_eq!(count(None, None), Ok(false));
        assert_eq!(count(Some("https://issuer.example/keys"), None), Ok(true));
        assert_eq!(count(None, Some(set.clone())), Ok(true));
        assert_eq!(count(Some("https://issuer.example/keys"), Some(set)), Ok(true));
        assert_eq!(count(None, Some(serde_json::json!({}))), Err(BadKeySet::NoKeys));
    }

    #[tokio::test]
    async fn the_body_of_a_good_response_is_returned() {
        assert_eq!(fetched(ok(r#"{"keys":[]}"#)).await.unwrap(), br#"{"keys":[]}"#);
        assert!(fetched(ok(&" ".repeat(MOST_BYTES))).await.is_ok());
    }

    #[tokio::test]
    async fn other_responses_are_failures() {
        let elsewhere = provider(ok("{}").into(), false).await;
        let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
        let endless = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", " ".repeat(MOST_BYTES + 1));
        for answer in [
            redirect,
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            "HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{}".to_owned(),
            ok(&" ".repeat(MOST_BYTES + 1)),
            endless,
            "no HTTP".to_owned(),
        ] {
            let name: String = answer.chars().take(40).collect();
            assert!(fetched(answer).await.is_err(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_slow_body_times_out() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_vec();
        let failed = fetch(provider(head, true).await, Duration::from_millis(200)).await;
        assert!(failed.is_err());
    }

    #[tokio::test]
    async fn a_refused_connection_is_a_failure_without_the_path() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
        drop(listener);
        let failed = fetch(url, Duration::from_secs(10)).await.unwrap_err();
        assert!(!failed.0.contains("secret-path"), "{failed}");
    }
}
