//! What the chat of a workflow shows, read and checked: prompts to start with and models to choose from, in the shapes
//! that the chat's widget takes. Pure.

use serde_json::{Map, Value};
use wire::{BusyThread, FieldError, UpdateChatSettings};

use super::requests::bounded;
use crate::http::fields::Fields;

/// Prompts that fit on a page.
const MOST_PROMPTS: usize = 20;
/// Models that fit in a menu.
const MOST_MODELS: usize = 50;
/// Characters of a prompt.
const LONGEST_PROMPT: usize = 4_000;

/// The member `chat`; its problems are noted with the request's.
pub(super) fn read(request: &mut Fields<'_>, chat: &Map<String, Value>) -> UpdateChatSettings {
    let mut fields = Fields::of(chat);
    let start_prompts = list(&mut fields, "start_prompts", MOST_PROMPTS, prompt);
    let models = list(&mut fields, "models", MOST_MODELS, model);
    let busy = busy(&mut fields);
    note_within(request, "/chat", fields.finish());
    UpdateChatSettings { start_prompts, models, busy }
}

fn busy(fields: &mut Fields<'_>) -> Option<BusyThread> {
    let name = fields.text("busy")?;
    let known = BusyThread::ALL.into_iter().find(|known| known.as_str() == name);
    if known.is_none() {
        let names = BusyThread::ALL.map(BusyThread::as_str).join(", ");
        fields.note(FieldError::new("/busy", "choice", format!("must be one of {names}")));
    }
    known
}

/// A list of objects, each as `check` wants it.
fn list(
    chat: &mut Fields<'_>,
    name: &'static str,
    most: usize,
    check: fn(&mut Fields<'_>),
) -> Option<Vec<Value>> {
    let entries = chat.list(name)?;
    if entries.len() > most {
        let message = format!("must have at most {most} entries");
        chat.note(FieldError::new(format!("/{name}"), "length", message));
    }
    for (index, entry) in entries.iter().enumerate() {
        let pointer = format!("/{name}/{index}");
        match entry.as_object() {
            Some(members) => {
                let mut fields = Fields::of(members);
                check(&mut fields);
                note_within(chat, &pointer, fields.finish());
            }
            None => chat.note(FieldError::new(pointer, "type", "must be an object")),
        }
    }
    Some(entries.clone())
}

fn note_within(outer: &mut Fields<'_>, at: &str, problems: Vec<FieldError>) {
    for problem in problems {
        outer.note(FieldError { pointer: format!("{at}{}", problem.pointer), ..problem });
    }
}

fn prompt(fields: &mut Fields<'_>) {
    words(fields, "label", true, 200);
    words(fields, "icon", false, 64);
    fields.require("prompt");
    match fields.stands("prompt") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => bounded(fields, "/prompt", text, 1, LONGEST_PROMPT),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                content(fields, &format!("/prompt/{index}"), part);
            }
        }
        Some(_) => {
            let message = "must be a string, or an array of message contents";
            fields.note(FieldError::new("/prompt", "type", message));
        }
    }
}

/// One content of a message; more members than these are the widget's business.
fn content(fields: &mut Fields<'_>, at: &str, part: &Value) {
    let texts: &[&str] = match part.get("type").and_then(Value::as_str) {
        Some("input_text") => &["text"],
        Some("input_tag") => &["id", "text"],
        _ => {
            let problem =
                FieldError::new(format!("{at}/type"), "unknown", "is not a type of message content");
            return fields.note(problem.suggest("`input_text` or `input_tag`"));
        }
    };
    for name in texts {
        let pointer = format!("{at}/{name}");
        match part.get(*name).and_then(Value::as_str) {
            Some(text) => bounded(fields, &pointer, text, 1, LONGEST_PROMPT),
            None => fields.note(FieldError::new(pointer, "type", "must be a string")),
        }
    }
}

fn model(fields: &mut Fields<'_>) {
    words(fields, "id", true, 200);
    words(fields, "label", true, 200);
    words(fields, "description", false, 1_000);
    fields.flag("disabled");
    fields.flag("default");
}

fn words(fields: &mut Fields<'_>, name: &'static str, needed: bool, most: usize) {
    if needed {
        fields.require(name);
    }
    if let Some(text) = fields.text(name) {
        bounded(fields, &format!("/{name}"), text, 1, most);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(chat: &Value) -> Vec<String> {
        let nothing = Map::new();
        let mut request = Fields::of(&nothing);
        read(&mut request, chat.as_object().unwrap());
        request.finish().iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
    }

    #[test]
    fn what_the_widget_takes_is_taken_as_it_is() {
        let prompts = json!([{"label": "Hi", "prompt": "Say hi", "icon": "bolt"},
                             {"label": "Tag", "prompt": [{"type": "input_text", "text": "x"},
                                                         {"type": "input_tag", "id": "1", "text": "y", "data": {}}]}]);
        let models =
            json!([{"id": "a/b", "label": "B", "description": "good", "disabled": false, "default": true}]);
        let chat = json!({"start_prompts": prompts, "models": models});
        assert_eq!(problems(&chat), [""; 0]);
        let nothing = Map::new();
        let mut request = Fields::of(&nothing);
        let wanted = read(&mut request, chat.as_object().unwrap());
        assert_eq!(Value::Array(wanted.start_prompts.unwrap()), prompts);
        assert_eq!(Value::Array(wanted.models.unwrap()), models);
    }

    #[test]
    fn every_problem_has_its_place() {
        let chat = json!({"start_prompts": ["Hi", {"label": "", "prompt": 1}, {"prompt": [{"type": "x"}, {"type": "input_text"}]}],
                          "models": [{"id": "a", "name": "A", "default": 1}], "prompts": []});
        assert_eq!(
            problems(&chat),
            [
                "/chat/start_prompts/0 type",
                "/chat/start_prompts/1/label length",
                "/chat/start_prompts/1/prompt type",
                "/chat/start_prompts/2/label required",
                "/chat/start_prompts/2/prompt/0/type unknown",
                "/chat/start_prompts/2/prompt/1/text type",
                "/chat/models/0/label required",
                "/chat/models/0/default type",
                "/chat/models/0/name unknown_field",
                "/chat/prompts unknown_field",
            ]
        );
        assert_eq!(problems(&json!({"models": 1, "start_prompts": null})), ["/chat/models type"]);
        let many = json!({"models": vec![json!({"id": "a", "label": "b"}); 51]});
        assert_eq!(problems(&many), ["/chat/models length"]);
        for prompt in [json!([]), json!({}), json!(true)] {
            let chat = json!({"start_prompts": [{"label": "x", "prompt": prompt}]});
            assert_eq!(problems(&chat), ["/chat/start_prompts/0/prompt type"]);
        }
    }
}
