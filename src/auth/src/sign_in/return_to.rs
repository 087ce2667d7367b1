//! Where a user goes after a sign-in: nowhere but to a path of ours.

/// Bytes of the longest path.
const LONGEST: usize = 2000;

/// Whether it is a path of this service for every reader: no host, no scheme, nothing that a browser would take for
/// one.
#[must_use]
pub fn is_local(path: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && b != b'\\' && b != b'"' && b != b'<' && b != b'>';
    path.len() <= LONGEST && path.starts_with('/') && !path.starts_with("//") && path.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_ours_are_local() {
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
