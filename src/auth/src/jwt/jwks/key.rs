//! One key of a key set.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde_json::{Map, Value};

use crate::jwt::header::is_key_id;

/// Bits of a modulus: fewer are too weak, more are too slow.
const BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Members that only a private or a symmetric key has.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// A public RSA key that verifies RS256 signatures.
#[derive(Clone)]
pub struct RsaKey {
    pub(super) id: Option<String>,
    decoding: DecodingKey,
}

impl RsaKey {
    pub(crate) const fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }

    /// Parses an entry; `None` if we do not use such a key. A public key published with its private part no longer
    /// proves who signed.
    pub(super) fn from_entry(entry: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let says = |name: &str, value: &str| !entry.contains_key(name) || text(name) == Some(value);
        let verifies = entry
            .get("key_ops")
            .is_none_or(|uses| uses.as_array().is_some_and(|uses| uses.iter().any(|one| one == "verify")));
        let is_ours = text("kty") == Some("RSA") && says("use", "sig") && says("alg", "RS256") && verifies;
        if !is_ours || PRIVATE.iter().any(|name| entry.contains_key(*name)) {
            return None;
        }
        let id = match entry.get("kid") {
            None => None,
            Some(id) => Some(id.as_str().filter(|id| is_key_id(id))?.to_owned()),
        };
        let (modulus, exponent) = (number(text("n")?)?, number(text("e")?)?);
        if !BITS.contains(&bits(&modulus)) || !is_exponent(&exponent) {
            return None;
        }
        Some(Self { id, decoding: DecodingKey::from_rsa_raw_components(&modulus, &exponent) })
    }
}

/// The bytes of a positive number. Some issuers add a leading zero, as for a signed number.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    bytes.get(start..).map(<[u8]>::to_vec)
}

fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |first| usize::try_from(first.leading_zeros()).unwrap_or(0));
    (number.len() * 8).saturating_sub(unused)
}

/// Odd, at least 3 and below 2^33, as ring requires.
fn is_exponent(number: &[u8]) -> bool {
    let odd = number.last().is_some_and(|last| last % 2 == 1);
    odd && (2..=33).contains(&bits(number))
}
