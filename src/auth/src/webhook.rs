//! Verifies webhook calls: a shared secret, or a signature over the received bytes. Pure.

use kernel::Secret;
use ring::digest::{SHA256, digest};
use ring::hmac;
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

/// The signed text and its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `<timestamp>.<body>`, or only the body; hexadecimal, with or without the prefix `sha256=`.
    Plain,
    /// `v0:<timestamp>:<body>`; hexadecimal after `v0=`.
    Slack,
}

/// The signed parts of a call.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The signature header.
    pub signature: Option<&'a str>,
    /// The timestamp header, if one is required.
    pub timestamp: Option<Option<&'a str>>,
    /// The body.
    pub raw: &'a [u8],
}

/// Reasons to reject a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookRefusal {
    /// The signature is missing or wrong.
    Signature,
    /// The timestamp is missing, wrong, or too far away.
    Stale,
}

/// Identifies a call while its timestamp is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// SHA-256 of signature and timestamp.
    pub digest: Vec<u8>,
    /// The end of the period in which the call could be replayed, in Unix seconds.
    pub until: i64,
}

/// Whether a header contains the shared secret; the comparison takes constant time.
#[must_use]
pub fn is_secret(given: Option<&[u8]>, secret: &Secret) -> bool {
    let known = digest(&SHA256, secret.expose_secret().as_bytes());
    let given = given.map(|given| digest(&SHA256, given));
    given.is_some_and(|given| bool::from(known.as_ref().ct_eq(given.as_ref())))
}

/// Verifies a signed call at `now` (Unix seconds). Without a timestamp a replay cannot be detected.
///
/// # Errors
/// [`WebhookRefusal`]. A timestamp counts only if its signature is right.
pub fn check(
    scheme: Scheme,
    secret: &Secret,
    signed: Signed<'_>,
    now: i64,
    tolerance: i64,
) -> Result<Option<Seal>, WebhookRefusal> {
    let signature =
        signed.signature.and_then(|text| decoded(scheme, text)).ok_or(WebhookRefusal::Signature)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let Some(timestamp) = signed.timestamp else {
        return hmac::verify(&key, signed.raw, &signature)
            .map(|()| None)
            .map_err(|_| WebhookRefusal::Signature);
    };
    let timestamp = timestamp.ok_or(WebhookRefusal::Stale)?;
    let mut text = match scheme {
        Scheme::Plain => format!("{timestamp}."),
        Scheme::Slack => format!("v0:{timestamp}:"),
    }
    .into_bytes();
    text.extend_from_slice(signed.raw);
    hmac::verify(&key, &text, &signature).map_err(|_| WebhookRefusal::Signature)?;
    let digits = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let at: i64 = timestamp.parse().ok().filter(|_| digits).ok_or(WebhookRefusal::Stale)?;
    if now.abs_diff(at) > tolerance.unsigned_abs() {
        return Err(WebhookRefusal::Stale);
    }
    let mut told = signature;
    told.extend_from_slice(timestamp.as_bytes());
    let until = at.saturating_add(tolerance).saturating_add(1);
    Ok(Some(Seal { digest: digest(&SHA256, &told).as_ref().to_vec(), until }))
}

fn decoded(scheme: Scheme, text: &str) -> Option<Vec<u8>> {
    let hexadecimal = match scheme {
        Scheme::Plain => text.strip_prefix("sha256=").unwrap_or(text),
        Scheme::Slack => text.strip_prefix("v0=")?,
    };
    hex::decode(hexadecimal).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, text: &[u8]) -> String {
        hex::encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text))
    }

    fn judged(
        scheme: Scheme,
        signature: &str,
        timestamp: Option<&str>,
        raw: &[u8],
    ) -> Result<Option<i64>, WebhookRefusal> {
        let signed = Signed { signature: Some(signature), timestamp: timestamp.map(Some), raw };
        let seal = check(scheme, &Secret::from("secret"), signed, 1_000, 300)?;
        Ok(seal.map(|seal| seal.until))
    }

    #[test]
    fn the_received_bytes_are_signed() {
        let raw = b"{\"a\": \xff}";
        let good = sign("secret", raw);
        for text in [good.clone(), format!("sha256={good}"), good.to_uppercase()] {
            assert_eq!(judged(Scheme::Plain, &text, None, raw), Ok(None), "{text}");
        }
        for text in ["", "sha256=", "x", &good[..62], &sign("other", raw), &format!("sha1={good}")] {
            assert_eq!(judged(Scheme::Plain, text, None, raw), Err(WebhookRefusal::Signature), "{text}");
        }
        assert_eq!(judged(Scheme::Plain, &good, None, b"{\"a\":\xff}"), Err(WebhookRefusal::Signature));
    }

    #[test]
    fn a_timestamp_is_signed_and_must_be_recent() {
        for (timestamp, expected) in [
            ("1000", Ok(Some(1_301))),
            ("700", Ok(Some(1_001))),
            ("1300", Ok(Some(1_601))),
            ("699", Err(WebhookRefusal::Stale)),
            ("1301", Err(WebhookRefusal::Stale)),
            ("", Err(WebhookRefusal::Stale)),
            ("+1000", Err(WebhookRefusal::Stale)),
            ("99999999999999999999", Err(WebhookRefusal::Stale)),
        ] {
            let signature = sign("secret", format!("{timestamp}.hi").as_bytes());
            assert_eq!(judged(Scheme::Plain, &signature, Some(timestamp), b"hi"), expected, "{timestamp}");
        }
        let moved = sign("secret", b"999.hi");
        assert_eq!(judged(Scheme::Plain, &moved, Some("1000"), b"hi"), Err(WebhookRefusal::Signature));
        let slack = format!("v0={}", sign("secret", b"v0:1000:hi"));
        assert_eq!(judged(Scheme::Slack, &slack, Some("1000"), b"hi"), Ok(Some(1_301)));
        assert_eq!(judged(Scheme::Slack, &slack[3..], Some("1000"), b"hi"), Err(WebhookRefusal::Signature));
    }

    #[test]
    fn a_shared_secret_must_match_completely() {
        let secret = Secret::from("0123456789abcdef");
        assert!(is_secret(Some(b"0123456789abcdef"), &secret));
        for presented in [None, Some(&b""[..]), Some(b"0123456789abcde"), Some(b"0123456789abcdef ")] {
            assert!(!is_secret(presented, &secret));
        }
    }
}
