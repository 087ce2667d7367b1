//! A document's content security policy.

use std::fmt::Write as _;

/// The policy for files other than HTML.
pub const FILE_POLICY: &str = "default-src 'none'; sandbox; worker-src 'none'; frame-ancestors 'none'";

/// Appended to an HTML document's policy over HTTPS.
pub const OVER_HTTPS: &str = "; upgrade-insecure-requests";

/// Maximum bytes of a policy including [`OVER_HTTPS`]: proxies refuse longer headers.
pub(crate) const MAX_BYTES: usize = 8 * 1024;

/// Maximum bytes of all policies in a bundle: instances keep them in memory.
pub(crate) const MAX_ALL_BYTES: usize = 16 << 20;

/// The bytes of a policy including [`OVER_HTTPS`].
pub(crate) fn sent_bytes(policy: &str) -> usize {
    policy.len() + OVER_HTTPS.len()
}

/// The facts that determine an HTML document's policy.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Sorted base64 SHA-256 hashes of the inline scripts.
    pub hashes: &'a [String],
    /// Origins that may embed the app in a frame.
    pub frame_ancestors: &'a [String],
    /// Whether the app may compile WebAssembly.
    pub wasm: bool,
}

/// The policy for an HTML document, without [`OVER_HTTPS`].
#[must_use]
pub fn policy(document: &Document<'_>) -> String {
    let mut policy = "default-src 'none'; script-src 'self'".to_owned();
    if document.wasm {
        policy.push_str(" 'wasm-unsafe-eval'");
    }
    // Writing to a String cannot fail.
    for hash in document.hashes {
        let _ = write!(policy, " 'sha256-{hash}'");
    }
    policy.push_str(
        "; script-src-attr 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
         font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; \
         worker-src 'none'; child-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'; \
         form-action 'self'; frame-ancestors",
    );
    if document.frame_ancestors.is_empty() {
        policy.push_str(" 'none'");
    }
    for origin in document.frame_ancestors {
        let _ = write!(policy, " {origin}");
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_equals_the_template() {
        let (hashes, none) = (["abc=".to_owned(), "def=".to_owned()], []);
        let document = Document { hashes: &hashes, frame_ancestors: &none, wasm: false };
        assert_eq!(
            policy(&document),
            "default-src 'none'; script-src 'self' 'sha256-abc=' 'sha256-def='; script-src-attr 'none'; \
             style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; \
             media-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; worker-src 'none'; \
             child-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'self'; \
             frame-ancestors 'none'"
        );
        let origins = ["https://a.example".to_owned(), "https://b.example:8443".to_owned()];
        let policy = policy(&Document { hashes: &none, frame_ancestors: &origins, wasm: true });
        assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval'; "));
        assert!(policy.ends_with("frame-ancestors https://a.example https://b.example:8443"));
    }
}
