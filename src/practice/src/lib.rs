//! `practice/<skill>`: the built-in model. It needs no network and no key, and follows instructions in a small
//! language that `docs/PRACTICE_MODEL.md` describes. The same request gives the same answer.

mod actions;
mod assistant;
mod classify;
mod embed;
mod extract;
mod feedback;
mod follow;
mod instruction;
mod judge;
mod noise;
mod parse;
mod propose;
mod reading;
mod reflect;
mod sent;
mod shorten;
mod structured;
mod text;
mod tokens;
mod tools;
mod transcribe;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::Clock;
use serde_json::Value;

use self::instruction::Action;
use self::reading::ParsedRequest;
use self::structured::Filler;
use models::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Part, Pieces,
    Role, ToolCall, TranscribeRequest, Transcript,
};

/// The provider name before the `/`.
pub const NAME: &str = "practice";
/// Maximum bytes read per message and per attached text; the rest only counts as tokens.
const READ: usize = 64 * 1024;
/// Maximum bytes read from all attached texts, newest first.
const READ_FILES: usize = 10 * READ;
/// Maximum request bytes answered inline; larger requests must not block tasks on the same thread.
const INLINE: usize = 2 * 1024;
/// The slowest pace that a model name may request.
const SLOWEST: Duration = Duration::from_secs(10);

/// The model's skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skill {
    Assistant,
    Classify,
    Extract,
    Summarize,
    Rewrite,
    Reflect,
    Judge,
}

/// The skill names, ordered as on the page that describes them.
pub const SKILLS: [&str; 7] =
    ["assistant", "classify", "extract", "summarize", "rewrite", "reflect", "judge"];

/// The built-in model.
pub struct Practice {
    clock: Arc<dyn Clock>,
    pace: Duration,
}

impl Practice {
    /// A model that sends its answer at once. The clock serves names that request a pace.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, pace: Duration::ZERO }
    }

    /// Sets a pause before each word, unless the model name requests another pace.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace.min(SLOWEST);
        self
    }
}

#[async_trait]
impl Model for Practice {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let (skill, pace) = named(&request.model)?;
        let (text, tool_calls) = if size(request) > INLINE {
            let request = request.clone();
            let answering = tokio::task::spawn_blocking(move || answer(skill, &request));
            answering.await.map_err(|_| failed())?
        } else {
            answer(skill, request)
        };
        let (text, cut) = match request.max_tokens {
            Some(most) => tokens::cut(&text, most),
            None => (text.as_str(), false),
        };
        let pace = pace.unwrap_or(self.pace);
        for word in text.split_inclusive(char::is_whitespace) {
            if !pace.is_zero() {
                self.clock.sleep(pace).await;
            }
            pieces.piece(word).await;
        }
        let reason = match (cut, tool_calls.is_empty()) {
            (true, _) => "length",
            (false, false) => "tool_calls",
            (false, true) => "stop",
        };
        Ok(ModelAnswer {
            usage: Some(tokens::usage(request, text, &tool_calls)),
            text: text.to_owned(),
            tool_calls,
            finish_reason: Some(reason.to_owned()),
            model: Some(format!("practice/{}", request.model)),
            carry: None,
        })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        if request.model != EMBED {
            let message = format!("practice/{} has no embeddings; use practice/{EMBED}", request.model);
            return Err(ModelError { kind: ModelErrorKind::Rejected, message, retry_after: None });
        }
        let request = request.clone();
        let making = tokio::task::spawn_blocking(move || embed::embeddings(&request));
        making.await.unwrap_or_else(|_| Err(failed()))
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        if request.model != TRANSCRIBE {
            let message =
                format!("practice/{} has no transcription; use practice/{TRANSCRIBE}", request.model);
            return Err(ModelError { kind: ModelErrorKind::Rejected, message, retry_after: None });
        }
        let request = request.clone();
        let making = tokio::task::spawn_blocking(move || transcribe::transcript(&request));
        making.await.map_err(|_| failed())
    }
}

/// Skills that serve other request kinds.
const EMBED: &str = "embed";
const TRANSCRIBE: &str = "transcribe";

/// Parses a skill and its pace: `assistant`, or `assistant@40ms`.
fn named(model: &str) -> Result<(Skill, Option<Duration>), ModelError> {
    let unknown = |what: String| ModelError {
        kind: ModelErrorKind::Rejected,
        message: format!("{what}; write practice/<skill> with one of {}", SKILLS.join(", ")),
        retry_after: None,
    };
    let (name, pace) = match model.split_once('@') {
        Some((name, pace)) => {
            let millis = pace.strip_suffix("ms").and_then(|millis| millis.parse().ok());
            let millis =
                millis.ok_or_else(|| unknown(format!("'@{pace}' is not a valid pace, such as @40ms")))?;
            (name, Some(Duration::from_millis(millis).min(SLOWEST)))
        }
        None => (model, None),
    };
    let skill = match name {
        "assistant" | "reply" => Skill::Assistant,
        "classify" => Skill::Classify,
        "extract" => Skill::Extract,
        "summarize" => Skill::Summarize,
        "rewrite" => Skill::Rewrite,
        "reflect" => Skill::Reflect,
        "judge" => Skill::Judge,
        EMBED => {
            return Err(unknown("practice/embed computes vectors; use it with the node 'embed'".to_owned()));
        }
        TRANSCRIBE => {
            let message =
                "practice/transcribe reads recordings; use it for a workflow's 'chat.transcription'";
            return Err(unknown(message.to_owned()));
        }
        _ => return Err(unknown(format!("the practice model has no skill '{name}'"))),
    };
    Ok((skill, pace))
}

