//! The egress guard: checks addresses from graphs and users.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use url::{Host, Url};

use crate::address::{carried, not_public};
use crate::{NetError, NetErrorKind, Resolver};

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an IP address.
    pub host: Host<String>,
    /// The port.
    pub port: u16,
}

/// The operator's settings for outbound calls.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    /// Permitted although not public: exactly these hosts, as a URL spells them, at exactly these ports.
    pub allow: Vec<HostPort>,
    /// Always refused, even if `allow` names them: the service's own listeners and its PostgreSQL. An unspecified
    /// address (0.0.0.0, ::) means every address of this machine.
    pub own: Vec<HostPort>,
}

/// Decides which addresses may be called.
///
/// Libraries that open connections themselves call [`Guard::open`] and connect only to the returned addresses.
pub struct Guard {
    allow: HashSet<HostPort>,
    own: Vec<HostPort>,
    resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// Creates a guard with these exceptions.
    #[must_use]
    pub fn new(egress: Egress, resolver: Arc<dyn Resolver>) -> Self {
        let allow = egress.allow.iter().map(|open| plain(&open.host, open.port)).collect();
        Self { allow, own: egress.own, resolver }
    }

    /// Resolves `host` and returns all its addresses with `port`. Only these may be called.
    ///
    /// # Errors
    /// [`NetErrorKind::Refused`] if any address may not be called; [`NetErrorKind::Unreachable`] if the
    /// name has no address.
    pub async fn open(&self, host: &Host<String>, port: u16) -> Result<Vec<SocketAddr>, NetError> {
        let place = HostPort { host: host.clone(), port };
        let mut found = match host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => self.resolver.resolve(name).await.map_err(|why| {
                NetError::new(NetErrorKind::Unreachable, format!("{host} does not resolve: {why}"))
            })?,
        };
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            return Err(NetError::new(NetErrorKind::Unreachable, format!("{host} has no address")));
        }
        if port == 0 {
            return Err(NetError::refused(format!("{host} has no port 0")));
        }
        let allowed = self.allow.contains(&plain(host, port));
        for address in &found {
            if let Some(what) = not_public(*address).filter(|_| !allowed) {
                let hint = format!("{what}; the operator may allow {host}:{port} with SERVICE_EGRESS_ALLOW");
                return Err(refused(&place, *address, &hint));
            }
            if self.is_own(&place, *address).await {
                return Err(refused(&place, *address, "this service's own"));
            }
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    /// Like [`Guard::open`], for the host and port of a URL.
    pub(crate) async fn open_url(&self, url: &Url) -> Result<Vec<SocketAddr>, NetError> {
        match (url.host(), url.port_or_known_default()) {
            (Some(host), Some(port)) => self.open(&host.to_owned(), port).await,
            _ => Err(NetError::refused("the address has no host")),
        }
    }

    async fn is_own(&self, place: &HostPort, address: IpAddr) -> bool {
        let address = match carried(address) {
            // The kernel connects an unspecified address to loopback.
            address if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            address => address,
        };
        for own in self.own.iter().filter(|own| own.port == place.port) {
            let hit = match &own.host {
                Host::Ipv4(listen) => is_at(IpAddr::V4(*listen), address),
                Host::Ipv6(listen) => is_at(IpAddr::V6(*listen), address),
                Host::Domain(name) => {
                    plain(&own.host, own.port) == plain(&place.host, place.port)
                        || self
                            .resolver
                            .resolve(name)
                            .await
                            .is_ok_and(|found| found.into_iter().any(|listen| carried(listen) == address))
                }
            };
            if hit {
                return true;
            }
        }
        false
    }
}

/// Whether a listener on `listen` accepts connections at `address`.
fn is_at(listen: IpAddr, address: IpAddr) -> bool {
    if !listen.is_unspecified() {
        return carried(listen) == address;
    }
    // Binding succeeds only for this machine's addresses.
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Normalises an endpoint: no trailing dot, no IPv4 inside IPv6.
fn plain(host: &Host<String>, port: u16) -> HostPort {
    let host = match host {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_ascii_lowercase()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => match IpAddr::V6(*address).to_canonical() {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        },
    };
    HostPort { host, port }
}

fn refused(place: &HostPort, address: IpAddr, what: &str) -> NetError {
    let HostPort { host, port } = place;
    let where_to = match host {
        Host::Domain(_) => format!("{host}:{port} ({address})"),
        _ => format!("{host}:{port}"),
    };
    NetError::refused(format!("{where_to} may not be called: {what}"))
}
