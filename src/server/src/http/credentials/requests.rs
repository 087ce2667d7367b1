//! Parses and validates credential requests. Errors never repeat their contents.

use control::vault::CredentialUpdate;
use kernel::Secret;
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use wire::{FieldError, is_credential_name};

use crate::http::fields::{Fields, Parsed};

/// Maximum bytes in a secret.
const LONGEST_SECRET: usize = 64 * 1024;
/// Maximum characters in a provider name.
const LONGEST_PROVIDER: usize = 64;
/// Maximum characters in a description.
const LONGEST_DESCRIPTION: usize = 500;

/// A credential to create.
pub(super) struct CredentialRequest {
    pub(super) name: String,
    pub(super) secret: Secret,
    pub(super) provider: Option<String>,
    pub(super) description: Option<String>,
}

/// `POST /api/credentials`.
pub(super) fn create(body: &Map<String, Value>) -> Parsed<CredentialRequest> {
    let mut fields = Fields::new(body);
    fields.require("name");
    let name = fields.text("name").unwrap_or_default().to_owned();
    if body.get("name").is_some_and(Value::is_string) && !is_credential_name(&name) {
        let form = "must begin with a letter and contain only letters, digits, spaces, '_', '.' and '-', at most 64 \
                    characters, without a space at the end";
        fields.note(FieldError::new("/name", "format", form).suggest("graphs refer to it as [[name]]"));
    }
    fields.require("secret");
    let secret = secret(&mut fields);
    let provider = fields.line("provider", 1, LONGEST_PROVIDER);
    let description = fields.line("description", 0, LONGEST_DESCRIPTION);
    match (secret, fields.finish()) {
        (Some(secret), problems) if problems.is_empty() => {
            Ok(CredentialRequest { name, secret, provider, description })
        }
        (_, problems) => Err(problems),
    }
}

/// `PATCH /api/credentials/{id}`.
pub(super) fn update(body: &Map<String, Value>) -> Parsed<CredentialUpdate> {
    let mut fields = Fields::new(body);
    let secret = secret(&mut fields);
    let provider = fields.line("provider", 1, LONGEST_PROVIDER);
    let description = fields.line("description", 0, LONGEST_DESCRIPTION);
    if body.is_empty() {
        fields.note(FieldError::new("", "required", "has nothing to change").suggest("{\"secret\": …}"));
    }
    if body.get("secret").is_some_and(Value::is_null) {
        fields
            .note(FieldError::new("/secret", "type", "must be a string").suggest("use DELETE to remove it"));
    }
    if body.contains_key("name") {
        fields.pass_over(&["name"]);
        let problem = FieldError::new(
            "/name",
            "unchangeable",
            "the name cannot change, because graphs refer to it as [[name]]",
        );
        fields.note(problem.suggest("create another one, and delete this one"));
    }
    let problems = fields.finish();
    if !problems.is_empty() {
        return Err(problems);
    }
    let given = |name: &str, value| body.contains_key(name).then_some(value);
    Ok(CredentialUpdate {
        secret,
        provider: given("provider", provider),
        description: given("description", description),
    })
}

fn secret(fields: &mut Fields<'_>) -> Option<Secret> {
    let secret = Secret::from(fields.text("secret")?.to_owned());
    let length = secret.expose_secret().len();
    if length == 0 || length > LONGEST_SECRET {
        let message = format!("must have 1 to {LONGEST_SECRET} bytes; it has {length}");
        fields.note(FieldError::new("/secret", "length", message));
    } else if secret.expose_secret().contains('\0') {
        fields.note(FieldError::new("/secret", "format", "must be text without the character NUL"));
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems<T>(read: impl Fn(&Map<String, Value>) -> Parsed<T>, body: Value) -> Vec<String> {
        let read = read(body.as_object().unwrap());
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read.err().unwrap_or_default().into_iter().map(line).collect()
    }

    #[test]
    fn every_problem_is_reported_without_the_secret() {
        assert_eq!(problems(create, json!({})), ["/name required", "/secret required"]);
        assert_eq!(problems(create, json!({"name": "a", "secret": "x"})), [""; 0]);
        let bad = json!({"name": "2]", "secret": "", "provider": "", "description": 1, "x": 1});
        assert_eq!(
            problems(create, bad),
            ["/name format", "/secret length", "/provider length", "/description type", "/x unknown_field"]
        );
        let long = json!({"name": "a", "secret": "s".repeat(LONGEST_SECRET + 1)});
        assert_eq!(problems(create, long), ["/secret length"]);
        let body = json!({"name": 1, "secret": ["canary"]});
        let found = create(body.as_object().unwrap()).err().unwrap();
        assert!(!format!("{found:?}").contains("canary"));
        assert_eq!(problems(update, json!({})), [" required"]);
        assert_eq!(problems(update, json!({"secret": null})), ["/secret type"]);
        assert_eq!(
            problems(update, json!({"name": "b", "secret": "x\u{0}"})),
            ["/secret format", "/name unchangeable"]
        );
        let body = json!({"provider": null, "description": "d"});
        let changed = update(body.as_object().unwrap()).ok().unwrap();
        assert_eq!((changed.provider, changed.description), (Some(None), Some(Some("d".to_owned()))));
        assert!(changed.secret.is_none());
    }
}
