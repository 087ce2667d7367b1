//! A token's text and its three parts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::header::{BadHeader, Purpose, TokenHeader};

/// Maximum token bytes.
const MOST_BYTES: usize = 8 * 1024;

/// A well-formed token. Do not trust any part before its signature is checked.
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) header: TokenHeader,
    pub(super) payload: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Splits a token into three parts, each in its only valid base64url spelling.
    pub(crate) fn read(text: &'a str, purpose: Purpose) -> Result<Self, BadHeader> {
        if text.len() > MOST_BYTES {
            return Err(BadHeader::Malformed);
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(BadHeader::Malformed);
        };
        let header = TokenHeader::read(&bytes(header)?, purpose)?;
        let payload = bytes(payload)?;
        if payload.is_empty() || bytes(signature)?.is_empty() {
            return Err(BadHeader::Malformed);
        }
        Ok(Self { text, header, payload })
    }
}

/// Rejects padding, spaces, the other alphabet and unused bits.
fn bytes(part: &str) -> Result<Vec<u8>, BadHeader> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| BadHeader::Malformed)
}
