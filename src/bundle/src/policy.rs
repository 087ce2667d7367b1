//! The content security policy of a document.

use std::fmt::Write as _;

/// The policy of everything that is not HTML.
pub const FILE_POLICY: &str = "default-src 'none'; sandbox; worker-src 'none'; frame-ancestors 'none'";

/// What is appended to the policy of an HTML document over HTTPS.
pub const OVER_HTTPS: &str = "; upgrade-insecure-requests";

/// Most bytes of a policy with what belongs to it over HTTPS: proxies refuse longer headers.
pub(crate) const MAX_BYTES: usize = 8 * 1024;

/// Most bytes of the policies of all documents of a bundle: instances keep them in memory.
pub(crate) const MAX_ALL_BYTES: usize = 16 << 20;

/// The bytes of a policy with what belongs to it over HTTPS.
pub(crate) fn sent_bytes(policy: &str) -> usize {
    policy.len() + OVER_HTTPS.len()
}

/// What the policy of an HTML document depends on.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// SHA-256 of each inline script, in base64, sorted.
    pub hashes: &'a [String],
    /// Origins that may show the app in a frame.
    pub frame_ancestors: &'a [String],
    /// Whether the app may compile WebAssembly.
    pub wasm: bool,
}

/// The policy of an HTML document, without [`OVER_HTTPS`].
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
    fn the_policy_is_that_of_the_template() {
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
