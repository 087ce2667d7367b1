//! The known name that a wrong one most likely means.

/// The known name that `name` most likely means: at most a third of its letters are wrong.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = length.div_ceil(3);
    let similar = known.into_iter().filter(|known| known.chars().count().abs_diff(length) <= allowed);
    let close = similar.map(|known| (distance(name, known), known));
    close
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein's distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut last = index + 1;
        let mut next = vec![last];
        for ((other, above_left), above) in right.iter().zip(&row).zip(row.iter().skip(1)) {
            last = (above_left + usize::from(letter != *other)).min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
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
            ("zebra", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("é", "e")), (3, 3, 1));
    }

    #[test]
    fn a_long_name_costs_little() {
        assert_eq!(nearest(&"x".repeat(1 << 20), ["name"]), None);
    }
}
