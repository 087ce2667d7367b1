//! Interprets error responses.

use kernel::Secret;
use secrecy::ExposeSecret as _;
use serde_json::Value;

use crate::ModelErrorKind;

/// Maximum bytes read from an error response.
pub(super) const MOST_READ: usize = 16 * 1024;
/// Maximum characters of a message.
const MOST_SAID: usize = 500;

/// Maps a status other than 2xx to an error kind.
pub(super) fn kind(status: u16) -> ModelErrorKind {
    match status {
        429 => ModelErrorKind::RateLimited,
        503 | 529 => ModelErrorKind::Overloaded,
        408 | 425 | 500..=599 => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Rejected,
    }
}

/// Maps an error inside a stream to an error kind, by the words that endpoints use.
pub(super) fn kind_of_error(error: &Value) -> ModelErrorKind {
    let code = error.get("code").or_else(|| error.get("status"));
    if let Some(status) = code.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()) {
        return kind(status);
    }
    let words = ["type", "code"].map(|name| error.get(name).and_then(Value::as_str).unwrap_or_default());
    let says = |word: &str| words.iter().any(|said| said.contains(word));
    if says("rate_limit") || says("quota") {
        ModelErrorKind::RateLimited
    } else if says("overloaded") {
        ModelErrorKind::Overloaded
    } else if says("invalid")
        || says("authentication")
        || says("permission")
        || says("not_found")
        || says("billing")
        || says("too_large")
    {
        ModelErrorKind::Rejected
    } else {
        ModelErrorKind::Unavailable
    }
}

/// Returns an error response's message in one line.
pub(super) fn said(body: &str) -> String {
    let message = serde_json::from_str::<Value>(body).ok().and_then(|body| said_in(&body));
    in_one_line(message.as_deref().unwrap_or(body))
}

/// Finds an error object's message in the places that endpoints use.
pub(super) fn said_in(body: &Value) -> Option<String> {
    let places = ["/error/message", "/error", "/message", "/detail", "/0/error/message"];
    places.iter().find_map(|place| body.pointer(place)?.as_str()).map(in_one_line)
}

fn in_one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.trim().to_owned()
}

/// Removes the key, then truncates the text: after truncation, a partial key would not match.
pub(super) fn hide(text: String, key: Option<&Secret>) -> String {
    let hidden = match key.map(|key| key.expose_secret()) {
        Some(key) if !key.is_empty() => text.replace(key, "***"),
        _ => text,
    };
    hidden.chars().take(MOST_SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_message_is_extracted_as_one_short_line() {
        for (body, expected) in [
            (r#"{"error": {"message": "no such model"}}"#, "no such model"),
            (r#"{"error": "gone"}"#, "gone"),
            (r#"{"detail": "Not Found"}"#, "Not Found"),
            (r#"[{"error": {"message": "bad"}}]"#, "bad"),
            (r#"{"object": "error", "message": "too\nlong"}"#, "too long"),
            ("<html>502</html>", "<html>502</html>"),
            ("", ""),
        ] {
            assert_eq!(said(body), expected);
        }
        assert_eq!(hide(said(&"é".repeat(2000)), None).chars().count(), MOST_SAID);
        let key = Secret::from("sk-canary");
        let cut = hide(format!("{}sk-canary", "x".repeat(MOST_SAID - 4)), Some(&key));
        assert!(cut.ends_with("x***") && cut.len() == MOST_SAID - 1, "{cut}");
    }
}
