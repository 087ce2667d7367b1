//! Addresses: base addresses, origins, networks, hosts.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

use crate::parse::json_list;
use crate::problem::Invalid;

/// An http or https address on which other addresses build: no query, no fragment, no user, no trailing slash.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    text: String,
}

impl BaseUrl {
    /// The address without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address as a URL, for its host, port and scheme.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Appends a path with exactly one slash in between, whether or not `path` starts with one.
    #[must_use]
    pub fn join(&self, path: &str) -> String {
        format!("{}/{}", self.text, path.trim_start_matches('/'))
    }

    /// The browser's origin for it: scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Browser origins that may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowOrigins {
    /// `["*"]`: any origin, without credentials.
    Any,
    /// Exactly these, in addition to the service's own.
    List(Vec<String>),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A lowercase name or an address.
    pub host: Host<String>,
    /// 1 to 65535.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Whether the host name itself means this machine; names that only resolve to it do not count.
pub(crate) fn is_loopback<S: AsRef<str>>(host: &Host<S>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
        Host::Domain(name) => {
            let name = name.as_ref().trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// An http or https address without query, fragment or user.
pub(crate) fn web_url(text: &str) -> Result<Url, Invalid> {
    let instead = "write an http or https address such as https://service.example.com";
    let url = Url::parse(text).map_err(|_| Invalid::new("is not a URL", instead))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Invalid::new("is not an http or https address", instead));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Invalid::new("contains a user or a password", instead).hidden());
    }
    if url.fragment().is_some() {
        return Err(Invalid::new("contains a fragment (#)", "remove everything from the # on"));
    }
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(Invalid::new("contains a space or a line break", instead));
    }
    Ok(url)
}

/// Like [`web_url`], but plain http only to this machine: content fetched from there decides who is let in.
pub(crate) fn trusted_url(text: &str) -> Result<Url, Invalid> {
    let url = web_url(text)?;
    let safe = url.scheme() == "https" || url.host().is_some_and(|host| is_loopback(&host));
    if safe {
        Ok(url)
    } else {
        Err(Invalid::new("is plain http to another machine", "write an https address"))
    }
}

/// The issuer of an OpenID provider: like [`trusted_url`], and without a query because a path is appended.
pub(crate) fn issuer(text: &str) -> Result<Url, Invalid> {
    let url = trusted_url(text)?;
    if url.query().is_some() {
        return Err(Invalid::new(
            "contains a query (?)",
            "write the issuer exactly as the provider documents it",
        ));
    }
    Ok(url)
}

/// A base address; trailing slashes make no difference.
pub(crate) fn base_url(text: &str) -> Result<BaseUrl, Invalid> {
    let url = web_url(text)?;
    if url.query().is_some() {
        return Err(Invalid::new("contains a query (?)", "remove everything from the ? on"));
    }
    if url.path().trim_end_matches('/').contains("//") {
        return Err(Invalid::new("contains two slashes in a row within its path", "write single slashes"));
    }
    let text = url.as_str().trim_end_matches('/').to_owned();
    Ok(BaseUrl { url, text })
}

/// The origins that `SERVICE_CORS_ALLOW_ORIGINS` lists.
pub(crate) fn origins(text: &str) -> Result<AllowOrigins, Invalid> {
    let given = json_list(text, r#"["https://www.example.com"]"#)?;
    if given.iter().any(|origin| origin == "*") {
        return if given.len() == 1 {
            Ok(AllowOrigins::Any)
        } else {
            Err(Invalid::new("mixes \"*\" with other origins", "write [\"*\"] alone, or only exact origins"))
        };
    }
    let mut origins = Vec::with_capacity(given.len());
    for origin in given {
        check_origin(&origin)?;
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Ok(AllowOrigins::List(origins))
}

/// Browsers send one spelling of an origin, so any other would never match.
fn check_origin(origin: &str) -> Result<(), Invalid> {
    let example = "write each as scheme://host or scheme://host:port, such as https://www.example.com";
    let wrong = |what: &str, instead: &str| Err(Invalid::new(format!("lists an origin {what}"), instead));
    if origin == "null" {
        return wrong("\"null\", which any sandboxed page can send", "leave it out");
    }
    if origin.contains('*') {
        return wrong("with * inside it", "write exact origins, or [\"*\"] alone");
    }
    let Ok(url) = Url::parse(origin) else {
        return wrong("that is not one", example);
    };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("that is neither http nor https", example);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Invalid::new("lists an origin with a user or a password", example).hidden());
    }
    let exact = url.origin().ascii_serialization();
    if exact == origin {
        return Ok(());
    }
    let what = if !origin.is_ascii() {
        "with a letter outside ASCII"
    } else if origin.strip_prefix(&exact) == Some("/") {
        "with a trailing slash"
    } else if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        "with more than scheme, host and port"
    } else {
        "that browsers spell differently"
    };
    wrong(what, &format!("write {exact}"))
}

