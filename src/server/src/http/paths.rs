//! Suggests the path that a caller most likely meant when the requested one is not found.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use wire::{nearest, nearest_up_to};

/// Every path, with `*` for each parameter.
static PATHS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| wire::operations::all().map(|operation| operation.pattern()).collect());

/// Maximum length of a path that gets a suggestion.
const LONGEST: usize = 200;

/// Incomplete paths and their completions.
const UNFINISHED: [(&str, &str); 5] = [
    ("/api/workflows/*/versions/*/diff", "/diff/{another version}"),
    ("/api/workflows/*/versions/*/diagram", "/diagram.svg"),
    ("/api/workflows/*/diff", "/versions/{n}/diff/{another version}"),
    ("/api/workflows/*/diagram", "/versions/{n}/diagram.svg"),
    ("/api/workflows/*/diagram.svg", "/versions/{n}/diagram.svg"),
];

/// Returns the most likely intended path. Tolerates extra slashes, other capitals, and one or two wrong letters in a
/// word.
pub(super) fn near(path: &str) -> Option<String> {
    let given: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    // Long paths are not typed by hand.
    if given.is_empty() || path.len() > LONGEST {
        return None;
    }
    let unfinished = UNFINISHED.iter().find_map(|(known, rest)| {
        let known: Vec<&str> = known.split('/').skip(1).collect();
        let same = |(given, known): (&&str, &&str)| *known == "*" || given == known;
        let whole = given.len() == known.len() && given.iter().zip(&known).all(same);
        let (_, kept) = given.split_last().filter(|_| whole)?;
        Some(format!("/{}{rest}", kept.join("/")))
    });
    if unfinished.is_some() {
        return unfinished;
    }
    let all = PATHS.iter().filter(|known| *known != "/");
    let candidates: Vec<String> = all.filter_map(|known| meant(&given, known)).collect();
    let clean = format!("/{}", given.join("/")).to_lowercase();
    let near = nearest_up_to(LONGEST, &clean, candidates.iter().map(String::as_str))?;
    (near != path).then(|| near.to_owned())
}

fn meant(given: &[&str], known: &str) -> Option<String> {
    let known: Vec<&str> = known.split('/').skip(1).collect();
    if given.len() != known.len() {
        return None;
    }
    let mut path = String::new();
    for (given, known) in given.iter().zip(known) {
        let word = if known == "*" { (*given).to_owned() } else { word(given, known)?.to_owned() };
        path.push('/');
        path.push_str(&word);
    }
    Some(path)
}

/// Returns `known` if `given` is a misspelling of it. A longer word that contains it is another word: `unpublish` does
/// not match `publish`.
fn word<'a>(given: &str, known: &'a str) -> Option<&'a str> {
    let slip = given.len().abs_diff(known.len()) <= 1;
    nearest(&given.to_lowercase(), [known]).filter(|_| slip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_path_gets_a_suggestion() {
        for (path, meant) in [
            ("/api/workflows/", "/api/workflows"),
            ("//api/chat", "/api/chat"),
            ("/API/Chat", "/api/chat"),
            ("/api/chats", "/api/chat"),
            ("/api/workflow/desk/publsh", "/api/workflows/desk/publish"),
            ("/api/workflows/desk/version", "/api/workflows/desk/versions"),
            ("/api/workflows/Desk/Public/", "/api/workflows/Desk/public"),
            ("/api/workflows/check/", "/api/workflows/check"),
            ("/health", "/healthz"),
            ("/chats/x", "/chat/x"),
            ("/api/chat/stream/x/stop", "/api/chat/streams/x/stop"),
            ("/api/workflows/x/versions/1/diff", "/api/workflows/x/versions/1/diff/{another version}"),
            ("/api/workflows/x/versions/1/diagram.png", "/api/workflows/x/versions/1/diagram.svg"),
            ("/api/workflows/x/versions/1/diagram/", "/api/workflows/x/versions/1/diagram.svg"),
            ("/api/workflows/x/diagram.svg", "/api/workflows/x/versions/{n}/diagram.svg"),
            ("/api/run", "/api/runs"),
            (
                "/api/workflow/0190c0de-0000-7000-8000-000000000001/versions/1/diff/2",
                "/api/workflows/0190c0de-0000-7000-8000-000000000001/versions/1/diff/2",
            ),
        ] {
            assert_eq!(near(path).as_deref(), Some(meant), "{path}");
        }
    }

    #[test]
    fn other_paths_get_no_suggestion() {
        let long = format!("/api/workflows/{}/publsh", "x".repeat(300));
        for path in
            ["/", "", "/api", "/favicon.ico", "/api/workflows/x/unpublish", "/api/users", "/chat/x", &long]
        {
            assert_eq!(near(path), None, "{path}");
        }
        for path in PATHS.iter() {
            assert_eq!(near(path), None, "{path} exists");
        }
    }
}
