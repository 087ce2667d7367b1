//! Parses a request's `Host` strictly and decides whether it names this service.
//!
//! A `Host` is a host and an optional port (RFC 9110, section 7.2). Anything else would become part of an address that
//! the service writes, such as a mail link or a redirect.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum host name bytes.
const MAX_NAME: usize = 253;
/// Maximum label bytes between two dots.
const MAX_LABEL: usize = 63;

/// A host and an optional port, normalised: lowercase, without the final dot of an absolute name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHost {
    name: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    Domain(String),
}

impl RequestHost {
    /// Parses a `Host` header; `None` unless it is exactly a host with an optional port.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?) };
                (Name::Address(address.into()), port)
            }
            None => {
                let (name, port) = match text.split_once(':') {
                    Some((name, port)) => (name, Some(port)),
                    None => (text, None),
                };
                (Name::parse(name)?, port)
            }
        };
        Some(Self { name, port: port.map(parse_port).transpose().ok()? })
    }

    /// The host without its port: a name, or an address (IPv6 in brackets).
    #[must_use]
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// The port, if the header has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether it is `localhost` or a loopback address. Names below `localhost` are not: each may be another site.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match &self.name {
            Name::Address(address) => address.to_canonical().is_loopback(),
            Name::Domain(name) => name == "localhost",
        }
    }

    /// The only label in front of `domain`, which is lowercase; `None` for deeper names.
    #[must_use]
    pub fn label_below(&self, domain: &str) -> Option<String> {
        let Name::Domain(name) = &self.name else { return None };
        let label = name.strip_suffix(domain)?.strip_suffix('.')?;
        (!label.contains('.')).then(|| label.to_owned())
    }

    /// Whether it is this domain or a name below it.
    #[must_use]
    pub fn is_within(&self, domain: &str) -> bool {
        let Name::Domain(name) = &self.name else { return false };
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        name.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

impl fmt::Display for RequestHost {
    /// Formats the host as in an origin.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => self.name.fmt(f),
        }
    }
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let good = name.len() <= MAX_NAME && name.split('.').all(is_label);
        // Browsers parse a name that ends in a number as an alternative IPv4 notation.
        let numeric = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
        (good && !numeric).then(|| Self::Domain(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Domain(name) => f.write_str(name),
        }
    }
}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// `u16::from_str` alone accepts a sign.
fn parse_port(text: &str) -> Result<u16, ()> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(drop) } else { Err(()) }
}

/// The names under which clients reach the service.
#[derive(Debug, Clone, Copy)]
pub struct OwnNames<'a> {
    /// The host of `SERVICE_PUBLIC_BASE_URL`, in URL form.
    pub public: Option<&'a str>,
    /// `SERVICE_APPS_DOMAIN`: names in it belong to app publishers.
    pub apps: &'a str,
    /// The listener's address.
    pub listener: SocketAddr,
}

