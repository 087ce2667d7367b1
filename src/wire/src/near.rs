//! Suggests the known name that a wrong one most likely means.

use strsim::levenshtein;

/// The known name that `name` most likely means: at most a third of its characters are wrong.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = length.div_ceil(3);
    let similar = known.into_iter().filter(|known| known.chars().count().abs_diff(length) <= allowed);
    let close = similar.map(|known| (levenshtein(name, known), known));
    close
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
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
    }
}
