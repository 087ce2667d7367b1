//! Parses and validates a workflow's chat settings: start prompts and selectable models, in the chat widget's format.
//! Pure.

use serde_json::{Map, Value};
use url::Url;
use wire::{
    BusyThread, ChatLimits, ChatSettings, ChatTitle, FieldError, ModelBinding, TitleModel,
    TranscriptionSettings, UpdateChatSettings,
};

use super::requests::bounded;
use crate::http::fields::Fields;

/// Maximum prompts on a page.
const MOST_PROMPTS: usize = 20;
/// Maximum models in a menu.
const MOST_MODELS: usize = 50;
/// Maximum characters in a prompt.
const LONGEST_PROMPT: usize = 4_000;

/// Reads the member `chat` and adds its problems to the request's. A null member gets its default.
pub(super) fn read(request: &mut Fields<'_>, chat: &Map<String, Value>) -> UpdateChatSettings {
    let mut fields = Fields::new(chat);
    let start_prompts = list(&mut fields, "start_prompts", MOST_PROMPTS, prompt);
    let models = list(&mut fields, "models", MOST_MODELS, model);
    let busy = busy(&mut fields);
    let uploads = fields.flag("uploads");
    let transcription = fields.object("transcription").map(|members| {
        let mut inner = Fields::new(members);
        let settings = transcription(&mut inner);
        note_within(&mut fields, "/transcription", inner.finish());
        settings
    });
    let title = title(&mut fields);
    let limits = fields.object("limits").map(|members| {
        let mut inner = Fields::new(members);
        let limits = limits(&mut inner);
        note_within(&mut fields, "/limits", inner.finish());
        limits
    });
    let retention_days = fields.whole("retention_days", 0..=3_650).and_then(|days| u32::try_from(days).ok());
    note_within(request, "/chat", fields.finish());
    let defaults = ChatSettings::default();
    let is_null = |name: &str| chat.get(name).is_some_and(Value::is_null);
    UpdateChatSettings {
        start_prompts: if is_null("start_prompts") { Some(defaults.start_prompts) } else { start_prompts },
        models: if is_null("models") { Some(defaults.models) } else { models },
        busy: if is_null("busy") { Some(defaults.busy) } else { busy },
        uploads: if is_null("uploads") { Some(defaults.uploads) } else { uploads },
        transcription: if is_null("transcription") { Some(None) } else { transcription.map(Some) },
        title: if is_null("title") { Some(defaults.title) } else { title },
        limits: if is_null("limits") { Some(defaults.limits) } else { limits },
        retention_days: if is_null("retention_days") { Some(None) } else { retention_days.map(Some) },
    }
}

/// Reads the daily model limits.
fn limits(fields: &mut Fields<'_>) -> ChatLimits {
    let mut tokens = |name: &'static str| {
        let value = fields.stands(name).filter(|value| !value.is_null())?;
        let whole = value.as_u64().filter(|tokens| *tokens > 0);
        if whole.is_none() {
            fields.note(FieldError::new(
                format!("/{name}"),
                "range",
                "must be a whole number above 0, or null",
            ));
        }
        whole
    };
    let (session_tokens_per_day, tokens_per_day) =
        (tokens("session_tokens_per_day"), tokens("tokens_per_day"));
    let mut dollars = |name: &'static str| {
        let value = fields.stands(name).filter(|value| !value.is_null())?;
        let above = value.as_f64().filter(|dollars| *dollars > 0.0);
        if above.is_none() {
            fields.note(FieldError::new(format!("/{name}"), "range", "must be a number above 0, or null"));
        }
        above
    };
    let (session_usd_per_day, usd_per_day) = (dollars("session_usd_per_day"), dollars("usd_per_day"));
    ChatLimits { session_tokens_per_day, session_usd_per_day, tokens_per_day, usd_per_day }
}

/// Reads `"words"` or a model.
fn title(fields: &mut Fields<'_>) -> Option<ChatTitle> {
    let value = fields.stands("title").filter(|value| !value.is_null())?;
    match value {
        Value::String(name) if name == "words" => Some(ChatTitle::default()),
        Value::Object(members) => {
            let mut inner = Fields::new(members);
            let title = title_model(&mut inner);
            note_within(fields, "/title", inner.finish());
            Some(ChatTitle::Model(title))
        }
        _ => {
            let problem = FieldError::new("/title", "choice", "must be \"words\" or an object with a model");
            fields.note(problem.suggest("\"title\": {\"model\": \"openai/gpt-4.1-mini\"}"));
            None
        }
    }
}

fn title_model(fields: &mut Fields<'_>) -> TitleModel {
    let unknown = FieldError::new("/model", "unknown", "is not a model of a known provider")
        .suggest("openai/<model>, anthropic/<model>, gemini/<model> or practice/assistant");
    TitleModel {
        binding: binding(fields, models::is_model_name, unknown),
        prompt: fields.line("prompt", 1, 2_000),
    }
}