impl OwnNames<'_> {
    /// Whether `host`, requested by this peer, is a name of the service.
    ///
    /// A page can resolve its own name to a loopback address (DNS rebinding), so a loopback listener accepts only the
    /// loopback names and the configured name. A reachable listener does not know all its names; it rejects only
    /// impossible ones.
    #[must_use]
    pub fn include(&self, host: &RequestHost, peer: IpAddr) -> bool {
        if self.public.is_some_and(|public| host.name().eq_ignore_ascii_case(public)) {
            return true;
        }
        if host.is_within(self.apps) || (host.is_within("localhost") && !host.is_loopback()) {
            return false;
        }
        if host.is_loopback() { peer.to_canonical().is_loopback() } else { !self.is_loopback_listener() }
    }

    /// Whether a request proves by itself that it comes from this machine. Its `Host` may then become part of a link
    /// that leaves the service.
    #[must_use]
    pub fn is_local(&self, host: &RequestHost, peer: IpAddr, forwarded: bool) -> bool {
        // Other ports and loopback addresses belong to other programs on this machine.
        let is_listener = host.port().unwrap_or(80) == self.listener.port()
            && match &host.name {
                Name::Address(address) => address.to_canonical() == self.listener.ip().to_canonical(),
                Name::Domain(_) => host.is_loopback(),
            };
        self.is_loopback_listener() && !forwarded && is_listener && peer.to_canonical().is_loopback()
    }

    /// Whether only this machine reaches the listener.
    fn is_loopback_listener(&self) -> bool {
        self.listener.ip().to_canonical().is_loopback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        RequestHost::parse(text).map(|host| host.to_string())
    }

    #[test]
    fn a_host_and_a_port_are_parsed_and_normalised() {
        for (text, normalised) in [
            ("localhost", "localhost"),
            ("LocalHost:8000", "localhost:8000"),
            ("desk.example.org.", "desk.example.org"),
            ("desk.example.org.:80", "desk.example.org:80"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]", "[::1]"),
            ("[2001:DB8::1]:65535", "[2001:db8::1]:65535"),
            ("a_b-c.example:080", "a_b-c.example:80"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(normalised), "{text}");
        }
    }

    #[test]
    fn other_text_is_not_a_host() {
        for text in [
            "",
            ":80",
            ".",
            "..",
            "a..b",
            ".a",
            "evil.test/x?.localhost",
            "evil.test#.localhost",
            "evil.test/.localhost",
            "evil.test\\.localhost",
            "evil.test?.localhost",
            "user@localhost",
            "user:pass@localhost",
            "localhost:",
            "localhost:x",
            "localhost:+80",
            "localhost:-1",
            "localhost:65536",
            "localhost:000080",
            "localhost:80:80",
            "localhost:80/",
            "http://localhost",
            "a b",
            " localhost",
            "localhost ",
            "localhost\t",
            "a,b",
            "a;b",
            "%6cocalhost",
            "löcalhost",
            "*",
            "*.localhost",
            "::1",
            "[::1",
            "[::1]80",
            "[::1%25lo]",
            "[127.0.0.1]",
            "127.1",
            "2130706433",
            "0x7f.1",
            "127.0.0.1.5",
            "256.0.0.1",
        ] {
            assert_eq!(shown(text), None, "{text:?}");
        }
        assert_eq!(shown(&"a".repeat(64)), None);
        assert_eq!(shown(&vec!["a".repeat(60); 5].join(".")), None);
    }

    #[test]
    fn local_machine_names_are_loopback_but_subdomains_of_localhost_are_not() {
        let loopback = |text: &str| RequestHost::parse(text).unwrap().is_loopback();
        for text in [
            "localhost",
            "LOCALHOST:8000",
            "localhost.",
            "127.0.0.1:80",
            "127.9.9.9",
            "[::1]:1",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(loopback(text), "{text}");
        }
        for text in ["a.localhost", "evil.apps.localhost", "localhost.evil.example", "10.0.0.1", "[::2]:80"] {
            assert!(!loopback(text), "{text}");
        }
    }

    #[test]
    fn a_service_recognizes_its_host_names() {
        let loopback =
            OwnNames { public: None, apps: "apps.localhost", listener: ([127, 0, 0, 1], 8000).into() };
        let public = OwnNames { listener: ([0, 0, 0, 0], 8000).into(), ..loopback };
        let named = OwnNames { public: Some("desk.localhost"), ..loopback };
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let rows = [
            // host, peer, loopback listener, reachable listener, with the public name desk.localhost
            ("localhost:8000", here, true, true, true),
            ("127.0.0.1", here, true, true, true),
            ("localhost:9999", there, false, false, false),
            ("desk.localhost", here, false, false, true),
            ("evil.localhost", here, false, false, false),
            ("apps.localhost", here, false, false, false),
            ("evil.apps.localhost", there, false, false, false),
            ("desk.example.org", there, false, true, false),
            ("xapps.localhost", here, false, false, false),
        ];
        for (text, peer, on_loopback, reachable, with_name) in rows {
            let host = RequestHost::parse(text).unwrap();
            let seen = [loopback, public, named].map(|names| names.include(&host, peer));
            assert_eq!(seen, [on_loopback, reachable, with_name], "{text} from {peer}");
        }
    }

    #[test]
    fn only_a_local_request_sets_the_host_of_links() {
        let loopback =
            OwnNames { public: None, apps: "apps.localhost", listener: ([127, 0, 0, 1], 8000).into() };
        let reachable = OwnNames { listener: ([0, 0, 0, 0], 8000).into(), ..loopback };
        let (here, there): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let local = RequestHost::parse("localhost:8000").unwrap();
        let foreign = RequestHost::parse("desk.example.org").unwrap();
        assert!(loopback.is_local(&local, here, false));
        assert!(!loopback.is_local(&local, here, true), "through a proxy");
        assert!(!loopback.is_local(&local, there, false));
        assert!(!loopback.is_local(&foreign, here, false));
        for other in ["localhost:9999", "localhost", "127.9.9.9:8000", "[::1]:8000"] {
            let other = RequestHost::parse(other).unwrap();
            assert!(!loopback.is_local(&other, here, false), "{other} is another program's");
        }
        assert!(loopback.is_local(&RequestHost::parse("127.0.0.1:8000").unwrap(), here, false));
        let web = OwnNames { listener: ([127, 0, 0, 1], 80).into(), ..loopback };
        assert!(web.is_local(&RequestHost::parse("localhost").unwrap(), here, false));
        assert!(!reachable.is_local(&local, here, false));
    }
}
