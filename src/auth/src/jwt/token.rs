//! The three parts of a token's text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::header::{BadHeader, Header, Purpose};

/// Longest token.
const MOST_BYTES: usize = 8 * 1024;

/// A token whose shape is right. Nothing of it is to be believed before its signature was checked.
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) header: Header,
    pub(super) payload: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Takes a token apart: three parts, each in the one way in which base64url can spell its bytes.
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
        let header = Header::read(&bytes(header)?, purpose)?;
        let payload = bytes(payload)?;
        if payload.is_empty() || bytes(signature)?.is_empty() {
            return Err(BadHeader::Malformed);
        }
        Ok(Self { text, header, payload })
    }
}

/// Without padding, spaces, the other alphabet or bits that say nothing.
fn bytes(part: &str) -> Result<Vec<u8>, BadHeader> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| BadHeader::Malformed)
}