/// Reads the model for transcriptions.
fn transcription(fields: &mut Fields<'_>) -> TranscriptionSettings {
    let unknown = FieldError::new("/model", "unknown", "is not a model that transcribes")
        .suggest("openai/<model>, gemini/<model> or practice/transcribe");
    TranscriptionSettings {
        binding: binding(fields, models::can_transcribe, unknown),
        language: fields.line("language", 2, 20),
        prompt: fields.line("prompt", 1, 2_000),
    }
}

/// Reads a model and its endpoint. An unusable model is reported as `unknown`.
fn binding(
    fields: &mut Fields<'_>,
    is_usable: impl FnOnce(&str) -> bool,
    unknown: FieldError,
) -> ModelBinding {
    fields.require("model");
    let model = fields.text("model").unwrap_or_default();
    if !model.is_empty() && !is_usable(model) {
        fields.note(unknown);
    }
    for name in ["credential", "base_url"] {
        if model.starts_with("practice/") && fields.stands(name).is_some_and(|value| !value.is_null()) {
            let problem =
                FieldError::new(format!("/{name}"), "conflict", "cannot be used with the built-in model");
            fields.note(problem.suggest(format!("remove '{name}'")));
        }
    }
    let base_url = fields.text("base_url");
    if let Some(address) = base_url
        && !Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    {
        fields.note(FieldError::new("/base_url", "url", "must be an http or https address"));
    }
    ModelBinding {
        model: model.to_owned(),
        credential: fields.line("credential", 1, 64),
        base_url: base_url.map(str::to_owned),
    }
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

/// Reads an array of objects, each validated by `check`.
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
                let mut fields = Fields::new(members);
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

/// Validates one content part of a message; further members are left to the widget.
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
        let mut request = Fields::new(&nothing);
        read(&mut request, chat.as_object().unwrap());
        request.finish().iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
    }

    #[test]
    fn settings_valid_for_the_widget_are_kept_unchanged() {
        let prompts = json!([{"label": "Hi", "prompt": "Say hi", "icon": "bolt"},
                             {"label": "Tag", "prompt": [{"type": "input_text", "text": "x"},
                                                         {"type": "input_tag", "id": "1", "text": "y", "data": {}}]}]);
        let models =
            json!([{"id": "a/b", "label": "B", "description": "good", "disabled": false, "default": true}]);
        let chat = json!({"start_prompts": prompts, "models": models});
        assert_eq!(problems(&chat), [""; 0]);
        let nothing = Map::new();
        let mut request = Fields::new(&nothing);
        let settings = read(&mut request, chat.as_object().unwrap());
        assert_eq!(Value::Array(settings.start_prompts.unwrap()), prompts);
        assert_eq!(Value::Array(settings.models.unwrap()), models);
    }

    #[test]
    fn null_restores_a_default() {
        let nothing = Map::new();
        let chat = json!({"start_prompts": null, "models": null, "busy": null, "uploads": null, "transcription": null, "title": null, "limits": null, "retention_days": null});
        let settings = read(&mut Fields::new(&nothing), chat.as_object().unwrap());
        assert_eq!(
            settings,
            UpdateChatSettings {
                start_prompts: Some(Vec::new()),
                models: Some(Vec::new()),
                busy: Some(BusyThread::Enqueue),
                uploads: Some(true),
                transcription: Some(None),
                title: Some(ChatTitle::default()),
                limits: Some(ChatLimits::default()),
                retention_days: Some(None),
            }
        );
        let chat =
            json!({"transcription": {"model": "practice/transcribe", "language": "en"}, "uploads": false});
        let defaults = read(&mut Fields::new(&nothing), chat.as_object().unwrap());
        let settings = TranscriptionSettings {
            binding: ModelBinding { model: "practice/transcribe".into(), ..ModelBinding::default() },
            language: Some("en".into()),
            ..TranscriptionSettings::default()
        };
        assert_eq!((defaults.transcription, defaults.uploads), (Some(Some(settings)), Some(false)));
        assert_eq!(read(&mut Fields::new(&nothing), &nothing), UpdateChatSettings::default());
    }

    #[test]
    fn every_problem_has_a_pointer() {
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
        let chat = json!({"uploads": "no", "transcription": {"model": "anthropic/x", "base_url": "ftp://a", "lang": "en"}});
        assert_eq!(
            problems(&chat),
            [
                "/chat/uploads type",
                "/chat/transcription/model unknown",
                "/chat/transcription/base_url url",
                "/chat/transcription/lang unknown_field",
            ]
        );
        assert_eq!(problems(&json!({"transcription": {}})), ["/chat/transcription/model required"]);
        let many = json!({"models": vec![json!({"id": "a", "label": "b"}); 51]});
        assert_eq!(problems(&many), ["/chat/models length"]);
        for prompt in [json!([]), json!({}), json!(true)] {
            let chat = json!({"start_prompts": [{"label": "x", "prompt": prompt}]});
            assert_eq!(problems(&chat), ["/chat/start_prompts/0/prompt type"]);
        }
    }
}
