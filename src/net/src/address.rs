//! Classifies IP addresses as public or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Block<A> = (A, u32, &'static str);

/// IPv4 blocks that are not public hosts.
const V4: &[Block<Ipv4Addr>] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "the local link"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a test network"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// IPv6 blocks inside 2000::/3 that are not public hosts; every address outside 2000::/3 is not public.
const V6: &[Block<Ipv6Addr>] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
];

/// IPv6 blocks outside 2000::/3 that have a specific name.
const V6_OUTSIDE: &[Block<Ipv6Addr>] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "this network"),
    (Ipv6Addr::LOCALHOST, 128, "this machine"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "a local translation prefix"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discarded"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a private network"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "the local link"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a private network"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// Returns the name of the non-public block that contains an address; `None` for a public address. An IPv6 address that
/// carries an IPv4 address (mapped, NAT64, 6to4) is classified by the IPv4 address.
///
/// Source: IANA special-purpose address registries; RFC 6052, 8215, 3056.
#[must_use]
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match carried(address) {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            V4.iter().find(|(net, length, _)| in_v4(bits, *net, *length)).map(|(.., name)| *name)
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let named = |table: &'static [Block<Ipv6Addr>]| {
                table.iter().find(|(net, length, _)| in_v6(bits, *net, *length)).map(|(.., name)| *name)
            };
            if bits >> 125 == 1 { named(V6) } else { Some(named(V6_OUTSIDE).unwrap_or("reserved")) }
        }
    }
}

/// Returns the IPv4 address that an IPv6 address carries, or the address itself.
pub(crate) fn carried(address: IpAddr) -> IpAddr {
    let IpAddr::V6(outer) = address else { return address };
    let low = |bits: u128| u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0);
    match outer.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _]
        | [0x64, 0xff9b, 1, 0, 0, 0, _, _] => IpAddr::V4(Ipv4Addr::from_bits(low(outer.to_bits()))),
        [0x2002, ..] => IpAddr::V4(Ipv4Addr::from_bits(low(outer.to_bits() >> 80))),
        _ => address,
    }
}

fn in_v4(bits: u32, net: Ipv4Addr, length: u32) -> bool {
    (bits ^ net.to_bits()).leading_zeros() >= length
}

fn in_v6(bits: u128, net: Ipv6Addr, length: u32) -> bool {
    (bits ^ net.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_every_block_match_and_public_neighbours_do_not() {
        for (net, length, name) in V4 {
            let last = net.to_bits() | u32::MAX.checked_shr(*length).unwrap_or(0);
            for bits in [net.to_bits(), last] {
                assert_eq!(not_public(IpAddr::V4(Ipv4Addr::from_bits(bits))), Some(*name), "{net}/{length}");
            }
        }
        for (net, length, name) in V6.iter().chain(V6_OUTSIDE) {
            let last = net.to_bits() | u128::MAX.checked_shr(*length).unwrap_or(0);
            // The translation prefix is classified by the IPv4 address it carries, if that address is readable.
            let first = if *length == 48 { net.to_bits() | (1 << 64) } else { net.to_bits() };
            for bits in [first, last] {
                assert_eq!(not_public(IpAddr::V6(Ipv6Addr::from_bits(bits))), Some(*name), "{net}/{length}");
            }
        }
        for public in
            ["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"]
                .into_iter()
                .chain(["128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"])
                .chain(["192.0.1.0", "192.0.3.0", "192.88.98.255", "192.167.255.255", "192.169.0.0"])
                .chain(["198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.112.255", "223.255.255.255"])
                .chain([
                    "2001:200::",
                    "2001:db7:ffff::1",
                    "2001:db9::",
                    "2000::1",
                    "3ffe:ffff::",
                    "2606:4700::1",
                ])
        {
            assert_eq!(not_public(public.parse().unwrap()), None, "{public}");
        }
    }
}
