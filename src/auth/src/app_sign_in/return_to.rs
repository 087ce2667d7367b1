//! The path on which a user continues after signing in to an app: always a path of that app.

use percent_encoding::percent_decode_str;
use url::Url;

/// Maximum path bytes.
const LONGEST: usize = 512;
/// Paths of the sign-in itself: a user who continues there never arrives.
const SIGN_IN: &str = "/__service/auth";

/// Returns the given path if it belongs to the app, else `/`.
#[must_use]
pub fn return_to(given: Option<&str>) -> &str {
    given.filter(|path| is_path_of_app(path)).unwrap_or("/")
}

fn is_path_of_app(path: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>');
    path.len() <= LONGEST
        && path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(plain)
        && !is_of_sign_in(path)
}

/// Compares the path as a browser resolves it and as the service decodes it.
fn is_of_sign_in(path: &str) -> bool {
    let resolved = Url::parse("https://app.invalid").and_then(|base| base.join(path));
    let Ok(resolved) = resolved else { return true };
    let decoded = percent_decode_str(resolved.path()).decode_utf8_lossy().to_ascii_lowercase();
    resolved.host_str() != Some("app.invalid")
        || decoded.strip_prefix(SIGN_IN).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_of_the_app_stay() {
        for good in
            ["/", "/a/b?x=1#y", "/a//b", "/x?u=https://b", "/%E2%82%AC", "/__service/authors", "/.//b"]
        {
            assert_eq!(return_to(Some(good)), good);
        }
        let longest = format!("/{}", "a".repeat(LONGEST - 1));
        assert_eq!(return_to(Some(&longest)), longest);
    }

    #[test]
    fn other_targets_lead_to_the_first_page() {
        let too_long = format!("/{}", "a".repeat(LONGEST));
        for bad in [
            "",
            "a",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            " /",
            "/a b",
            "/\t/evil.example",
            "/\r\nSet-Cookie: a=b",
            "/ä",
            "/\"",
            "/<x>",
            "/__service/auth",
            "/__service/auth/login?return_to=/",
            "/__service/auth/logout",
            "/x/../__service/auth/login",
            "/%5f_service/auth/login",
            "/__SERVICE/AUTH/login",
            "/x/%2e%2e/__service/auth/login",
            &too_long,
        ] {
            assert_eq!(return_to(Some(bad)), "/", "{bad:?}");
        }
        assert_eq!(return_to(None), "/");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// A browser stays on the app's host for any input.
        #[test]
        fn a_browser_stays_on_the_app_host(given in r#"[/\\.:@?#%a-z\x00-\x20_]{0,40}"#) {
            let base = Url::parse("https://notes.apps.example.org/__service/auth/callback").unwrap();
            let there = base.join(return_to(Some(&given))).unwrap();
            prop_assert_eq!(there.origin(), base.origin());
            prop_assert!(!there.path().starts_with("/__service/auth/"));
        }
    }
}
