//! A request's client address.
//!
//! The peer's own address counts. Only if the peer is a trusted proxy, `X-Forwarded-For` is read from the right: the
//! first address that is not a trusted proxy is the client. Unreadable entries are not trusted.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

/// Returns the client's address. `forwarded` holds every `X-Forwarded-For` value in header order.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded: impl DoubleEndedIterator<Item = &'a str>,
    trusted: &[IpNet],
) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if !is_trusted(peer) {
        return peer;
    }
    let mut nearest = peer;
    for hop in forwarded.rev().flat_map(|value| value.rsplit(',')) {
        let Some(address) = parse(hop.trim()) else { return nearest };
        if !is_trusted(address) {
            return address;
        }
        nearest = address;
    }
    nearest
}

/// An address as proxies write it: some add a port, and then put IPv6 in brackets.
fn parse(hop: &str) -> Option<IpAddr> {
    let bare = match hop.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => match hop.split_once(':') {
            Some((address, port)) if !port.contains(':') => address,
            _ => hop,
        },
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The address or network for counting: an IPv4 address itself, or an IPv6 address's whole /64, which one client has.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// The key for counting an address's failures.
#[must_use]
pub fn failure_key(address: IpAddr) -> String {
    match network(address) {
        IpAddr::V4(address) => format!("address:{address}"),
        IpAddr::V6(network) => format!("address:{network}/64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), forwarded.iter().copied(), &trusted).to_string()
    }

    #[test]
    fn forwarded_addresses_are_accepted_from_trusted_proxies_only() {
        let proxies = ["10.0.0.0/8", "::1/128"];
        let rows: [(&str, &[&str], &str); 13] = [
            ("192.0.2.1", &[], "192.0.2.1"),
            ("192.0.2.1", &["198.51.100.7"], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            // The rightmost address that is not a proxy; anybody may have written those to its left.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["10.0.0.9"], "10.0.0.9"),
            ("10.0.0.1", &["garbage"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7, garbage"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("::ffff:10.0.0.1", &["198.51.100.7:1234"], "198.51.100.7"),
            ("::1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("::1", &["::ffff:198.51.100.7"], "198.51.100.7"),
        ];
        for (peer, forwarded, expected) in rows {
            assert_eq!(client(peer, forwarded, &proxies), expected, "{peer} {forwarded:?}");
        }
        assert_eq!(client("10.0.0.1", &["198.51.100.7"], &[]), "10.0.0.1", "no proxy is trusted");
    }

    #[test]
    fn failures_are_counted_per_v4_address_and_v6_network() {
        let key = |text: &str| failure_key(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), "address:192.0.2.1");
        assert_eq!(key("::ffff:192.0.2.1"), "address:192.0.2.1");
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "address:2001:db8:1:2::/64");
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
    }
}
