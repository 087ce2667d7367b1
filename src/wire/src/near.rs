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
    fn near_names_are_found_and_far_ones_are_not() {
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
    fn a_long_name_costs_little() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["name"]), None);
    }
}
