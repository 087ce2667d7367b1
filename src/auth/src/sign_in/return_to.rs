//! The path to which a user returns after a sign-in: always a local path.

/// Maximum path bytes.
const LONGEST: usize = 2000;

/// Whether every reader takes it as a path of this service: no host, no scheme, nothing that a browser could mistake
/// for one.
#[must_use]
pub fn is_local(path: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && b != b'\\' && b != b'"' && b != b'<' && b != b'>';
    path.len() <= LONGEST && path.starts_with('/') && !path.starts_with("//") && path.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_service_paths_are_local() {
        for good in ["/", "/chat/0193", "/login?return_to=%2F", "/a//b", "/a?x=http://b", "/%E2%82%AC#x"] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "chat",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            " /",
            "/\t/evil.example",
            "/\n",
            "/a b",
            "/ä",
        ] {
            assert!(!is_local(bad), "{bad:?}");
        }
        assert!(!is_local(&format!("/{}", "a".repeat(LONGEST))));
    }
}
