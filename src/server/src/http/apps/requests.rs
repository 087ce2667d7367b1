//! Parses and validates app requests.

use control::apps::is_alias;
use serde_json::{Map, Value};
use wire::{AppAccess, CreateApp, FieldError, UpdateApp};

use crate::http::fields::{Fields, Parsed};

/// Maximum characters in a name.
const LONGEST_NAME: usize = 100;

/// `POST /api/apps`.
pub(super) fn create(body: &Map<String, Value>) -> Parsed<CreateApp> {
    let mut fields = Fields::new(body);
    fields.require("alias");
    let alias = fields.text("alias").unwrap_or_default().to_owned();
    if body.get("alias").is_some_and(Value::is_string) && !is_alias(&alias) {
        let form = "must be 1 to 63 characters of a-z, 0-9 and '-', without '-' at the beginning or the end; not a UUID, not 'www'";
        let problem = FieldError::new("/alias", "format", form);
        let near = alias.trim().to_ascii_lowercase().replace([' ', '_', '.'], "-");
        let near = near.trim_matches('-');
        fields.note(if is_alias(near) { problem.suggest(format!("write '{near}'")) } else { problem });
    }
    fields.require("name");
    let name = fields.line("name", 1, LONGEST_NAME).unwrap_or_default();
    let access = access(&mut fields);
    finish(fields, CreateApp { alias, name, access })
}

/// `PATCH /api/apps/{app}`.
pub(super) fn update(body: &Map<String, Value>) -> Parsed<UpdateApp> {
    let mut fields = Fields::new(body);
    let name = fields.line("name", 1, LONGEST_NAME);
    let access = access(&mut fields);
    if body.contains_key("alias") {
        fields.pass_over(&["alias"]);
        let problem =
            FieldError::new("/alias", "unchangeable", "cannot change, because it is the address of the app");
        fields.note(problem.suggest("create another app, and delete this one"));
    } else if !["name", "access"].iter().any(|field| body.get(*field).is_some_and(|value| !value.is_null())) {
        fields.note(FieldError::new("", "required", "has nothing to change").suggest("{\"name\": …}"));
    }
    finish(fields, UpdateApp { name, access })
}

fn access(fields: &mut Fields<'_>) -> Option<AppAccess> {
    fields.one_of("access", &AppAccess::NAMES).and_then(AppAccess::from_name)
}

fn finish<T>(fields: Fields<'_>, value: T) -> Parsed<T> {
    let problems = fields.finish();
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems<T>(read: impl Fn(&Map<String, Value>) -> Parsed<T>, body: Value) -> Vec<String> {
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read(body.as_object().unwrap()).err().unwrap_or_default().into_iter().map(line).collect()
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(problems(create, json!({})), ["/alias required", "/name required"]);
        assert_eq!(problems(create, json!({"alias": "a", "name": "A", "access": "members"})), [""; 0]);
        let bad = json!({"alias": "A b", "name": "", "access": "all", "x": 1});
        assert_eq!(
            problems(create, bad),
            ["/alias format", "/name length", "/access type", "/x unknown_field"]
        );
        assert_eq!(problems(create, json!({"alias": 1, "name": "A"})), ["/alias type"]);
        let refused = create(json!({"alias": "My App", "name": "A"}).as_object().unwrap()).unwrap_err();
        assert_eq!(refused[0].suggestion.as_deref(), Some("write 'my-app'"));
        assert_eq!(problems(update, json!({})), [" required"]);
        assert_eq!(problems(update, json!({"name": null})), [" required"]);
        assert_eq!(problems(update, json!({"alias": "b"})), ["/alias unchangeable"]);
        assert_eq!(problems(update, json!({"access": "members"})), [""; 0]);
    }
}
