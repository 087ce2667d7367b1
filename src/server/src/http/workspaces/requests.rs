//! Parses and validates workspace requests.

use auth::role::Role;
use auth::sign_in::EmailAddress;
use control::slug;
use serde_json::{Map, Value};
use wire::{CreateWorkspace, FieldError, TrainingCalls, UpdateWorkspace};

use crate::http::fields::{Fields, Parsed, unknown};

/// Maximum characters in a name.
const LONGEST_NAME: usize = 100;

/// A person to add, with their role.
pub(super) struct Invited {
    pub(super) email: EmailAddress,
    pub(super) role: Role,
}

/// `POST /api/workspaces`.
pub(super) fn create(body: &Map<String, Value>) -> Parsed<CreateWorkspace> {
    let mut fields = Fields::new(body);
    fields.require("slug");
    let slug = fields.text("slug").unwrap_or_default().to_owned();
    if fields.has("slug") && !slug::is_valid(&slug) {
        let form = "must be words of a-z and 0-9, separated by single hyphens, at most 64 characters";
        let problem = FieldError::new("/slug", "format", form);
        fields.note(match slug::near(&slug) {
            Some(near) => problem.suggest(format!("write '{near}'")),
            None => problem,
        });
    }
    let name = fields.line("name", 1, LONGEST_NAME);
    finish(fields, CreateWorkspace { slug, name })
}

/// `PATCH /api/workspaces/{id}`.
pub(super) fn update(body: &Map<String, Value>) -> Parsed<UpdateWorkspace> {
    let mut fields = Fields::new(body);
    let name = fields.line("name", 1, LONGEST_NAME);
    let training_calls = fields.one_of("training_calls", &TrainingCalls::NAMES);
    if !["name", "training_calls"].iter().any(|field| body.get(*field).is_some_and(|value| !value.is_null()))
    {
        fields.note(FieldError::new("", "required", "has nothing to change").suggest("{\"name\": …}"));
    }
    let training_calls = training_calls.and_then(TrainingCalls::from_name);
    finish(fields, UpdateWorkspace { name, training_calls })
}

/// `POST …/members`.
pub(super) fn add_member(body: &Map<String, Value>) -> Parsed<Invited> {
    let mut fields = Fields::new(body);
    fields.require("email");
    let email = fields.text("email").map(EmailAddress::parse);
    if let Some(Err(error)) = &email {
        fields.note(FieldError::new("/email", "format", error.to_string()));
    }
    let role = role(&mut fields);
    match (email, role, fields.finish()) {
        (Some(Ok(email)), Some(role), problems) if problems.is_empty() => Ok(Invited { email, role }),
        (_, _, problems) => Err(problems),
    }
}

/// `PATCH …/members/{user_id}`.
pub(super) fn change_role(body: &Map<String, Value>) -> Parsed<Role> {
    let mut fields = Fields::new(body);
    match (role(&mut fields), fields.finish()) {
        (Some(role), problems) if problems.is_empty() => Ok(role),
        (_, problems) => Err(problems),
    }
}

fn role(fields: &mut Fields<'_>) -> Option<Role> {
    fields.require("role");
    let text = fields.text("role")?;
    let role = Role::parse(text);
    if role.is_none() {
        let known = Role::ALL.map(Role::as_str);
        fields.note(unknown("/role".to_owned(), "choice", "role", text, &known));
    }
    role
}

fn finish<T>(fields: Fields<'_>, value: T) -> Parsed<T> {
    let problems = fields.finish();
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems<T>(read: Parsed<T>) -> Vec<String> {
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read.err().unwrap_or_default().into_iter().map(line).collect()
    }

    #[test]
    fn every_problem_is_reported() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let body = object(json!({"slug": "Support Team", "name": "", "id": 1}));
        assert_eq!(problems(create(&body)), ["/slug format", "/name length", "/id unknown_field"]);
        assert_eq!(problems(create(&object(json!({"slug": ""})))), ["/slug format"]);
        assert_eq!(problems(create(&object(json!({})))), ["/slug required"]);
        assert_eq!(problems(update(&object(json!({"slug": "x"})))), [" required", "/slug unknown_field"]);
        let body = object(json!({"training_calls": "some"}));
        assert_eq!(problems(update(&body)), ["/training_calls type"]);
        let body = object(json!({"email": "nobody", "role": "edtor"}));
        assert_eq!(problems(add_member(&body)), ["/email format", "/role choice"]);
        assert_eq!(problems(add_member(&object(json!({})))), ["/email required", "/role required"]);
        assert_eq!(problems(change_role(&object(json!({"role": 1})))), ["/role type"]);
        assert_eq!(change_role(&object(json!({"role": "owner"}))), Ok(Role::Owner));
    }
}
