//! How much sign-in mail is sent, and whose requests count together.

use std::net::IpAddr;

use chrono::TimeDelta;

/// At most `most` mails within `window`, counted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailLimit {
    /// How many.
    pub most: i64,
    /// In how long.
    pub window: TimeDelta,
}

/// To one mail address.
pub const PER_ADDRESS: MailLimit = MailLimit { most: 5, window: TimeDelta::minutes(15) };
/// For one client.
pub const PER_CLIENT: MailLimit = MailLimit { most: 20, window: TimeDelta::hours(1) };

/// Under what a client's requests are counted: its address, or of an IPv6 address the network that one customer is
/// usually given.
#[must_use]
pub fn client_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_customer_is_one_client() {
        let key = |text: &str| client_key(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), "192.0.2.1");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(key("2001:db8:1:2:3::4"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
    }
}
