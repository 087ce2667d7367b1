//! Signed attachment addresses: they need no other credential, and expire.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::AttachmentId;
use ring::hmac;

/// Upload address lifetime.
const UPLOAD: TimeDelta = TimeDelta::minutes(15);
/// Minimum preview address lifetime. All readers get the same address within a day, so browsers cache the image.
const PREVIEW: TimeDelta = TimeDelta::hours(48);
const DAY: i64 = 86_400;

/// The use of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkUse {
    /// Uploads the attachment's bytes.
    Upload,
    /// Loads an image preview.
    Preview,
}

/// Signs and checks addresses.
pub struct LinkKey(hmac::Key);

impl LinkKey {
    /// Uses this key; every instance needs the same.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The query of an address: its expiry in seconds since 1970, and its signature.
    #[must_use]
    pub fn query(&self, id: AttachmentId, what: LinkUse, now: DateTime<Utc>) -> String {
        let expires = match what {
            LinkUse::Upload => (now + UPLOAD).timestamp(),
            LinkUse::Preview => ((now + PREVIEW).timestamp().div_euclid(DAY) + 1) * DAY,
        };
        let tag = hmac::sign(&self.0, signed(id, what, expires).as_bytes());
        format!("exp={expires}&sig={}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// An image preview's address. `base` is the service's public base URL; empty: the result is a path.
    #[must_use]
    pub fn preview(&self, base: &str, id: AttachmentId, now: DateTime<Utc>) -> String {
        format!("{base}/api/chat/attachments/{id}/preview?{}", self.query(id, LinkUse::Preview, now))
    }

    /// Whether the signature is ours and the address has not expired.
    #[must_use]
    pub fn verifies(
        &self,
        id: AttachmentId,
        what: LinkUse,
        expires: &str,
        signature: &str,
        now: DateTime<Utc>,
    ) -> bool {
        let (Ok(expires), Ok(tag)) = (expires.parse::<i64>(), URL_SAFE_NO_PAD.decode(signature)) else {
            return false;
        };
        hmac::verify(&self.0, signed(id, what, expires).as_bytes(), &tag).is_ok() && now.timestamp() < expires
    }
}

fn signed(id: AttachmentId, what: LinkUse, expires: i64) -> String {
    let what = match what {
        LinkUse::Upload => "upload",
        LinkUse::Preview => "preview",
    };
    format!("callboard attachment|{what}|{id}|{expires}")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn parts(query: &str) -> (&str, &str) {
        query.strip_prefix("exp=").unwrap().split_once("&sig=").unwrap()
    }

    #[test]
    fn a_signed_link_is_valid_only_for_its_purpose_and_time() {
        let (key, id) = (LinkKey::new(&[7; 32]), AttachmentId(Uuid::from_u128(1)));
        let now = at(20_000 * DAY + 5);
        for (what, shortest, longest) in
            [(LinkUse::Upload, 900, 900), (LinkUse::Preview, 48 * 3600, 72 * 3600)]
        {
            let query = key.query(id, what, now);
            let (expires, signature) = parts(&query);
            let valid = expires.parse::<i64>().unwrap() - now.timestamp();
            assert!((shortest..=longest).contains(&valid), "{valid}");
            let holds = |id, what, (expires, signature): (&str, &str), now| {
                key.verifies(id, what, expires, signature, now)
            };
            assert!(holds(id, what, (expires, signature), now));
            assert!(holds(id, what, (expires, signature), now + TimeDelta::seconds(valid - 1)));
            assert!(!holds(id, what, (expires, signature), now + TimeDelta::seconds(valid)));
            let other = if what == LinkUse::Upload { LinkUse::Preview } else { LinkUse::Upload };
            assert!(!holds(id, other, (expires, signature), now));
            assert!(!holds(AttachmentId(Uuid::from_u128(2)), what, (expires, signature), now));
            let later = (expires.parse::<i64>().unwrap() + 1).to_string();
            assert!(!holds(id, what, (&later, signature), now));
            assert!(!holds(id, what, (expires, &signature[1..]), now));
            assert!(!LinkKey::new(&[8; 32]).verifies(id, what, expires, signature, now));
            for (expires, signature) in [("", ""), ("x", signature), (expires, "%"), ("-1", signature)] {
                assert!(!holds(id, what, (expires, signature), now));
            }
        }
    }

    #[test]
    fn preview_links_of_one_day_are_equal() {
        let (key, id) = (LinkKey::new(&[7; 32]), AttachmentId(Uuid::from_u128(1)));
        let query = |seconds| key.query(id, LinkUse::Preview, at(seconds));
        assert_eq!(query(20_000 * DAY), query(20_000 * DAY + DAY - 1));
        assert_ne!(query(20_000 * DAY), query(20_001 * DAY));
    }
}
