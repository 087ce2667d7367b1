//! Handles: slugs that are no path of ours.

use crate::slug;

/// Paths beside the workflows, which would hide a workflow of that name.
const RESERVED: [&str; 1] = ["check"];

/// Whether a text is one.
#[must_use]
pub fn is_valid(handle: &str) -> bool {
    !RESERVED.contains(&handle) && slug::is_valid(handle)
}

/// A handle that reads like the name.
pub(crate) fn from_name(name: &str) -> String {
    near(name).unwrap_or_else(|| "workflow".to_owned())
}

/// The handle that a text comes nearest to, if there is any.
#[must_use]
pub fn near(text: &str) -> Option<String> {
    slug::near(text).filter(|near| is_valid(near))
}

/// The handle itself, then with -2, -3 and so on.
pub(crate) fn numbered(handle: &str, attempt: usize) -> String {
    if attempt == 1 { handle.to_owned() } else { format!("{handle}-{attempt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_ours_is_no_handle() {
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