/// Total message bytes, including attached texts.
fn size(request: &ModelRequest) -> usize {
    let of_part = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::Image(_) => 0,
    };
    let of_parts = request.messages.iter().flat_map(|message| &message.parts).map(of_part).sum::<usize>();
    request.messages.iter().map(|message| message.content.len()).sum::<usize>().saturating_add(of_parts)
}

/// The error after a panic or at shutdown; neither gives more detail.
fn failed() -> ModelError {
    ModelError {
        kind: ModelErrorKind::Unavailable,
        message: "the practice model failed".to_owned(),
        retry_after: None,
    }
}

/// Truncates a request to the readable size. File texts replace an empty message text, except for the skill
/// `assistant`.
fn readable(skill: Skill, request: &ModelRequest) -> ModelRequest {
    let cut = |text: &mut String, most: usize| text.truncate(text.floor_char_boundary(most));
    let mut read = request.clone();
    let mut left = READ_FILES;
    for message in read.messages.iter_mut().rev() {
        for part in &mut message.parts {
            if let Part::Text(text) = part {
                cut(text, READ.min(left));
                left = left.saturating_sub(text.len());
            }
        }
        let only_files = message.role == Role::User && message.content.trim().is_empty();
        if only_files && skill != Skill::Assistant {
            message.content = sent::as_text(&message.parts);
        }
        cut(&mut message.content, READ);
    }
    read
}

/// The whole answer: a function of the request alone.
fn answer(skill: Skill, request: &ModelRequest) -> (String, Vec<ToolCall>) {
    let read = readable(skill, request);
    let reading = ParsedRequest::new(&read);
    if let Some(result) = &reading.tool_result {
        return (follow::follow(&reading, assistant::report(result)), Vec::new());
    }
    if let Some(call) = tools::wanted(&reading) {
        return (String::new(), vec![call]);
    }
    match skill {
        Skill::Reflect => return (reflect::proposal(&reading), Vec::new()),
        Skill::Judge => return (judged(&reading).to_string(), Vec::new()),
        _ => {}
    }
    let said = match skill {
        Skill::Classify => classify::label(&reading, &[]),
        Skill::Summarize => shorten::summary(&reading),
        Skill::Rewrite => shorten::rewritten(&reading),
        Skill::Extract => String::new(),
        Skill::Assistant | Skill::Reflect | Skill::Judge => assistant::reply(&reading),
    };
    let said = follow::follow(&reading, said);
    if let Some(schema) = &read.response_schema {
        return (Filler { reading: &reading, root: schema, said: &said }.whole().to_string(), Vec::new());
    }
    let keys = reading.asked().find_map(|action| match action {
        Action::Json(keys) => Some(keys.clone()),
        _ => None,
    });
    let text = match (keys, skill) {
        (Some(keys), Skill::Extract) => extracted(&reading, keys).to_string(),
        (Some(keys), _) => structured::with_keys(&reading, &keys, &said).to_string(),
        (None, Skill::Extract) => extracted(&reading, Vec::new()).to_string(),
        (None, _) => said,
    };
    (text, Vec::new())
}

/// The verdict, together with other members in a requested schema.
fn judged(reading: &ParsedRequest<'_>) -> Value {
    let verdict = judge::verdict(&whole(reading.request));
    let Some(schema) = &reading.request.response_schema else { return verdict };
    let mut filled = Filler { reading, root: schema, said: "" }.whole();
    if let (Some(filled), Value::Object(verdict)) = (filled.as_object_mut(), verdict) {
        let asked = |name: &String| schema.get("properties").is_some_and(|all| all.get(name).is_some());
        filled.extend(verdict.into_iter().filter(|(name, _)| asked(name)));
    }
    filled
}

/// The fields that the instructions name, as an object.
fn extracted(reading: &ParsedRequest<'_>, mut keys: Vec<String>) -> Value {
    for action in reading.asked() {
        match action {
            Action::Field(field) if !keys.contains(&field.name) => keys.push(field.name.clone()),
            Action::Set(name, _) if !keys.contains(name) => keys.push(name.clone()),
            _ => {}
        }
    }
    if keys.is_empty() {
        Value::Object(serde_json::Map::new())
    } else {
        structured::with_keys(reading, &keys, "")
    }
}

/// All message texts, one below the other.
fn whole(request: &ModelRequest) -> String {
    request.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
}
