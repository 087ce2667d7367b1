//! Parses and validates service token requests.

use auth::scope::Scope;
use serde_json::{Map, Value};
use wire::{CreateServiceToken, FieldError, RotateServiceToken};

use crate::http::fields::{Fields, Parsed, unknown};

/// A hundred years, in seconds.
const LONGEST: i64 = 3_153_600_000;
/// A week, in seconds.
const LONGEST_OVERLAP: i64 = 604_800;
const MOST_WORKSPACES: usize = 100;

fn read<T>(fields: Fields<'_>, value: T) -> Parsed<T> {
    let problems = fields.finish();
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// `POST /api/admin/service-tokens`.
pub(super) fn create(body: &Map<String, Value>) -> Parsed<CreateServiceToken> {
    let mut fields = Fields::new(body);
    let name = fields.line("name", 0, 200);
    fields.require("scopes");
    let scopes = scopes(&mut fields);
    let workspaces = either(&mut fields, "workspaces", "workspace_ids", workspaces).unwrap_or_default();
    let expires_in = either(&mut fields, "expires_in", "expires_in_seconds", |fields, name| {
        fields.whole(name, 1..=LONGEST)
    });
    let name = name.filter(|name| !name.is_empty());
    read(fields, CreateServiceToken { name, scopes, workspaces, expires_in })
}

/// Reads the first present member from a name and its alias.
fn either<T>(
    fields: &mut Fields<'_>,
    name: &'static str,
    alias: &'static str,
    mut read: impl FnMut(&mut Fields<'_>, &'static str) -> Option<T>,
) -> Option<T> {
    let (first, second) = (read(fields, name), read(fields, alias));
    if first.is_some() && second.is_some() {
        let message = format!("means the same as {name}; give one of them");
        fields.note(FieldError::new(format!("/{alias}"), "repeated", message));
    }
    first.or(second)
}

fn scopes(fields: &mut Fields<'_>) -> Vec<String> {
    let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let mut scopes = Vec::new();
    for (pointer, text) in fields.texts("scopes").unwrap_or_default() {
        match Scope::parse(text) {
            Some(scope) if scopes.contains(&scope) => {}
            Some(scope) => scopes.push(scope),
            None => fields.note(unknown(pointer, "unknown_scope", "scope", text, &known)),
        }
    }
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}

fn workspaces(fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<String>> {
    let texts = fields.texts(name)?;
    if texts.len() > MOST_WORKSPACES {
        let message = format!("must have at most {MOST_WORKSPACES} entries");
        fields.note(FieldError::new(format!("/{name}"), "length", message));
    }
    for (pointer, text) in &texts {
        if text.is_empty() || text.len() > 64 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            fields.note(FieldError::new(
                pointer.clone(),
                "format",
                "must be the id or the slug of a workspace",
            ));
        }
    }
    Some(texts.into_iter().map(|(_, text)| text.to_owned()).collect())
}

/// `POST …/rotate`.
pub(super) fn rotate(body: &Map<String, Value>) -> Parsed<RotateServiceToken> {
    let mut fields = Fields::new(body);
    let overlap_seconds = fields.whole("overlap_seconds", 0..=LONGEST_OVERLAP).unwrap_or(0);
    read(fields, RotateServiceToken { overlap_seconds })
}

/// `{"reason"}`, for later readers.
pub(super) fn revoke(body: &Map<String, Value>) -> Parsed<String> {
    let mut fields = Fields::new(body);
    fields.require("reason");
    let reason = fields.line("reason", 1, 500).unwrap_or_default();
    read(fields, reason)
}
