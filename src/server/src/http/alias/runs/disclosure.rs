//! The visitor's view of a run: its state and the output that the binding exposes. Pure; nothing is stored.

use serde::Serialize;
use serde_json::{Map, Value};
use store::StoredAppRun;
use wire::{FrozenBinding, RunState};

/// State: not started.
pub(super) const QUEUED: &str = "queued";
/// State: executing.
pub(super) const RUNNING: &str = "running";
const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
const TIMED_OUT: &str = "timed_out";
const CANCELLED: &str = "cancelled";

/// The response to a start.
#[derive(Serialize)]
pub(super) struct StartedAnswer {
    pub(super) handle: String,
    pub(super) state: &'static str,
}

/// The response to a read.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RunAnswer<'a> {
    handle: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorPart>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ErrorPart {
    code: &'static str,
}

/// Returns the run's state, regardless of its output.
pub(super) fn state(run: &StoredAppRun) -> &'static str {
    match run.status {
        RunState::Queued => QUEUED,
        RunState::Running | RunState::Waiting => RUNNING,
        RunState::Succeeded => SUCCEEDED,
        RunState::Failed if is_timeout(run) => TIMED_OUT,
        RunState::Failed => FAILED,
        RunState::Cancelled => CANCELLED,
    }
}

/// A run as its visitor sees it, with the binding frozen in its release.
pub(super) fn shown<'a>(handle: &'a str, run: &StoredAppRun, binding: &FrozenBinding) -> RunAnswer<'a> {
    let state = state(run);
    let (state, output, code) = match state {
        SUCCEEDED => match projected(run, binding) {
            Ok(output) => (SUCCEEDED, output, None),
            Err(TooLarge) => (FAILED, None, Some("output_too_large")),
        },
        FAILED => (FAILED, None, Some("run_failed")),
        TIMED_OUT => (TIMED_OUT, None, Some("timed_out")),
        CANCELLED => (CANCELLED, None, Some("cancelled")),
        other => (other, None, None),
    };
    RunAnswer { handle, state, output, error: code.map(|code| ErrorPart { code }) }
}

impl RunAnswer<'_> {
    pub(super) fn state(&self) -> &'static str {
        self.state
    }
}

struct TooLarge;

/// The exposed output members that exist; `None` if pages receive no output.
fn projected(run: &StoredAppRun, binding: &FrozenBinding) -> Result<Option<Map<String, Value>>, TooLarge> {
    let stored = run.output.as_deref().and_then(|output| serde_json::from_str(output).ok());
    let members = match stored {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let fields = &binding.output_projection.fields;
    let output: Map<_, _> = members.into_iter().filter(|(name, _)| fields.contains(name)).collect();
    let size = serde_json::to_vec(&output).map_or(usize::MAX, |text| text.len());
    if !binding.visitor_can_read_output {
        return Ok(None);
    }
    let most = usize::try_from(binding.limits.output_max_bytes).unwrap_or(usize::MAX);
    if size > most { Err(TooLarge) } else { Ok(Some(output)) }
}

fn is_timeout(run: &StoredAppRun) -> bool {
    let error: Option<Value> = run.error.as_deref().and_then(|error| serde_json::from_str(error).ok());
    error.is_some_and(|error| error.get("code").and_then(Value::as_str) == Some("run.timeout"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn run(status: RunState, output: Option<Value>, code: Option<&str>) -> StoredAppRun {
        StoredAppRun {
            run: Uuid::nil(),
            release: Uuid::nil(),
            binding: "form".into(),
            user: None,
            status,
            output: output.map(|output| output.to_string()),
            error: code.map(|code| json!({"code": code, "message": "inner", "node": "secret"}).to_string()),
            finished_at: None,
        }
    }

    fn binding(fields: &[&str], can_read: bool, most: u32) -> FrozenBinding {
        serde_json::from_value(json!({
            "workflow_id": "w", "workflow_handle": "w", "version": 1, "version_id": "v", "digest": "d",
            "runnable_config": null, "includes": [], "access_mode": "anonymous", "input_schema": null,
            "output_projection": {"fields": fields}, "visitor_can_read_output": can_read,
            "limits": {"output_max_bytes": most},
        }))
        .unwrap()
    }

    fn json_of(run: &StoredAppRun, binding: &FrozenBinding) -> Value {
        serde_json::to_value(shown("h", run, binding)).unwrap()
    }

    #[test]
    fn each_state_of_a_run_has_its_state_for_visitors() {
        let binding = binding(&[], false, 100);
        for (status, code, expected) in [
            (RunState::Queued, None, json!({"handle": "h", "state": "queued"})),
            (RunState::Running, None, json!({"handle": "h", "state": "running"})),
            (RunState::Waiting, None, json!({"handle": "h", "state": "running"})),
            (RunState::Succeeded, None, json!({"handle": "h", "state": "succeeded"})),
            (
                RunState::Failed,
                Some("node.failed"),
                json!({"handle": "h", "state": "failed", "error": {"code": "run_failed"}}),
            ),
            (
                RunState::Failed,
                Some("run.timeout"),
                json!({"handle": "h", "state": "timed_out", "error": {"code": "timed_out"}}),
            ),
            (
                RunState::Cancelled,
                Some("run.cancelled"),
                json!({"handle": "h", "state": "cancelled", "error": {"code": "cancelled"}}),
            ),
        ] {
            assert_eq!(json_of(&run(status, Some(json!({"a": 1})), code), &binding), expected);
        }
    }

    #[test]
    fn only_named_top_level_members_are_shown() {
        let output = json!({"a": {"b": 1}, "b": 2, "secret": 3});
        let run = run(RunState::Succeeded, Some(output), None);
        let of = |fields: &[&str]| json_of(&run, &binding(fields, true, 100))["output"].clone();
        assert_eq!(of(&["a", "missing", "a.b"]), json!({"a": {"b": 1}}));
        assert_eq!(of(&[]), json!({}));
        let hidden = json_of(&run, &binding(&["a"], false, 100));
        assert_eq!(hidden, json!({"handle": "h", "state": "succeeded"}));
    }

    #[test]
    fn only_object_outputs_are_shown() {
        let run = run(RunState::Succeeded, Some(json!("text")), None);
        assert_eq!(json_of(&run, &binding(&["a"], true, 100))["output"], json!({}));
    }

    #[test]
    fn the_shown_output_is_limited_in_size() {
        let run = run(RunState::Succeeded, Some(json!({"a": "xx", "large": "x".repeat(1_000)})), None);
        assert_eq!(json_of(&run, &binding(&["a"], true, 10))["state"], "succeeded");
        let refused = json_of(&run, &binding(&["a"], true, 9));
        assert_eq!(refused, json!({"handle": "h", "state": "failed", "error": {"code": "output_too_large"}}));
        assert_eq!(json_of(&run, &binding(&["a"], false, 1))["state"], "succeeded");
    }
}