/// A JSON list of networks or single addresses.
pub(crate) fn networks(text: &str) -> Result<Vec<IpNet>, Invalid> {
    let example = r#"["10.0.0.0/8", "192.0.2.7"]"#;
    let mut networks = Vec::new();
    for (index, item) in json_list(text, example)?.iter().enumerate() {
        let network =
            item.trim().parse::<IpNet>().or_else(|_| item.trim().parse::<IpAddr>().map(IpNet::from));
        let Ok(network) = network else {
            let place = index.saturating_add(1);
            return Err(Invalid::new(
                format!("has an entry that is not a network or address, number {place}"),
                format!("write JSON such as {example}"),
            ));
        };
        networks.push(network.trunc());
    }
    Ok(networks)
}

/// A JSON list of `host:port`.
pub(crate) fn host_ports(text: &str) -> Result<Vec<HostPort>, Invalid> {
    let example = r#"["intranet.example:8080", "[::1]:9000"]"#;
    let mut hosts = Vec::new();
    for (index, item) in json_list(text, example)?.iter().enumerate() {
        let Some(host) = host_port(item.trim()) else {
            let place = index.saturating_add(1);
            return Err(Invalid::new(
                format!("has an entry that is not host:port, number {place}"),
                format!("write JSON such as {example}"),
            ));
        };
        hosts.push(host);
    }
    Ok(hosts)
}

fn host_port(text: &str) -> Option<HostPort> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    Some(HostPort { host: host_name(host)?, port })
}

/// A name or an address; IPv6 needs brackets, and `*` is rejected.
fn host_name(text: &str) -> Option<Host<String>> {
    if text.is_empty() || text.contains(['*', '@', '%', ' ']) { None } else { Host::parse(text).ok() }
}

/// A listen address or name, IPv6 with or without brackets.
pub(crate) fn listen_host(text: &str) -> Result<String, Invalid> {
    let refused =
        |what: &str| Invalid::new(what, "write an address or a name alone, such as 127.0.0.1 or 0.0.0.0");
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    if text.contains("://") {
        return Err(refused("is a URL, not a host"));
    }
    if text.contains(':') {
        return Err(Invalid::new("contains a port", "write the host alone and the port into SERVICE_PORT"));
    }
    domain(text).map_err(|_| refused("is neither an address nor a host name"))
}

/// A domain name in lowercase.
pub(crate) fn domain(text: &str) -> Result<String, Invalid> {
    let refused = || Invalid::new("is not a domain name", "write a name alone, such as apps.example.com");
    let Some(Host::Domain(name)) = host_name(text) else { return Err(refused()) };
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if name.len() <= 253 && name.split('.').all(label) { Ok(name) } else { Err(refused()) }
}

/// Checks an address that may contain a password. Errors repeat none of it.
pub(crate) fn secret_url(text: &str, schemes: &[&str], instead: &str) -> Result<(), Invalid> {
    let url = Url::parse(text).map_err(|_| Invalid::new("is not a URL", instead))?;
    if !schemes.contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(Invalid::new(
            format!("is not an address with {} and a host", schemes.join(" or ")),
            instead,
        ));
    }
    Ok(())
}
