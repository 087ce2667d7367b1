//! Detects plain-text secrets in a graph. Everyone who may read the graph can read them, and every version keeps
//! them.

use serde_json::Value;
use wire::FieldError;

use super::Check;
use super::secret_uses::texts_with_secrets;

/// Headers whose whole value is a secret.
const SECRET_HEADERS: [&str; 6] =
    ["x-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "private-token"];
/// Fields that hold a single address. Other texts may contain anything that resembles one.
const ADDRESSES: [&str; 4] = ["url", "base_url", "webhook_url", "dsn"];
/// Headers whose value is a scheme followed by a secret.
const AUTHORIZATION: [&str; 2] = ["authorization", "proxy-authorization"];

/// Reports every text that contains a secret. Versions saved earlier keep running.
pub(super) fn check(document: &Value, check: &mut Check) {
    texts_with_secrets(document, &mut |pointer, text| {
        if let Some(what) = secret_in(pointer, text) {
            let message =
                format!("contains {what} in plain text; everyone who may read the workflow can read it");
            let problem = FieldError::new(pointer, "plaintext_secret", message);
            check.note_at_saving(
                problem
                    .suggest("store it with `callboard credential create NAME`, and write [[NAME]] instead"),
            );
        }
    });
}

/// Describes the secret in a text. Templates and vault references are not plain-text secrets.
fn secret_in(pointer: &str, text: &str) -> Option<&'static str> {
    let mut parts = pointer.rsplit('/');
    let (name, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let name = name.to_ascii_lowercase();
    if parent == "headers" {
        // `Bearer [[key]]` begins with a scheme, `{{ inputs.key }}` does not.
        let credentials = text.trim().split_once(' ').filter(|(scheme, _)| is_literal(scheme));
        let credentials = credentials.map_or(text, |(_, credentials)| credentials);
        if AUTHORIZATION.contains(&name.as_str()) && is_literal(credentials) {
            return Some("a key");
        }
        if SECRET_HEADERS.contains(&name.as_str()) && is_literal(text) {
            return Some("a key");
        }
    }
    let in_dsn = name == "dsn" && password_of_settings(text).is_some_and(is_literal);
    let in_address = ADDRESSES.contains(&name.as_str()) && password_of_address(text).is_some_and(is_literal);
    (in_dsn || in_address).then_some("a password")
}

fn is_literal(text: &str) -> bool {
    !text.trim().is_empty() && !["[[", "{{", "{%"].iter().any(|opener| text.contains(opener))
}

/// Returns the password in `scheme://user:password@host`.
fn password_of_address(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

/// Returns the password in `host=… password=…`, or in an address with `?password=…`.
fn password_of_settings(text: &str) -> Option<&str> {
    let at = text.find("password=")?;
    let value = text.get(at + "password=".len()..)?;
    value.split([' ', '&']).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_secrets_in_plain_text_are_found() {
        let nodes = json!({"nodes": [
            {"type": "postgres_query", "dsn": "postgres://app:hunter2@db.example/x"},
            {"type": "postgres_query", "dsn": "host=db user=app password=hunter2"},
            {"type": "postgres_query", "dsn": "postgres://app:[[db]]@db.example/x"},
            {"type": "postgres_query", "dsn": "postgres://app@db.example/x?password={{ inputs.p }}"},
            {"type": "http_request", "url": "https://example.org/a:b@c",
             "headers": {"Authorization": "Bearer abc", "X-Api-Key": "k", "Accept": "text/html"}},
            {"type": "http_request", "url": "https://u:p@example.org/",
             "headers": {"authorization": "Bearer [[key]]", "x-api-key": "[[key]]", "cookie": ""}},
            {"type": "for_each", "body": {"type": "http_request", "headers": {"authorization": "secret"}}},
            {"type": "agent", "tools": [{"type": "mcp", "headers": {"authorization": "Bearer x"}},
                                        {"type": "http", "request": {"url": "https://a:b@example.org"}}]},
            {"type": "reply", "text": "Bearer abc"},
            {"type": "http_request", "url": "https://example.org", "headers": {"authorization": "{{ inputs.auth }}"}},
            {"type": "http_request", "url": "https://example.org", "headers": {"authorization": "[[My key]]"}},
            {"type": "http_request", "url": "https://example.org", "headers": {"authorization": "Bearer {{ inputs.auth }}"}},
            {"type": "http_request", "url": "https://example.org", "headers": {"Cookie": "lang=de"},
             "json": {"text": "See https://example.org\nQuestions: help@example.org"},
             "body": "{\"site\":\"https://example.org\",\"mail\":\"a@b.example\"}"},
        ]});
        let mut found = Check::default();
        check(&nodes, &mut found);
        let pointers: Vec<&str> = found.at_saving.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/nodes/0/dsn",
                "/nodes/1/dsn",
                "/nodes/4/headers/Authorization",
                "/nodes/4/headers/X-Api-Key",
                "/nodes/5/url",
                "/nodes/6/body/headers/authorization",
                "/nodes/7/tools/0/headers/authorization",
                "/nodes/7/tools/1/request/url",
            ]
        );
        assert!(found.at_saving.iter().all(|problem| !problem.message.contains("hunter2")));
    }
}
