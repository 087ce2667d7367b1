//! The path that a caller most likely meant when the requested one is not found.

use wire::nearest;

/// Every path, a parameter as `*`, and the methods that it takes.
pub const PATHS: &[(&str, &str)] = &[
    ("/", "GET, HEAD"),
    ("/chat/*", "GET, HEAD"),
    ("/login", "GET, HEAD"),
    ("/assets/*", "GET, HEAD"),
    ("/healthz", "GET, HEAD"),
    ("/readyz", "GET, HEAD"),
    ("/api/system/health", "GET, HEAD"),
    ("/api/system/stream", "GET"),
    ("/api/chat", "POST"),
    ("/api/chat/session", "POST"),
    ("/api/chat/threads/*/stream", "GET"),
    ("/api/chat/streams/*", "GET"),
    ("/api/chat/streams/*/stop", "POST"),
    ("/api/auth/email/start", "POST"),
    ("/api/auth/email/verify", "POST"),
    ("/api/auth/magic/*", "GET, HEAD, POST"),
    ("/api/auth/oidc/start", "GET"),
    ("/api/auth/oidc/callback", "GET"),
    ("/api/auth/refresh", "POST"),
    ("/api/auth/logout", "POST"),
    ("/api/auth/terminal", "POST"),
    ("/api/auth/me", "GET, HEAD"),
    ("/api/auth/sessions", "DELETE"),
    ("/api/auth/sessions/*", "DELETE"),
    ("/api/workflows", "GET, HEAD, POST"),
    ("/api/workflows/check", "POST"),
    ("/api/workflows/*", "DELETE, GET, HEAD, PUT"),
    ("/api/workflows/*/public", "GET, HEAD"),
    ("/api/workflows/*/publish", "POST"),
    ("/api/workflows/*/publish/revoke", "POST"),
    ("/api/workflows/*/chat/session", "POST"),
    ("/api/workflows/*/versions", "GET, HEAD, POST"),
    ("/api/workflows/*/versions/*", "GET, HEAD"),
    ("/api/workflows/*/versions/*/live", "POST"),
    ("/api/workflows/*/versions/*/diff/*", "GET, HEAD"),
    ("/api/workflows/*/versions/*/diagram.svg", "GET, HEAD"),
    ("/api/workflows/*/versions/*/diagram.mmd", "GET, HEAD"),
    ("/api/workflows/*/runs", "GET, HEAD, POST"),
    ("/api/workflows/*/triggers/cron", "DELETE, GET, HEAD, PUT"),
    ("/api/workflows/*/triggers/webhook", "DELETE, GET, HEAD, PATCH, POST, PUT"),
    ("/api/workflows/*/triggers/webhook/config", "DELETE, GET, HEAD, PUT"),
    ("/api/runs", "GET, HEAD"),
    ("/api/runs/*", "GET, HEAD"),
    ("/api/runs/*/events", "GET"),
    ("/api/runs/*/trace", "GET, HEAD"),
    ("/api/runs/*/cancel", "POST"),
    ("/api/runs/*/rerun", "POST"),
    ("/api/runs/*/inputs/*", "POST"),
    ("/api/indexes", "GET, HEAD"),
    ("/api/indexes/*", "DELETE"),
    ("/api/credentials", "GET, HEAD, POST"),
    ("/api/credentials/*", "DELETE, PATCH"),
    ("/api/workspaces", "GET, HEAD, POST"),
    ("/api/workspaces/*", "DELETE, GET, HEAD, PATCH"),
    ("/api/workspaces/*/members", "GET, HEAD, POST"),
    ("/api/workspaces/*/members/*", "DELETE, PATCH"),
    ("/api/admin/service-tokens", "GET, HEAD, POST"),
    ("/api/admin/service-tokens/*", "DELETE, GET, HEAD"),
    ("/api/admin/service-tokens/*/revoke", "POST"),
    ("/api/admin/service-tokens/*/rotate", "POST"),
    ("/api/admin/audit", "GET, HEAD"),
    ("/api/admin/vault/rotate", "POST"),
    ("/api/nodes", "GET, HEAD"),
    ("/api/nodes/*", "GET, HEAD"),
    ("/ws/workflow/*", "GET"),
];

/// Incomplete paths, and how they continue.
const UNFINISHED: [(&str, &str); 5] = [
    ("/api/workflows/*/versions/*/diff", "/diff/{another version}"),
    ("/api/workflows/*/versions/*/diagram", "/diagram.svg"),
    ("/api/workflows/*/diff", "/versions/{n}/diff/{another version}"),
    ("/api/workflows/*/diagram", "/versions/{n}/diagram.svg"),
    ("/api/workflows/*/diagram.svg", "/versions/{n}/diagram.svg"),
];

/// Whether a route stands in the table, with the same methods.
pub(super) fn knows(path: &str, allow: &str) -> bool {
    let segments: Vec<&str> =
        path.split('/').map(|segment| if segment.starts_with('{') { "*" } else { segment }).collect();
    PATHS.contains(&(segments.join("/").as_str(), allow))
}

/// The path that was most likely meant: other slashes, other capitals, or a letter or two in a word.
pub(super) fn near(path: &str) -> Option<String> {
    let given: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    // What is long was not typed by hand.
    if given.is_empty() || path.len() > 200 {
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
    let all = PATHS.iter().filter(|(known, _)| *known != "/");
    let candidates: Vec<String> = all.filter_map(|(known, _)| meant(&given, known)).collect();
    let clean = format!("/{}", given.join("/")).to_lowercase();
    let near = nearest(&clean, candidates.iter().map(String::as_str))?;
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

/// `known`, when `given` is that word but for a slip. A word that only holds it is another word: `unpublish` is no
/// `publish`.
fn word<'a>(given: &str, known: &'a str) -> Option<&'a str> {
    let slip = given.len().abs_diff(known.len()) <= 1;
    nearest(&given.to_lowercase(), [known]).filter(|_| slip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen() {
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
        ] {
            assert_eq!(near(path).as_deref(), Some(meant), "{path}");
        }
    }

    #[test]
    fn what_is_something_else_gets_no_guess() {
        let long = format!("/api/workflows/{}/publsh", "x".repeat(300));
        for path in
            ["/", "", "/api", "/favicon.ico", "/api/workflows/x/unpublish", "/api/users", "/chat/x", &long]
        {
            assert_eq!(near(path), None, "{path}");
        }
        for (path, _) in PATHS {
            assert_eq!(near(path), None, "{path} is there");
        }
    }
}
