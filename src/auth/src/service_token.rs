//! Service tokens: their format and their comparison.
//!
//! `svc_<id>_<secret><checksum>`: the id as 32 hex digits, 32 random bytes as 43 base64url characters, and a checksum
//! of 6 characters that reveals mistyped and leaked tokens. Only the SHA-256 of the whole token is stored: a 256-bit
//! secret needs no slow hash (ASVS 6.5.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Random, RandomError, Secret};
use ring::digest::{SHA256, digest};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Prefix of every service token.
const PREFIX: &str = "svc_";
const SECRET_BYTES: usize = 32;
const CHECKSUM_CHARS: usize = 6;

/// SHA-256 of a whole token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Digests any text sent as a token.
    #[must_use]
    pub fn from_token(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    /// The stored bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the digests are equal; the comparison takes constant time.
    #[must_use]
    pub fn is(&self, other: &[u8]) -> bool {
        self.0.ct_eq(other).into()
    }
}

/// Generates a random token.
///
/// # Errors
/// [`RandomError`] if the random source fails.
pub fn fresh(id: Uuid, random: &dyn Random) -> Result<Secret, RandomError> {
    let mut secret = [0; SECRET_BYTES];
    random.fill(&mut secret)?;
    let body = format!("{PREFIX}{}_{}", id.simple(), URL_SAFE_NO_PAD.encode(secret));
    let checksum = checksum(&body);
    Ok(format!("{body}{checksum}").into())
}

fn checksum(body: &str) -> String {
    let mut sum = URL_SAFE_NO_PAD.encode(digest(&SHA256, body.as_bytes()));
    sum.truncate(CHECKSUM_CHARS);
    sum
}

/// Whether two secrets are equal; the comparison takes constant time.
#[must_use]
pub fn is_same(token: &str, known: &Secret) -> bool {
    TokenDigest::from_token(token).is(TokenDigest::from_token(known.expose_secret()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::SeededRandom;

    /// Whether the text has the form of a service token, its checksum included.
    fn is_well_formed(text: &str) -> bool {
        let Some(rest) = text.strip_prefix(PREFIX) else { return false };
        let Some((id, secret)) = rest.split_once('_') else { return false };
        let Some((body, sum)) = text.split_at_checked(text.len().saturating_sub(CHECKSUM_CHARS)) else {
            return false;
        };
        id.len() == 32 && secret.len() == 43 + CHECKSUM_CHARS && sum == checksum(body)
    }

    #[test]
    fn only_well_formed_tokens_are_recognized() {
        let random = SeededRandom::new(1);
        let id = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        let token = fresh(id, &random).unwrap();
        let text = token.expose_secret();
        assert_eq!(text.len(), 4 + 32 + 1 + 43 + 6);
        assert!(text.starts_with("svc_0123456789abcdef0123456789abcdef_"));
        assert!(is_well_formed(text));
        assert_ne!(text, fresh(id, &random).unwrap().expose_secret(), "each secret is unique");
        for position in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[position] = if bytes[position] == b'x' { b'y' } else { b'x' };
            assert!(!is_well_formed(&String::from_utf8(bytes).unwrap()), "position {position}");
        }
        for bad in ["", "svc_", "svc__", "svc_é_é", &text[..text.len() - 1], &format!("{text}x")] {
            assert!(!is_well_formed(bad), "{bad}");
        }
    }

    #[test]
    fn digests_cover_the_whole_text() {
        assert!(TokenDigest::from_token("a").is(TokenDigest::from_token("a").as_bytes()));
        assert!(!TokenDigest::from_token("a").is(TokenDigest::from_token("b").as_bytes()));
        assert!(!TokenDigest::from_token("a").is(b"short"));
        assert!(is_same("secret", &Secret::from("secret".to_owned())));
        assert!(!is_same("secre", &Secret::from("secret".to_owned())));
    }
}
