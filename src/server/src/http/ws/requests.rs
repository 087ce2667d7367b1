//! Parses client messages.

use serde_json::{Map, Value};
use uuid::Uuid;
use wire::{ErrorCode, FieldError, TrainingKind, nearest};

use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::{Fields, shortened};
use crate::http::trainings::{Control, TrainingRequest, read_request as read_training};

/// Supported message types.
const TYPES: [&str; 8] =
    ["ping", "run_workflow", "train_workflow", "evaluate_workflow", "subscribe", "pause", "resume", "cancel"];
/// Maximum characters in a `request_id`.
const MOST_ID: usize = 200;

/// A valid message.
#[derive(Debug, PartialEq)]
pub(super) enum SocketCommand {
    Ping,
    /// Starts a run.
    Run(Box<RunWanted>),
    /// Subscribes to a run's events after this one.
    Subscribe {
        run: Uuid,
        after: u64,
    },
    /// Starts a training or an evaluation.
    Train(Box<TrainingRequest>),
    /// Cancels, pauses or resumes a run.
    Control {
        run: Uuid,
        wanted: Control,
    },
}

/// A run to start.
#[derive(Debug, PartialEq)]
pub(super) struct RunWanted {
    /// A graph to run instead of the workflow's live version.
    pub(super) graph: Option<Value>,
    /// The run's inputs.
    pub(super) inputs: Option<Value>,
    /// Overrides for the version's runnable config.
    pub(super) config: Option<Map<String, Value>>,
}

/// Parses a message. Its `request_id` is returned even if the rest is invalid.
pub(super) fn read(text: &[u8]) -> (ApiResult<SocketCommand>, Option<String>) {
    let members = match body::json_of("message", text) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return (Err(wrong(FieldError::new("", "type", "must be an object"))), None),
        Err(error) => return (Err(error), None),
    };
    let request_id = members.get("request_id").and_then(Value::as_str);
    let request_id = request_id.filter(|id| id.chars().count() <= MOST_ID).map(str::to_owned);
    (request(members), request_id)
}

fn wrong(problem: FieldError) -> ApiError {
    ApiError::problems(ErrorCode::InvalidRequest, vec![problem])
}

