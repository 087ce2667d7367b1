//! Handles: slugs that do not collide with our own paths.

use crate::slug;

/// Paths next to the workflows, which would hide a workflow with that name.
const RESERVED: [&str; 1] = ["check"];

/// Whether a text is a valid handle.
#[must_use]
pub fn is_valid(handle: &str) -> bool {
    !RESERVED.contains(&handle) && slug::is_valid(handle)
}

/// A handle derived from the name.
pub(crate) fn from_name(name: &str) -> String {
    near(name).unwrap_or_else(|| "workflow".to_owned())
}

/// The valid handle nearest to a text, if any.
#[must_use]
pub fn near(text: &str) -> Option<String> {
    slug::near(text).filter(|near| is_valid(near))
}

/// The handle itself, then with the suffix -2, -3 and so on.
pub(crate) fn numbered(handle: &str, attempt: usize) -> String {
    if attempt == 1 { handle.to_owned() } else { format!("{handle}-{attempt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_path_is_not_a_valid_handle() {
        assert!(!is_valid("check") && is_valid("checks") && near("Check!").is_none());
    }

    #[test]
    fn names_become_handles() {
        for (name, handle) in [
            ("Support Triage", "support-triage"),
            ("  Wie geht's?  ", "wie-geht-s"),
            ("日本語", "workflow"),
            ("0190b0a0-0000-7000-8000-000000000000", "workflow"),
        ] {
            assert_eq!(from_name(name), handle);
        }
        assert!(is_valid(&numbered(&from_name(&"x y".repeat(100)), 100)));
    }
}
