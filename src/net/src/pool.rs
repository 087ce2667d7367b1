//! Connections, each pinned to checked addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use crate::ClientError;

/// Idle time after which connections are closed.
const KEEP: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum endpoints with pooled connections.
const PLACES: u64 = 256;
/// Maximum header lines in a response; the reader's buffer grows with them, to at most 408 KiB.
const HEADERS: usize = 100;

/// Pools connections by host and resolved addresses. A name that resolves to new addresses gets new connections.
pub(crate) struct ConnectionPool {
    tls: rustls::ClientConfig,
    pinned: Cache<(String, Vec<SocketAddr>), reqwest::Client>,
}

impl ConnectionPool {
    pub(crate) fn new() -> Result<Self, ClientError> {
        let pinned = Cache::builder().max_capacity(PLACES).time_to_idle(KEEP).build();
        Ok(Self { tls: tls()?, pinned })
    }

    /// Returns a client that resolves names itself.
    pub(crate) fn open(&self) -> Result<reqwest::Client, ClientError> {
        build(&self.tls, None)
    }

    /// Returns a client that connects only to these addresses, whatever the host name.
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

/// TLS 1.2 and 1.3 with ring and the machine's certificates.
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

/// Resolves every name to the same addresses.
struct Pinned(Arc<[SocketAddr]>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses = Arc::clone(&self.0).to_vec();
        let addresses: Addrs = Box::new(addresses.into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}
