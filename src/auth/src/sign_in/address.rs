//! Mail addresses, in the form under which accounts are stored.

use std::fmt;

use kernel::text::is_invisible;
use unicode_normalization::UnicodeNormalization;

/// Maximum address bytes (RFC 5321).
const LONGEST: usize = 254;

/// A text is not a mail address for sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an email address such as someone@example.com")]
pub struct AddressError;

/// A mail address: composed (NFC), its domain in lowercase. The local part is kept unchanged, because only the mail
/// server knows whether two spellings are one mailbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Parses an address, ignoring spaces around it.
    ///
    /// # Errors
    /// [`AddressError`] for anything except a plain `local@domain`, for white space, line breaks and other control
    /// characters in it, and for more than 254 bytes.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        // Trims only spaces: a line break is never a typing error.
        let text: String = text.trim_matches(' ').nfc().collect();
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError)?;
        let domain: String = domain.to_lowercase().nfc().collect();
        let address = format!("{local}@{domain}");
        let good = address.len() <= LONGEST && is_local_part(local) && is_domain(&domain);
        if good { Ok(Self(address)) } else { Err(AddressError) }
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The standard allows a quoted local part; no provider uses one.
fn is_local_part(local: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"(),:;<>@[\\]".contains(c);
    (1..=64).contains(&local.len())
        && local.chars().all(plain)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
}

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_alphanumeric() || c == '-' || !(c.is_ascii() || c.is_whitespace()))
            && !label.chars().any(is_invisible)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        EmailAddress::parse(text).ok().map(|address| address.to_string())
    }

    #[test]
    fn one_mailbox_has_one_spelling() {
        for (text, normalised) in [
            ("someone@example.com", "someone@example.com"),
            ("  Some.One+tag@Example.COM ", "Some.One+tag@example.com"),
            ("a@localhost", "a@localhost"),
            ("u\u{308}ber@bu\u{308}cher.example", "über@bücher.example"),
            ("x@xn--bcher-kva.example", "x@xn--bcher-kva.example"),
        ] {
            assert_eq!(read(text).as_deref(), Some(normalised), "{text}");
        }
        assert_ne!(read("a.b@x.org"), read("ab@x.org"), "dots count");
        assert_ne!(read("a+b@x.org"), read("a@x.org"), "tags count");
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in [
            "",
            "@",
            "a@",
            "@b",
            "a",
            "a b@c",
            "a@b@c",
            "a@b c",
            "a@b.",
            "a@.b",
            "a@b..c",
            "a@-b",
            "a..b@c",
            ".a@c",
            "a\r\nBcc: x@y@c.org",
            "a@c.org\r\nBcc: d@e.org",
            "a@c.org\n",
            "\ra@c.org",
            "a\0@c.org",
            "\"a b\"@c.org",
            "<a@c.org>",
            "Name <a@c.org>",
            "a@c.org,b@c.org",
            "a@[127.0.0.1]",
            "a@c_d.org",
            "a@c\u{202e}.org",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert!(read(&format!("{}@example.org", "a".repeat(65))).is_none());
        let long = format!("{}.org", vec!["a".repeat(60); 4].join("."));
        assert_eq!(read(&format!("a@{long}")).map(|normalised| normalised.len()), Some(249));
        assert!(read(&format!("{}@{long}", "a".repeat(7))).is_none(), "255 bytes");
    }
}
