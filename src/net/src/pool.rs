//! Connections, each pinned to addresses that were checked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use crate::ClientError;

/// How long connections are kept for the next request.
const KEEP: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// Places that connections are kept for.
const PLACES: u64 = 256;
/// Lines of an answer's head; the reader's buffer grows with it, to 408 KiB at most.
const HEADERS: usize = 100;

/// Keeps connections by the place and the addresses that it was found at. Where a name has moved, nothing is reused.
pub(crate) struct Pool {
    tls: rustls::ClientConfig,
    pinned: Cache<(String, Vec<SocketAddr>), reqwest::Client>,
}

impl Pool {
    pub(crate) fn new() -> Result<Self, ClientError> {
        let pinned = Cache::builder().max_capacity(PLACES).time_to_idle(KEEP).build();
        Ok(Self { tls: tls()?, pinned })
    }

    /// Connections that resolve names by themselves.
    pub(crate) fn open(&self) -> Result<reqwest::Client, ClientError> {
        build(&self.tls, None)
    }

    /// Connections to these addresses and no others, whatever name is asked for.
    pub(crate) fn pinned(
        &self,
        host: &str,
        addresses: Vec<SocketAddr>,
    ) -> Result<reqwest::Client, ClientError> {
        let key = (host.to_owned(), addresses);
        if let Some(client) = self.pinned.get(&key) {
            return Ok(client);
        }
        let client = build(&self.tls, Some(Pinned(key.1.clone().into())))?;
        self.pinned.insert(key, client.clone());
        Ok(client)
    }
}

fn build(tls: &rustls::ClientConfig, pinned: Option<Pinned>) -> Result<reqwest::Client, ClientError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(HEADERS)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(KEEP);
    if let Some(pinned) = pinned {
        builder = builder.dns_resolver(Arc::new(pinned));
    }
    builder.build().map_err(|error| ClientError(error.to_string()))
}

/// The machine's certificates, ring, TLS 1.2 and 1.3.
fn tls() -> Result<rustls::ClientConfig, ClientError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError(error.to_string()))?;
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

/// Knows one place only.
struct Pinned(Arc<[SocketAddr]>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses = Arc::clone(&self.0).to_vec();
        let addresses: Addrs = Box::new(addresses.into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}
