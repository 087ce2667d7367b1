//! Handles: `^[a-z0-9]+(?:-[a-z0-9]+)*$`, at most 64 characters, no UUID and no path of ours.

use uuid::Uuid;

const LONGEST: usize = 64;
/// Paths beside the workflows, which would hide a workflow of that name.
const RESERVED: [&str; 1] = ["check"];

pub(super) fn is_valid(handle: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let free = !RESERVED.contains(&handle) && Uuid::parse_str(handle).is_err();
    free && handle.len() <= LONGEST && handle.split('-').all(word)
}

/// A handle that reads like the name.
pub(super) fn from_name(name: &str) -> String {
    near(name).unwrap_or_else(|| "workflow".to_owned())
}

/// The handle that a text comes nearest to, if there is any.
pub(super) fn near(text: &str) -> Option<String> {
    let mut handle = String::new();
    for letter in text.to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            handle.push(letter);
        } else if !handle.is_empty() && !handle.ends_with('-') {
            handle.push('-');
        }
    }
    let handle: String = handle.chars().take(LONGEST - 4).collect();
    let handle = handle.trim_end_matches('-');
    is_valid(handle).then(|| handle.to_owned())
}

/// The handle itself, then with -2, -3 and so on.
pub(super) fn numbered(handle: &str, attempt: usize) -> String {
    if attempt == 1 { handle.to_owned() } else { format!("{handle}-{attempt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_have_one_form() {
        for good in ["a", "a-b", "order-66", "0"] {
            assert!(is_valid(good), "{good}");
        }
        let long = "a".repeat(65);
        for bad in
            ["", "-", "a-", "-a", "a--b", "A", "a b", "é", &long, "0190b0a0-0000-7000-8000-000000000000"]
        {
            assert!(!is_valid(bad), "{bad}");
        }
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
