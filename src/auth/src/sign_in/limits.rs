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

/// To one mail address, for one asking client: what others ask for does not count.
pub const PER_ADDRESS: MailLimit = MailLimit { most: 5, window: TimeDelta::minutes(15) };
/// The same, of a whole day: with [`super::TRIES`] guesses each, one client finds a code with a chance of 0.005 %.
pub const PER_ADDRESS_AND_DAY: MailLimit = MailLimit { most: 10, window: TimeDelta::days(1) };
/// Codes to one mail address, for all clients together: 0.015 % a day. After that a mail has its link alone.
pub const CODES_PER_ADDRESS: MailLimit = MailLimit { most: 30, window: TimeDelta::days(1) };
/// Mails with a link alone, to one mail address.
pub const LINKS_PER_ADDRESS: MailLimit = MailLimit { most: 1, window: TimeDelta::hours(1) };
/// To any address, for one network address.
pub const PER_CLIENT: MailLimit = MailLimit { most: 20, window: TimeDelta::hours(1) };

/// How much mail was sent, each within the window of its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Against [`PER_ADDRESS`].
    pub to_address: i64,
    /// Against [`PER_ADDRESS_AND_DAY`].
    pub to_address_today: i64,
    /// Against [`CODES_PER_ADDRESS`].
    pub codes: i64,
    /// Against [`LINKS_PER_ADDRESS`].
    pub links: i64,
    /// Against [`PER_CLIENT`].
    pub by_client: i64,
}

/// What a requested mail may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailContent {
    /// A code, and a link where the service knows its own address.
    Code,
    /// A link alone, which cannot be guessed.
    Link,
    /// Nothing is sent.
    Nothing,
}

impl Sent {
    /// What the next mail may hold.
    #[must_use]
    pub fn allows(self) -> MailContent {
        let too_many = self.to_address >= PER_ADDRESS.most
            || self.to_address_today >= PER_ADDRESS_AND_DAY.most
            || self.by_client >= PER_CLIENT.most;
        if too_many {
            MailContent::Nothing
        } else if self.codes < CODES_PER_ADDRESS.most {
            MailContent::Code
        } else if self.links < LINKS_PER_ADDRESS.most {
            MailContent::Link
        } else {
            MailContent::Nothing
        }
    }
}

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
    fn a_code_becomes_a_link_and_a_link_nothing() {
        let full = Sent { codes: 30, ..Sent::default() };
        assert_eq!(Sent { codes: 29, ..full }.allows(), MailContent::Code);
        assert_eq!(full.allows(), MailContent::Link);
        assert_eq!(Sent { links: 1, ..full }.allows(), MailContent::Nothing);
        for over in [
            Sent { to_address: 5, ..Sent::default() },
            Sent { to_address_today: 10, ..Sent::default() },
            Sent { by_client: 20, ..Sent::default() },
        ] {
            assert_eq!(over.allows(), MailContent::Nothing, "{over:?}");
        }
        // 5 tries for each code, of a million: at most 0.05 % a day.
        let guesses = CODES_PER_ADDRESS.most * i64::from(crate::sign_in::TRIES);
        assert!(guesses <= 500, "{guesses} of 1,000,000");
    }

    #[test]
    fn one_customer_is_one_client() {
        let key = |text: &str| client_key(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), "192.0.2.1");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(key("2001:db8:1:2:3::4"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
    }
}
