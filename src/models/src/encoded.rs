//! Files inside JSON. They are large, so these functions do not copy their values, as `json!` does.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Encodes bytes as base64.
pub(crate) fn base64(bytes: &[u8]) -> Value {
    Value::String(STANDARD.encode(bytes))
}

/// Encodes bytes as a `data:` URL.
pub(crate) fn data_url(mime_type: &str, bytes: &[u8]) -> Value {
    let start = format!("data:{mime_type};base64,");
    let length = base64::encoded_len(bytes.len(), true).unwrap_or(0);
    let mut url = String::with_capacity(start.len().saturating_add(length));
    url.push_str(&start);
    STANDARD.encode_string(bytes, &mut url);
    Value::String(url)
}

/// Builds an object with these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
