//! Names in paths and headers: `^[a-z0-9]+(?:-[a-z0-9]+)*$`, at most 64 characters, and not a UUID, which would be an
//! id.

use uuid::Uuid;

/// Maximum characters.
pub(crate) const LONGEST: usize = 64;

/// Whether a text is a valid slug.
#[must_use]
pub fn is_valid(text: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= LONGEST && Uuid::parse_str(text).is_err() && text.split('-').all(word)
}

/// The slug nearest to a text, if any.
#[must_use]
pub fn near(text: &str) -> Option<String> {
    let mut slug = String::new();
    for letter in text.to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug: String = slug.chars().take(LONGEST - 4).collect();
    let slug = slug.trim_end_matches('-');
    is_valid(slug).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_one_form() {
        for good in ["a", "a-b", "order-66", "0"] {
            assert!(is_valid(good), "{good}");
        }
        let long = "a".repeat(65);
        for bad in
            ["", "-", "a-", "-a", "a--b", "A", "a b", "é", &long, "0190b0a0-0000-7000-8000-000000000000"]
        {
            assert!(!is_valid(bad), "{bad}");
        }
        assert_eq!(near("Support Team!").as_deref(), Some("support-team"));
        assert_eq!(near("日本語"), None);
    }
}
