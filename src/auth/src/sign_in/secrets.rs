//! Links, codes and the other sign-in secrets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Random, RandomError, Secret};
use ring::digest::{SHA256, digest};
use ring::hmac;
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Random bytes per token.
const TOKEN_BYTES: usize = 32;
/// Number of possible codes.
const CODES: u32 = 1_000_000;

/// 256 random bits as text: a link suffix, a browser secret or a refresh token.
pub struct Token(Secret);

impl Token {
    /// Generates a token.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn fresh(random: &dyn Random) -> Result<Self, RandomError> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        random.fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes).into()))
    }

    /// The stored digest.
    #[must_use]
    pub fn digest(&self) -> Vec<u8> {
        Self::digest_of(self.0.expose_secret())
    }

    /// The digest of a presented token. Rows are selected by it, so no comparison reveals how much of a guess was
    /// right.
    #[must_use]
    pub fn digest_of(shown: &str) -> Vec<u8> {
        digest(&SHA256, shown.as_bytes()).as_ref().to_vec()
    }

    /// Whether a text has the form of a token.
    #[must_use]
    pub fn has_form(text: &str) -> bool {
        text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    }

    /// Whether two digests are equal; the comparison takes constant time.
    #[must_use]
    pub fn is_same(left: &[u8], right: &[u8]) -> bool {
        left.ct_eq(right).into()
    }

    /// The text, for its recipient.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// A six-digit code.
pub struct Code(Secret);

impl Code {
    /// Generates a code; all are equally likely.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn fresh(random: &dyn Random) -> Result<Self, RandomError> {
        // The plain remainder would favour small numbers, so numbers above the last full million are redrawn.
        let full = u32::MAX - u32::MAX % CODES;
        loop {
            let mut bytes = [0_u8; 4];
            random.fill(&mut bytes)?;
            let number = u32::from_be_bytes(bytes);
            if number < full {
                return Ok(Self(format!("{:06}", number % CODES).into()));
            }
        }
    }

    /// Parses a typed code, ignoring spaces and hyphens.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
        let good = digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_digit());
        good.then(|| Self(digits.into()))
    }

    /// The digits, for their recipient.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Computes the stored form of codes. Without the key, a million guesses would find each code.
#[derive(Clone)]
pub struct CodeKey(hmac::Key);

impl CodeKey {
    /// Uses this key; every instance needs the same.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The stored form of a challenge's code.
    #[must_use]
    pub fn mac(&self, challenge: Uuid, code: &Code) -> Vec<u8> {
        hmac::sign(&self.0, &signed(challenge, code)).as_ref().to_vec()
    }

    /// Whether it is the challenge's code; the comparison takes constant time.
    #[must_use]
    pub fn is_code(&self, challenge: Uuid, code: &Code, mac: &[u8]) -> bool {
        hmac::verify(&self.0, &signed(challenge, code), mac).is_ok()
    }
}

/// The prefix makes a tag useless anywhere else.
fn signed(challenge: Uuid, code: &Code) -> Vec<u8> {
    [b"callboard sign-in code|".as_slice(), challenge.as_bytes(), b"|", code.expose().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kernel::SeededRandom;
    use parking_lot::Mutex;

    use super::*;

    /// Returns the given numbers.
    struct FixedNumbers(Mutex<Vec<u32>>);

    impl Random for FixedNumbers {
        fn fill(&self, into: &mut [u8]) -> Result<(), RandomError> {
            let next = self.0.lock().pop().ok_or(RandomError)?;
            into.copy_from_slice(&next.to_be_bytes());
            Ok(())
        }
    }

    #[test]
    fn codes_are_uniformly_distributed() {
        let draw = |numbers: &[u32]| {
            let fixed = FixedNumbers(Mutex::new(numbers.iter().rev().copied().collect()));
            Code::fresh(&fixed).map(|code| code.expose().to_owned()).ok()
        };
        assert_eq!(draw(&[0]).as_deref(), Some("000000"));
        assert_eq!(draw(&[4_293_999_999]).as_deref(), Some("999999"));
        assert_eq!(draw(&[4_294_000_000, u32::MAX, 1_000_042]).as_deref(), Some("000042"));
        assert_eq!(draw(&[]), None);
    }

    #[test]
    fn tokens_are_long_and_unique() {
        let random = SeededRandom::new(1);
        let tokens: BTreeSet<String> =
            (0..100).map(|_| Token::fresh(&random).unwrap().expose().to_owned()).collect();
        assert_eq!(tokens.len(), 100);
        assert!(tokens.iter().all(|token| token.len() == 43));
        let token = Token::fresh(&random).unwrap();
        assert_eq!(token.digest(), Token::digest_of(token.expose()));
        assert_ne!(token.digest(), token.expose().as_bytes());
        assert!(Token::is_same(&token.digest(), &token.digest()));
        assert!(!Token::is_same(&token.digest(), &Token::digest_of("x")));
    }

    #[test]
    fn a_code_is_bound_to_its_challenge() {
        let (key, id, other) = (CodeKey::new(&[7; 32]), Uuid::from_u128(1), Uuid::from_u128(2));
        let code = Code::read("123 456").unwrap();
        let mac = key.mac(id, &code);
        assert!(key.is_code(id, &Code::read("123-456").unwrap(), &mac));
        assert!(!key.is_code(id, &Code::read("123457").unwrap(), &mac));
        assert!(!key.is_code(other, &code, &mac));
        assert!(!CodeKey::new(&[8; 32]).is_code(id, &code, &mac));
        for bad in ["", "12345", "1234567", "12345a", "１２３４５６", "12 34 5"] {
            assert!(Code::read(bad).is_none(), "{bad}");
        }
    }
}
