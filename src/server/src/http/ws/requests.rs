//! What a client says.

use serde_json::{Map, Value};
use uuid::Uuid;
use wire::{ErrorCode, FieldError, nearest};

use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::{Fields, shortened};

/// Types that are served.
const TYPES: [&str; 4] = ["ping", "run_workflow", "subscribe", "cancel"];
/// Types of the protocol that are not served yet.
const LATER: [&str; 4] = ["evaluate_workflow", "train_workflow", "pause", "resume"];
/// Characters of a `request_id`.
const MOST_ID: usize = 200;

/// A message that makes sense.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Ping,
    /// A run shall begin.
    Run(Box<RunWanted>),
    /// The events of a run behind this one.
    Subscribe {
        run: Uuid,
        after: u64,
    },
    /// The run shall end.
    Cancel {
        run: Uuid,
    },
}

/// What to run.
#[derive(Debug, PartialEq)]
pub(super) struct RunWanted {
    /// A graph; the workflow's latest version unless given.
    pub(super) graph: Option<Value>,
    /// Its inputs.
    pub(super) inputs: Option<Value>,
    /// Laid over the version's runnable config.
    pub(super) config: Option<Map<String, Value>>,
}

/// Reads a message. Its `request_id` comes back whatever is wrong with the rest.
pub(super) fn read(text: &[u8]) -> (ApiResult<Request>, Option<String>) {
    let members = match body::json_of("message", text) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return (Err(wrong(FieldError::new("", "type", "must be an object"))), None),
        Err(error) => return (Err(error), None),
    };
    let request_id = members.get("request_id").and_then(Value::as_str);
    let request_id = request_id.filter(|id| id.chars().count() <= MOST_ID).map(str::to_owned);
    (request(&members), request_id)
}

fn wrong(problem: FieldError) -> ApiError {
    ApiError::problems(ErrorCode::InvalidRequest, vec![problem])
}

fn request(members: &Map<String, Value>) -> ApiResult<Request> {
    let kind = match members.get("type") {
        None | Some(Value::Null) => {
            let problem = FieldError::new("/type", "required", "is required");
            return Err(wrong(problem.suggest(format!("one of {}", TYPES.join(", ")))));
        }
        Some(Value::String(kind)) => kind.as_str(),
        Some(_) => return Err(wrong(FieldError::new("/type", "type", "must be a string"))),
    };
    let mut fields = Fields::of(members);
    fields.pass_over(&["type"]);
    check_id(&mut fields);
    let request = match kind {
        "ping" => Request::Ping,
        "subscribe" => {
            let after = fields.whole("after_seq", 0..=i64::MAX).and_then(|after| u64::try_from(after).ok());
            Request::Subscribe { run: run(&mut fields), after: after.unwrap_or(0) }
        }
        "run_workflow" => {
            let graph = fields.object("graph_config").filter(|graph| !graph.is_empty());
            Request::Run(Box::new(RunWanted {
                graph: graph.cloned().map(Value::Object),
                inputs: fields.object("inputs").cloned().map(Value::Object),
                config: fields.object("config").cloned(),
            }))
        }
        "cancel" => Request::Cancel { run: run(&mut fields) },
        kind => return Err(no_such_type(kind)),
    };
    ApiError::refuse(fields.finish())?;
    Ok(request)
}

fn check_id(fields: &mut Fields<'_>) {
    let id = fields.text("request_id");
    if id.is_some_and(|id| id.chars().count() > MOST_ID) {
        let message = format!("must have at most {MOST_ID} characters");
        fields.note(FieldError::new("/request_id", "length", message));
    }
}

/// The run that is named. What is no id at all names none that there is.
fn run(fields: &mut Fields<'_>) -> Uuid {
    fields.require("run_id");
    let id = fields.text("run_id");
    id.and_then(|id| Uuid::parse_str(id).ok()).unwrap_or_default()
}

fn no_such_type(kind: &str) -> ApiError {
    if LATER.contains(&kind) {
        return ApiError::new(ErrorCode::SocketTypeUnsupported)
            .with_message(format!("This version of the service does not support '{kind}' yet."));
    }
    let near = nearest(kind, TYPES.into_iter().chain(LATER));
    let hint =
        near.map_or_else(|| format!("known: {}", TYPES.join(", ")), |near| format!("did you mean '{near}'?"));
    ApiError::new(ErrorCode::SocketTypeUnknown)
        .with_message(format!("Unknown message type '{}'; {hint}", shortened(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "01890000-0000-7000-8000-000000000001";

    fn of(text: &str) -> (Result<Request, String>, Option<String>) {
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
    fn messages_are_read_with_every_problem() {
        let run = Uuid::parse_str(RUN).unwrap();
        assert_eq!(of(r#"{"type":"ping","request_id":"a"}"#), (Ok(Request::Ping), Some("a".into())));
        let subscribe = format!(r#"{{"type":"subscribe","run_id":"{RUN}","after_seq":7}}"#);
        assert_eq!(of(&subscribe), (Ok(Request::Subscribe { run, after: 7 }), None));
        let unknown = r#"{"type":"cancel","run_id":"x","request_id":null}"#;
        assert_eq!(of(unknown), (Ok(Request::Cancel { run: Uuid::nil() }), None));
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
            assert_eq!(of(text).0, Err(expected.into()), "{text}");
        }
        let wanted = |graph| Request::Run(Box::new(RunWanted { graph, inputs: None, config: None }));
        assert_eq!(of(r#"{"type":"run_workflow","graph_config":{}}"#).0, Ok(wanted(None)));
        let graph = serde_json::json!({"format": "graph/1"});
        let text = r#"{"type":"run_workflow","graph_config":{"format":"graph/1"}}"#;
        assert_eq!(of(text).0, Ok(wanted(Some(graph))));
        assert_eq!(
            of(r#"{"type":"run_workflow","graph_config":1,"inputs":[],"config":"","version":1}"#).0,
            Err("request.invalid /graph_config type /inputs type /config type /version unknown_field".into())
        );
        for later in LATER {
            let (refused, id) = of(&format!(r#"{{"type":"{later}","inputs":{{}},"request_id":"r"}}"#));
            assert_eq!((refused, id.as_deref()), (Err("ws.type_unsupported".into()), Some("r")));
        }
        let long = "x".repeat(MOST_ID + 1);
        let (refused, id) = of(&format!(r#"{{"type":"ping","request_id":"{long}"}}"#));
        assert_eq!((refused, id), (Err("request.invalid /request_id length".into()), None));
    }
}
