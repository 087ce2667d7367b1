//! Identifiers that hosted-app visitors get instead of ids: run handles, and the cookie of an anonymous visitor.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Random, RandomError};
use ring::digest::{SHA256, digest};
use ring::hmac;
use uuid::Uuid;

/// Prefix of every handle.
const PREFIX: &str = "run_";
/// Handle characters that app owners may see: 48 of 256 bits.
const SHOWN: usize = 12;
/// Random bytes per visitor.
const VISITOR_BYTES: usize = 32;

/// Makes handles and cookies; every instance needs the same key.
pub struct AppHandleKey(hmac::Key);

impl AppHandleKey {
    /// Creates handles under this key.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The handle of an app run: deterministic, but not computable without the key.
    #[must_use]
    pub fn handle(&self, app: Uuid, run: Uuid) -> String {
        let tag = hmac::sign(&self.0, &[app.into_bytes(), run.into_bytes()].concat());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// The cookie of a new visitor of an app.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn new_cookie(&self, app: Uuid, random: &dyn Random) -> Result<String, RandomError> {
        let mut visitor = [0_u8; VISITOR_BYTES];
        random.fill(&mut visitor)?;
        let tag = hmac::sign(&self.0, &signed(app, &visitor));
        Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(visitor), URL_SAFE_NO_PAD.encode(tag)))
    }

    /// Whether this app issued the cookie.
    #[must_use]
    pub fn is_genuine(&self, app: Uuid, cookie: &str) -> bool {
        let Some((visitor, tag)) = cookie.split_once('.') else { return false };
        let (Ok(visitor), Ok(tag)) = (URL_SAFE_NO_PAD.decode(visitor), URL_SAFE_NO_PAD.decode(tag)) else {
            return false;
        };
        visitor.len() == VISITOR_BYTES && hmac::verify(&self.0, &signed(app, &visitor), &tag).is_ok()
    }
}

/// Longer than a handle's input, so neither passes for the other.
fn signed(app: Uuid, visitor: &[u8]) -> Vec<u8> {
    [b"visitor".as_slice(), app.as_bytes(), visitor].concat()
}

/// The stored digest of a handle or a cookie.
#[must_use]
pub fn stored(text: &str) -> Vec<u8> {
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// The part of a handle that app owners see, to find the run that a visitor reports.
#[must_use]
pub fn shown(handle: &str) -> String {
    handle.chars().take(SHOWN).collect()
}

/// Whether a text has the form of a handle.
#[must_use]
pub fn is_handle(text: &str) -> bool {
    let tag = text.strip_prefix(PREFIX).and_then(|tag| URL_SAFE_NO_PAD.decode(tag).ok());
    tag.is_some_and(|tag| tag.len() == ring::digest::SHA256_OUTPUT_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::SeededRandom;

    const APP: Uuid = Uuid::from_u128(1);

    #[test]
    fn a_handle_depends_on_key_app_and_run() {
        let (key, run) = (AppHandleKey::new(&[7; 32]), Uuid::from_u128(2));
        let handle = key.handle(APP, run);
        assert_eq!(handle, key.handle(APP, run));
        assert!(is_handle(&handle) && handle.len() == 47, "{handle}");
        assert!(shown(&handle).len() == 12 && handle.starts_with(&shown(&handle)), "{handle}");
        let others = [
            AppHandleKey::new(&[8; 32]).handle(APP, run),
            key.handle(run, run),
            key.handle(run, APP),
            key.handle(APP, APP),
        ];
        assert!(!others.contains(&handle));
        for bad in ["", "run_", "run_x", &handle[1..], &handle[..46], &format!("{handle}A")] {
            assert!(!is_handle(bad), "{bad}");
        }
    }

    #[test]
    fn only_cookies_of_the_app_are_genuine() {
        let (key, random) = (AppHandleKey::new(&[7; 32]), SeededRandom::new(1));
        let cookie = key.new_cookie(APP, &random).unwrap();
        assert!(key.is_genuine(APP, &cookie));
        assert_ne!(cookie, key.new_cookie(APP, &random).unwrap());
        assert!(!key.is_genuine(Uuid::from_u128(2), &cookie));
        assert!(!AppHandleKey::new(&[8; 32]).is_genuine(APP, &cookie));
        let (visitor, tag) = cookie.split_once('.').unwrap();
        for bad in [
            "",
            ".",
            "a.b",
            visitor,
            &format!("{visitor}."),
            &format!("A{cookie}"),
            &format!("{visitor}.A{tag}"),
        ] {
            assert!(!key.is_genuine(APP, bad), "{bad}");
        }
    }
}