fn request(mut members: Map<String, Value>) -> ApiResult<SocketCommand> {
    let kind = match members.get("type") {
        None | Some(Value::Null) => {
            let problem = FieldError::new("/type", "required", "is required");
            return Err(wrong(problem.suggest(format!("one of {}", TYPES.join(", ")))));
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(_) => return Err(wrong(FieldError::new("/type", "type", "must be a string"))),
    };
    if let Some(kind) = training_of(&kind) {
        let mut problems = id_problems(&members);
        return match read_training(&mut members, Some(kind), &["type", "request_id"]) {
            Ok(wanted) if problems.is_empty() => Ok(SocketCommand::Train(Box::new(wanted))),
            read => {
                problems.extend(read.err().into_iter().flatten());
                Err(ApiError::problems(ErrorCode::InvalidRequest, problems))
            }
        };
    }
    let mut fields = Fields::new(&members);
    fields.pass_over(&["type"]);
    check_id(&mut fields);
    let request = match kind.as_str() {
        "ping" => SocketCommand::Ping,
        "subscribe" => {
            let after = fields.whole("after_seq", 0..=i64::MAX).and_then(|after| u64::try_from(after).ok());
            SocketCommand::Subscribe { run: run(&mut fields), after: after.unwrap_or(0) }
        }
        "run_workflow" => {
            let graph = fields.object("graph_config").filter(|graph| !graph.is_empty());
            SocketCommand::Run(Box::new(RunWanted {
                graph: graph.cloned().map(Value::Object),
                inputs: fields.object("inputs").cloned().map(Value::Object),
                config: fields.object("config").cloned(),
            }))
        }
        "cancel" => SocketCommand::Control { run: run(&mut fields), wanted: Control::Cancel },
        "pause" => SocketCommand::Control { run: run(&mut fields), wanted: Control::Pause },
        "resume" => SocketCommand::Control { run: run(&mut fields), wanted: Control::Resume },
        kind => return Err(no_such_type(kind)),
    };
    ApiError::refuse(fields.finish())?;
    Ok(request)
}

/// Returns the kind if this message type starts a training or an evaluation.
fn training_of(kind: &str) -> Option<TrainingKind> {
    match kind {
        "train_workflow" => Some(TrainingKind::Training),
        "evaluate_workflow" => Some(TrainingKind::Evaluation),
        _ => None,
    }
}

/// Returns problems with the `request_id`, for messages whose other members are read elsewhere.
fn id_problems(members: &Map<String, Value>) -> Vec<FieldError> {
    let id = members.get("request_id").filter(|id| !id.is_null());
    let own: Map<String, Value> = id.map(|id| ("request_id".to_owned(), id.clone())).into_iter().collect();
    let mut fields = Fields::new(&own);
    check_id(&mut fields);
    fields.finish()
}

fn check_id(fields: &mut Fields<'_>) {
    let id = fields.text("request_id");
    if id.is_some_and(|id| id.chars().count() > MOST_ID) {
        let message = format!("must have at most {MOST_ID} characters");
        fields.note(FieldError::new("/request_id", "length", message));
    }
}

/// Reads the run id. A malformed id matches no run.
fn run(fields: &mut Fields<'_>) -> Uuid {
    fields.require("run_id");
    let id = fields.text("run_id");
    id.and_then(|id| Uuid::parse_str(id).ok()).unwrap_or_default()
}

fn no_such_type(kind: &str) -> ApiError {
    let near = nearest(kind, TYPES);
    let hint =
        near.map_or_else(|| format!("known: {}", TYPES.join(", ")), |near| format!("did you mean '{near}'?"));
    ApiError::new(ErrorCode::SocketTypeUnknown)
        .with_message(format!("Unknown message type '{}'; {hint}", shortened(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01890000-0000-7000-8000-000000000001";

    fn parse(text: &str) -> (Result<SocketCommand, String>, Option<String>) {
        let (request, id) = read(text.as_bytes());
        let line = |error: ApiError| {
            let detail = error.body().detail;
            let problems =
                detail.errors.iter().map(|problem| format!(" {} {}", problem.pointer, problem.code));
            format!("{}{}", detail.code, problems.collect::<String>())
        };
        (request.map_err(line), id)
    }

    #[test]
    fn messages_are_parsed_and_every_problem_is_reported() {
        let run = Uuid::parse_str(RUN).unwrap();
        assert_eq!(parse(r#"{"type":"ping","request_id":"a"}"#), (Ok(SocketCommand::Ping), Some("a".into())));
        let subscribe = format!(r#"{{"type":"subscribe","run_id":"{RUN}","after_seq":7}}"#);
        assert_eq!(parse(&subscribe), (Ok(SocketCommand::Subscribe { run, after: 7 }), None));
        let unknown = r#"{"type":"cancel","run_id":"x","request_id":null}"#;
        assert_eq!(
            parse(unknown),
            (Ok(SocketCommand::Control { run: Uuid::nil(), wanted: Control::Cancel }), None)
        );
        for (text, expected) in [
            ("", "request.invalid_json"),
            ("{", "request.invalid_json"),
            ("{} {}", "request.invalid_json"),
            ("[]", "request.invalid  type"),
            ("{}", "request.invalid /type required"),
            (r#"{"type":1}"#, "request.invalid /type type"),
            (r#"{"type":"pong"}"#, "ws.type_unknown"),
            (r#"{"type":"subscribe"}"#, "request.invalid /run_id required"),
            (
                r#"{"type":"subscribe","run_id":1,"after_seq":-1,"more":1}"#,
                "request.invalid /after_seq range /run_id type /more unknown_field",
            ),
            (r#"{"type":"ping","request_id":1}"#, "request.invalid /request_id type"),
            (r#"{"type":"ping","run_id":"x"}"#, "request.invalid /run_id unknown_field"),
        ] {
            assert_eq!(parse(text).0, Err(expected.into()), "{text}");
        }
        let run_request =
            |graph| SocketCommand::Run(Box::new(RunWanted { graph, inputs: None, config: None }));
        assert_eq!(parse(r#"{"type":"run_workflow","graph_config":{}}"#).0, Ok(run_request(None)));
        let graph = serde_json::json!({"format": "graph/1"});
        let text = r#"{"type":"run_workflow","graph_config":{"format":"graph/1"}}"#;
        assert_eq!(parse(text).0, Ok(run_request(Some(graph))));
        assert_eq!(
            parse(r#"{"type":"run_workflow","graph_config":1,"inputs":[],"config":"","version":1}"#).0,
            Err("request.invalid /graph_config type /inputs type /config type /version unknown_field".into())
        );
        let (refused, id) = parse(r#"{"type":"train_workflow","evaluation":{},"request_id":"r"}"#);
        let expected = "request.invalid /training required /evaluation unknown_field";
        assert_eq!((refused, id.as_deref()), (Err(expected.into()), Some("r")));
        let refused = parse(r#"{"type":"evaluate_workflow","evaluation":{},"request_id":1}"#).0;
        assert_eq!(refused, Err("request.invalid /request_id type".into()));
        let (read, _) = parse(r#"{"type":"evaluate_workflow","evaluation":{"x":1},"request_id":"r"}"#);
        assert!(
            matches!(read, Ok(SocketCommand::Train(training)) if training.kind() == TrainingKind::Evaluation)
        );
        for (kind, control) in [("pause", Control::Pause), ("resume", Control::Resume)] {
            let (read, _) = parse(&format!(r#"{{"type":"{kind}","run_id":"{RUN}"}}"#));
            assert_eq!(read, Ok(SocketCommand::Control { run, wanted: control }));
        }
        let long = "x".repeat(MOST_ID + 1);
        let (refused, id) = parse(&format!(r#"{{"type":"ping","request_id":"{long}"}}"#));
        assert_eq!((refused, id), (Err("request.invalid /request_id length".into()), None));
    }
}
