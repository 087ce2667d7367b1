//! Suggests the known name that a wrong one most likely means.

use strsim::levenshtein;

/// Maximum characters of a name that gets a suggestion: the cost of a comparison grows with their square.
const LONGEST: usize = 64;

/// The known name that `name` most likely means: at most a third of its characters are wrong. `None` for a name with
/// more than 64 characters.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_up_to(LONGEST, name, known)
}

/// As [`nearest`], for names with at most `longest` characters.
#[must_use]
pub fn nearest_up_to<'a>(
    longest: usize,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = length_up_to(longest, name)?;
    let allowed = length.div_ceil(3);
    let similar = known.into_iter().filter(|known| {
        length_up_to(length + allowed, known).is_some_and(|known| known.abs_diff(length) <= allowed)
    });
    let close = similar.map(|known| (levenshtein(name, known), known));
    close
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Counts the characters of a text; `None` if there are more than `most`. Reads no more of the text than that.
fn length_up_to(most: usize, text: &str) -> Option<usize> {
    Some(text.chars().take(most + 1).count()).filter(|length| *length <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_found() {
        let known = ["require_login", "name", "description", "threads.create"];
        for (name, expected) in [
            ("requireLogin", Some("require_login")),
            ("nmae", Some("name")),
            ("descripton", Some("description")),
            ("thread.create", Some("threads.create")),
            ("Name", Some("name")),
            ("treads.create", Some("threads.create")),
            ("zebra", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }

    #[test]
    fn long_names_are_compared_cheaply() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["name"]), None);
        let (long, other) = ("x".repeat(1 << 20), format!("{}y", "x".repeat(1 << 20)));
        assert_eq!(nearest(&long, [other.as_str()]), None);
        assert_eq!(nearest("x", [other.as_str()]), None);
    }

    #[test]
    fn names_up_to_the_maximum_length_are_compared() {
        let known = "x".repeat(LONGEST);
        assert_eq!(nearest(&"x".repeat(LONGEST - 1), [known.as_str()]), Some(known.as_str()));
        assert_eq!(nearest(&"x".repeat(LONGEST + 1), [known.as_str()]), None);
        assert_eq!(nearest_up_to(200, &"x".repeat(LONGEST + 1), [known.as_str()]), Some(known.as_str()));
    }
}
