//! Limits for sign-in mail, and the keys under which requests are counted.

use std::net::IpAddr;

use chrono::TimeDelta;

/// At most `most` mails within `window`, counted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailLimit {
    /// Maximum mails.
    pub most: i64,
    /// The time window.
    pub window: TimeDelta,
}

/// Per mail address and browser, or per mail address and network address for requests without a browser.
pub const PER_BROWSER: MailLimit = MailLimit { most: 5, window: TimeDelta::minutes(15) };
/// The same for a whole day.
pub const PER_BROWSER_AND_DAY: MailLimit = MailLimit { most: 10, window: TimeDelta::days(1) };
/// Per mail address and network address: a client can invent any number of browsers. Browsers that have signed in to
/// the mail address before are exempt, so others in their network cannot use up their mails.
pub const PER_NETWORK: MailLimit = MailLimit { most: 10, window: TimeDelta::minutes(15) };
/// The same for a whole day: with [`super::TRIES`] guesses each, one client finds a code with a chance of 0.01 %.
pub const PER_NETWORK_AND_DAY: MailLimit = MailLimit { most: 20, window: TimeDelta::days(1) };
/// Codes per mail address, for all clients together: 0.015 % a day. After that a mail contains only its link, unless
/// the browser has signed in to the mail address before.
pub const CODES_PER_ADDRESS: MailLimit = MailLimit { most: 30, window: TimeDelta::days(1) };
/// Link-only mails per mail address and network address.
pub const LINKS_PER_NETWORK: MailLimit = MailLimit { most: 1, window: TimeDelta::hours(1) };
/// Link-only mails per mail address, for all clients together.
pub const LINKS_PER_ADDRESS: MailLimit = MailLimit { most: 24, window: TimeDelta::days(1) };
/// Per network address, to any mail address.
pub const PER_CLIENT: MailLimit = MailLimit { most: 20, window: TimeDelta::hours(1) };

/// Mails sent so far, each within the window of its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Whether the browser has signed in to the mail address before.
    pub trusted: bool,
    /// Against [`PER_BROWSER`].
    pub for_browser: i64,
    /// Against [`PER_BROWSER_AND_DAY`].
    pub for_browser_today: i64,
    /// Against [`PER_NETWORK`].
    pub for_network: i64,
    /// Against [`PER_NETWORK_AND_DAY`].
    pub for_network_today: i64,
    /// Against [`CODES_PER_ADDRESS`].
    pub codes: i64,
    /// Against [`LINKS_PER_NETWORK`].
    pub links_for_network: i64,
    /// Against [`LINKS_PER_ADDRESS`].
    pub links: i64,
    /// Against [`PER_CLIENT`].
    pub by_client: i64,
}

/// The allowed content of a requested mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailContent {
    /// A code, and a link if the service knows its own address.
    Code,
    /// Only a link, which cannot be guessed.
    Link,
    /// No mail.
    Nothing,
}

impl Sent {
    /// The allowed content of the next mail.
    #[must_use]
    pub fn allows(self) -> MailContent {
        let too_many_for_network = self.for_network >= PER_NETWORK.most
            || self.for_network_today >= PER_NETWORK_AND_DAY.most
            || self.by_client >= PER_CLIENT.most;
        let too_many = self.for_browser >= PER_BROWSER.most
            || self.for_browser_today >= PER_BROWSER_AND_DAY.most
            || (too_many_for_network && !self.trusted);
        if too_many {
            MailContent::Nothing
        } else if self.trusted || self.codes < CODES_PER_ADDRESS.most {
            MailContent::Code
        } else if self.links_for_network < LINKS_PER_NETWORK.most && self.links < LINKS_PER_ADDRESS.most {
            MailContent::Link
        } else {
            MailContent::Nothing
        }
    }
}

/// The key for counting a client's requests: its IPv4 address, or the IPv6 network that one customer usually gets.
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
    fn limits_replace_a_code_by_a_link_and_a_link_by_nothing() {
        let full = Sent { codes: 30, ..Sent::default() };
        assert_eq!(Sent { codes: 29, ..full }.allows(), MailContent::Code);
        assert_eq!(full.allows(), MailContent::Link);
        assert_eq!(Sent { links_for_network: 1, links: 1, ..full }.allows(), MailContent::Nothing);
        assert_eq!(Sent { links: 23, ..full }.allows(), MailContent::Link);
        assert_eq!(Sent { links: 24, ..full }.allows(), MailContent::Nothing);
        let of_network = [
            Sent { for_network: 10, ..Sent::default() },
            Sent { for_network_today: 20, ..Sent::default() },
            Sent { by_client: 20, ..Sent::default() },
        ];
        let of_browser =
            [Sent { for_browser: 5, ..Sent::default() }, Sent { for_browser_today: 10, ..Sent::default() }];
        for over in of_network.into_iter().chain(of_browser) {
            assert_eq!(over.allows(), MailContent::Nothing, "{over:?}");
        }
        // Others cannot use up the mails of a browser that has signed in before.
        for over in of_network.into_iter().chain([Sent { links: 24, ..full }]) {
            assert_eq!(Sent { trusted: true, ..over }.allows(), MailContent::Code, "{over:?}");
        }
        for over in of_browser {
            assert_eq!(Sent { trusted: true, ..over }.allows(), MailContent::Nothing, "{over:?}");
        }
        // 5 tries per code, among a million codes: at most 0.05 % a day.
        let guesses = CODES_PER_ADDRESS.most * i64::from(crate::sign_in::TRIES);
        assert!(guesses <= 500, "{guesses} of 1,000,000");
    }

    #[test]
    fn client_keys_are_v4_addresses_or_v6_networks() {
        let key = |text: &str| client_key(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), "192.0.2.1");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(key("2001:db8:1:2:3::4"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
    }
}
