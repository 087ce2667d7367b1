//! Parses and validates workflow requests, and reports all problems at once. Pure.

use control::handle;
use serde_json::{Map, Value};
use uuid::Uuid;
use wire::{
    CreateVersion, CreateWorkflow, FieldError, PromoteCheckpoint, PromoteDraft, PublishRequest, SetLive,
    UpdateWorkflow,
};

use super::chat_settings;
use crate::http::fields::{Fields, Parsed};

fn read<T>(fields: Fields<'_>, value: T) -> Parsed<T> {
    let problems = fields.finish();
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// `POST /api/workflows`.
pub(super) fn create_workflow(body: &Map<String, Value>) -> Parsed<CreateWorkflow> {
    let mut fields = Fields::new(body);
    fields.require("name");
    let name = name(&mut fields).unwrap_or_default();
    let handle = handle(&mut fields);
    let description = description(&mut fields);
    let tags = tags(&mut fields).unwrap_or_default();
    read(fields, CreateWorkflow { name, handle, description, tags })
}

/// `PUT /api/workflows/{ref}`. A null description removes it.
pub(super) fn update_workflow(body: &Map<String, Value>) -> Parsed<UpdateWorkflow> {
    let mut fields = Fields::new(body);
    let name = name(&mut fields);
    let handle = handle(&mut fields);
    let description = description(&mut fields);
    let description = fields.has("description").then_some(description);
    let tags = tags(&mut fields);
    let chat = fields.object("chat").map(|chat| chat_settings::read(&mut fields, chat));
    let most = max_concurrent_runs(&mut fields);
    let max_concurrent_runs = fields.has("max_concurrent_runs").then_some(most);
    read(fields, UpdateWorkflow { name, handle, description, tags, chat, max_concurrent_runs })
}

fn max_concurrent_runs(fields: &mut Fields<'_>) -> Option<i32> {
    fields.whole("max_concurrent_runs", 1..=10_000).and_then(|most| i32::try_from(most).ok())
}

fn name(fields: &mut Fields<'_>) -> Option<String> {
    let name = fields.text("name")?.trim();
    bounded(fields, "/name", name, 1, 200);
    Some(name.to_owned())
}

fn handle(fields: &mut Fields<'_>) -> Option<String> {
    let handle = fields.text("handle")?;
    if !handle::is_valid(handle) {
        fields.note(
            FieldError::new("/handle", "format", "is not a valid handle").suggest(better_handle(handle)),
        );
    }
    Some(handle.to_owned())
}

fn description(fields: &mut Fields<'_>) -> Option<String> {
    let description = fields.text("description")?;
    bounded(fields, "/description", description, 0, 4_000);
    Some(description.to_owned())
}

fn tags(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let tags = fields.texts("tags")?;
    if tags.len() > 32 {
        fields.note(FieldError::new("/tags", "length", "must have at most 32 entries"));
    }
    for (pointer, tag) in &tags {
        bounded(fields, pointer, tag, 1, 64);
    }
    Some(tags.into_iter().map(|(_, tag)| tag.to_owned()).collect())
}

/// Records a problem if a text is too short, too long, or contains NUL.
pub(super) fn bounded(fields: &mut Fields<'_>, pointer: &str, text: &str, least: usize, most: usize) {
    let length = text.chars().count();
    if length < least || length > most {
        let message = format!("must have {least} to {most} characters; it has {length}");
        fields.note(FieldError::new(pointer, "length", message));
    }
    not_nul(fields, pointer, text);
}

/// PostgreSQL text cannot contain NUL.
fn not_nul(fields: &mut Fields<'_>, pointer: &str, text: &str) {
    if text.contains('\0') {
        fields.note(FieldError::new(pointer, "format", "must not hold the character NUL"));
    }
}

fn better_handle(handle: &str) -> String {
    let form = "use at most 64 lowercase letters, digits and single hyphens; not a UUID";
    match handle::near(handle) {
        Some(near) => format!("for example '{near}'; {form}"),
        None => form.to_owned(),
    }
}

/// `POST /api/workflows/{ref}/publish`.
pub(super) fn publish(body: &Map<String, Value>) -> Parsed<PublishRequest> {
    let mut fields = Fields::new(body);
    let require_login = fields.flag("require_login");
    read(fields, PublishRequest { require_login })
}

/// `POST /api/workflows/{ref}/versions`, without validation of the graph and config.
pub(super) fn create_version(body: &Map<String, Value>) -> Parsed<CreateVersion> {
    let mut fields = Fields::new(body);
    let graph = graph(&mut fields);
    let runnable_config = fields.object("runnable_config");
    let metadata = fields.object("metadata");
    let notes = fields.text("notes");
    not_nul(&mut fields, "/notes", notes.unwrap_or_default());
    read(
        fields,
        CreateVersion {
            graph,
            runnable_config: runnable_config.cloned(),
            metadata: metadata.cloned(),
            notes: notes.map(str::to_owned),
        },
    )
}

/// Like [`create_version`], for a draft to promote.
pub(super) fn promote_draft(body: &Map<String, Value>) -> Parsed<PromoteDraft> {
    let mut fields = Fields::new(body);
    let draft = fields.text("draft").unwrap_or_default().to_owned();
    if Uuid::try_parse(&draft).is_err() {
        fields.note(FieldError::new("/draft", "format", "must be the id of a draft"));
    }
    if body.contains_key("graph") {
        fields.pass_over(&["graph"]);
        fields.note(FieldError::new("/graph", "conflict", "must not be given together with `draft`"));
    }
    let metadata = fields.object("metadata").cloned();
    let notes = fields.text("notes").map(str::to_owned);
    not_nul(&mut fields, "/notes", notes.as_deref().unwrap_or_default());
    read(fields, PromoteDraft { draft, metadata, notes })
}

/// Like [`create_version`], for a checkpoint to promote.
pub(super) fn promote_checkpoint(body: &Map<String, Value>) -> Parsed<PromoteCheckpoint> {
    let mut fields = Fields::new(body);
    let checkpoint = fields.text("checkpoint").unwrap_or_default().to_owned();
    if Uuid::try_parse(&checkpoint).is_err() {
        fields.note(FieldError::new("/checkpoint", "format", "must be the id of a checkpoint"));
    }
    for other in ["graph", "draft"] {
        if body.contains_key(other) {
            fields.pass_over(&[other]);
            let message = "must not be given together with `checkpoint`";
            fields.note(FieldError::new(format!("/{other}"), "conflict", message));
        }
    }
    let metadata = fields.object("metadata").cloned();
    let notes = fields.text("notes").map(str::to_owned);
    not_nul(&mut fields, "/notes", notes.as_deref().unwrap_or_default());
    read(fields, PromoteCheckpoint { checkpoint, metadata, notes })
}

/// `POST /api/workflows/{ref}/versions/{n}/live`.
pub(super) fn set_live(body: &Map<String, Value>) -> Parsed<SetLive> {
    let mut fields = Fields::new(body);
    let force = fields.flag("force");
    read(fields, SetLive { force })
}

/// A graph and a config to validate.
pub(super) struct CheckRequest {
    pub(super) graph: Value,
    pub(super) runnable_config: Option<Map<String, Value>>,
}

/// `POST /api/workflows/check`.
pub(super) fn check(body: &Map<String, Value>) -> Parsed<CheckRequest> {
    let mut fields = Fields::new(body);
    let graph = graph(&mut fields);
    let runnable_config = fields.object("runnable_config").cloned();
    read(fields, CheckRequest { graph, runnable_config })
}

/// Returns the member `graph` as sent, even null; the graph's own validation reports its problems.
fn graph(fields: &mut Fields<'_>) -> Value {
    match fields.stands("graph") {
        Some(graph) => engine::without_schema(graph.clone()),
        None => {
            let problem = FieldError::new("/graph", "required", "is required");
            if fields.has("nodes") {
                // The request is the graph itself.
                fields.pass_over(&["format", "inputs", "state", "modules", "nodes", "edges", "output"]);
                fields
                    .note(problem.suggest("put the graph inside: {\"graph\": {\"format\": \"graph/1\", …}}"));
            } else {
                fields.note(problem);
            }
            Value::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems<T>(read: impl FnOnce(&Map<String, Value>) -> Parsed<T>, body: &Value) -> Vec<String> {
        let line = |problem: &FieldError| format!("{} {}", problem.pointer, problem.code);
        read(body.as_object().unwrap()).err().unwrap_or_default().iter().map(line).collect()
    }

    #[test]
    fn valid_requests_are_parsed() {
        let body = json!({"name": " A name ", "handle": "a", "description": null, "tags": ["x"]});
        let workflow = create_workflow(body.as_object().unwrap()).unwrap();
        assert_eq!((workflow.name.as_str(), workflow.handle.as_deref()), ("A name", Some("a")));
        assert_eq!((workflow.description, workflow.tags), (None, vec!["x".to_owned()]));
        for (body, expected) in [(json!({}), None), (json!({"require_login": true}), Some(true))] {
            assert_eq!(publish(body.as_object().unwrap()).unwrap().require_login, expected);
        }
        let body = json!({"graph": null, "runnable_config": {"a": 1}});
        let version = create_version(body.as_object().unwrap()).unwrap();
        assert_eq!(version.graph, Value::Null);
        assert!(version.runnable_config.is_some() && version.metadata.is_none());
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let body =
            json!({"name": "\0", "handle": "No", "description": 7, "tags": ["", 3], "nmae": 1, "id": 2});
        assert_eq!(
            problems(create_workflow, &body),
            [
                "/name format",
                "/handle format",
                "/description type",
                "/tags/1 type",
                "/tags/0 length",
                "/nmae unknown_field",
                "/id unknown_field"
            ]
        );
        let body = json!({"runnable_config": [], "metadata": 1, "notes": "\0", "note": "x"});
        assert_eq!(
            problems(create_version, &body),
            [
                "/graph required",
                "/runnable_config type",
                "/metadata type",
                "/notes format",
                "/note unknown_field"
            ]
        );
        assert_eq!(
            problems(check, &json!({"format": "graph/1", "nodes": [], "edges": []})),
            ["/graph required"]
        );
        assert_eq!(problems(check, &json!({"graf": 1})), ["/graph required", "/graf unknown_field"]);
        assert_eq!(
            problems(publish, &json!({"require_login": "yes", "login": 1})),
            ["/require_login type", "/login unknown_field"]
        );
    }

    #[test]
    fn an_update_contains_only_given_members() {
        let read = |body: Value| update_workflow(body.as_object().unwrap()).unwrap();
        assert_eq!(read(json!({})), UpdateWorkflow::default());
        let null = json!({"name": null, "handle": null, "tags": null, "chat": null});
        assert_eq!(read(null), UpdateWorkflow::default());
        assert_eq!(read(json!({"description": null})).description, Some(None));
        assert_eq!(read(json!({"description": "x"})).description, Some(Some("x".to_owned())));
        let update = read(json!({"name": " A ", "tags": [], "chat": {"models": []}}));
        assert_eq!((update.name.as_deref(), update.tags), (Some("A"), Some(vec![])));
        let chat = update.chat.unwrap();
        assert_eq!((chat.start_prompts, chat.models), (None, Some(vec![])));
        let body = json!({"name": "", "handle": "No", "description": 7, "tags": 1, "chat": [], "id": "x"});
        assert_eq!(
            problems(update_workflow, &body),
            [
                "/name length",
                "/handle format",
                "/description type",
                "/tags type",
                "/chat type",
                "/id unknown_field"
            ]
        );
    }

    #[test]
    fn a_wrong_handle_gets_a_suggestion() {
        for (handle, near) in
            [("My Flow", Some("my-flow")), ("a_b", Some("a-b")), ("check", None), ("é", None)]
        {
            let body = json!({"name": "x", "handle": handle});
            let problem = create_workflow(body.as_object().unwrap()).unwrap_err().remove(0);
            let begins =
                near.map_or("use at most 64 lowercase".to_owned(), |near| format!("for example '{near}'"));
            assert!(problem.suggestion.unwrap().starts_with(&begins), "{handle}");
        }
    }
}
