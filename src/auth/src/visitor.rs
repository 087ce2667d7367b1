//! Anonymous visitors of published chats: a signed cookie that recognises the same browser.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Random, RandomError};
use ring::hmac;

/// Random bytes per visitor id.
const ID_BYTES: usize = 16;

/// A visitor with a genuine cookie or a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor(String);

impl Visitor {
    /// The visitor's id, as stored in threads.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0
    }

    /// The visitor who owns a thread. A caller that makes a cookie from it hands that visitor's threads to the cookie's
    /// recipient.
    #[must_use]
    pub fn of_thread(owner: String) -> Self {
        Self(owner)
    }
}

/// Signs and checks visitor cookies.
pub struct VisitorKey(hmac::Key);

impl VisitorKey {
    /// Uses this key; every instance needs the same.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Creates a visitor with a random id.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn fresh(&self, random: &dyn Random) -> Result<Visitor, RandomError> {
        let mut id = [0_u8; ID_BYTES];
        random.fill(&mut id)?;
        Ok(Visitor(URL_SAFE_NO_PAD.encode(id)))
    }

    /// The cookie's value for a visitor.
    #[must_use]
    pub fn cookie(&self, visitor: &Visitor) -> String {
        let tag = hmac::sign(&self.0, &signed(&visitor.0));
        format!("{}.{}", visitor.0, URL_SAFE_NO_PAD.encode(tag))
    }

    /// The visitor of a cookie; `None` if it is not genuine.
    #[must_use]
    pub fn read(&self, cookie: &str) -> Option<Visitor> {
        let (id, tag) = cookie.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, &signed(id), &tag).ok()?;
        Some(Visitor(id.to_owned()))
    }
}

/// The prefix makes a tag useless anywhere else.
fn signed(id: &str) -> Vec<u8> {
    [b"callboard visitor|".as_slice(), id.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::SeededRandom;

    #[test]
    fn a_thread_owner_gets_the_same_cookie_again() {
        let key = VisitorKey::new(&[7; 32]);
        let visitor = key.fresh(&SeededRandom::new(1)).unwrap();
        let again = Visitor::of_thread(visitor.id().to_owned());
        assert_eq!(key.cookie(&again), key.cookie(&visitor));
    }

    #[test]
    fn only_genuine_cookies_are_read() {
        let key = VisitorKey::new(&[7; 32]);
        let visitor = key.fresh(&SeededRandom::new(1)).unwrap();
        let cookie = key.cookie(&visitor);
        assert_eq!(key.read(&cookie), Some(visitor.clone()));
        assert_eq!(VisitorKey::new(&[8; 32]).read(&cookie), None);
        let other = key.fresh(&SeededRandom::new(2)).unwrap();
        let swapped = cookie.replace(visitor.id(), other.id());
        for bad in
            ["", ".", "a.b", visitor.id(), &swapped, &cookie[..cookie.len() - 2], &format!("{cookie}x")]
        {
            assert_eq!(key.read(bad), None, "{bad}");
        }
    }
}
