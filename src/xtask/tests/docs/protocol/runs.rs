//! Run examples. Meanings are in a match without a wildcard, so an undescribed new event does not compile.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use wire::chat::NoticeLevel;
use wire::{
    DeliveryRecord, DeliveryState, ErrorCode, InterruptedAttempt, RunEvent, RunFrame, RunProblem, RunRecord,
    RunState, RunUsage, Trace, TraceStep, WaitKind, WaitsFor,
};

use super::chat::WORKFLOW;
use super::{block, tag};

const RUN: &str = "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e";
const AT: &str = "2026-01-01T12:00:00.000000Z";
const LATER: &str = "2026-01-01T12:00:01.250000Z";
const LATEST: &str = "2026-01-01T12:00:03.250000Z";
const DELIVERY: &str = "6b0c9a51-8f1d-8e04-9d5e-0a1b2c3d4e5f";

fn inputs() -> Value {
    json!({"message": "Where is order 7?"})
}

fn output() -> Value {
    json!({"reply": "It is on its way."})
}

fn ended() -> RunRecord {
    RunRecord {
        id: RUN.into(),
        workflow_id: WORKFLOW.into(),
        version: Some(1),
        version_id: "0198c2e9-0c44-7f21-a3b2-4d5e6f708192".into(),
        status: RunState::Succeeded,
        inputs: inputs(),
        output: output(),
        error: None,
        warning: None,
        trigger: "api".into(),
        origin_run_id: None,
        continued_by: None,
        waits_for: Vec::new(),
        resumes_at: None,
        metadata: json!({"ticket": 7}).as_object().cloned().unwrap_or_default(),
        created_at: AT.into(),
        started_at: Some(AT.into()),
        finished_at: Some(LATER.into()),
    }
}

fn waits_for() -> WaitsFor {
    WaitsFor {
        key: "approval".into(),
        kind: WaitKind::Input,
        item_id: None,
        message: Some("Refund 40 €?".into()),
        schema: Some(json!({"type": "boolean"})),
        audience: vec!["role:admin".into()],
        expires_at: Some(LATER.into()),
    }
}

/// An excerpt from a waiting run's record.
pub(super) fn waiting() -> Result<String> {
    block(&json!({"status": RunState::Waiting, "waits_for": [waits_for()], "resumes_at": LATER, "…": "…"}))
}

pub(super) fn states() -> String {
    let mut table = "| `status` | meaning | nothing follows |\n|---|---|---|\n".to_owned();
    for state in [
        RunState::Queued,
        RunState::Running,
        RunState::Waiting,
        RunState::Succeeded,
        RunState::Failed,
        RunState::Cancelled,
    ] {
        let meaning = match state {
            RunState::Queued => "It is accepted and has not started.",
            RunState::Running => "It is in progress.",
            RunState::Waiting => {
                "It waits for a time, or for the inputs in `waits_for`. The service may be restarted meanwhile."
            }
            RunState::Succeeded => "It has succeeded; `output` is its result.",
            RunState::Failed => "It has failed; `error` says where and why.",
            RunState::Cancelled => "It was stopped; `error` says why.",
        };
        let last = if state.is_terminal() { "yes" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| `{}` | {meaning} | {last} |", state.as_str());
    }
    table
}

fn problem(code: ErrorCode, message: &str, node: Option<&str>) -> RunProblem {
    RunProblem { code: code.as_str().into(), message: message.into(), node: node.map(str::to_owned) }
}

fn failed() -> RunProblem {
    problem(ErrorCode::NodeFailed, "'order' is not there", Some("answer"))
}

fn stopped() -> RunProblem {
    problem(ErrorCode::RunCancelled, ErrorCode::RunCancelled.message(), None)
}

fn events() -> Vec<RunEvent> {
    let node = || "answer".to_owned();
    vec![
        RunEvent::RunStarted { workflow_id: WORKFLOW.into(), version: Some(1), resumed: false },
        RunEvent::StepStarted { node: node(), visit: 1, attempt: 1 },
        RunEvent::OutputDelta { node: node(), text: "It is on its way.".into() },
        RunEvent::StepCompleted {
            node: node(),
            visit: 1,
            attempt: 1,
            result: json!({"text": "It is on its way."}),
            result_bytes: None,
        },
        RunEvent::StepFailed { node: node(), visit: 1, attempt: 1, error: failed() },
        RunEvent::RunWaiting(waits_for()),
        RunEvent::Progress { text: "Reading the order …".into() },
        RunEvent::Notice { level: NoticeLevel::Warning, message: "It may take a day.".into(), title: None },
        RunEvent::RunCompleted { output: output(), warning: None },
        RunEvent::RunFailed { error: failed() },
        RunEvent::RunCancelled { error: stopped() },
    ]
}

fn meaning(event: &RunEvent) -> &'static str {
    match event {
        RunEvent::RunStarted { .. } => {
            "The run starts, or with `resumed` resumes after a wait or a restart of the service."
        }
        RunEvent::StepStarted { .. } => {
            "An attempt of a node starts. Discard the output of earlier attempts of the same visit."
        }
        RunEvent::OutputDelta { .. } => "A piece of text, to append to the output of the node's attempt.",
        RunEvent::StepCompleted { .. } => {
            "An attempt has a result. One over 64 KiB is null here, with its size in `result_bytes`; the trace has it."
        }
        RunEvent::StepFailed { .. } => "An attempt failed. Another may follow.",
        RunEvent::RunWaiting(_) => "It waits for an answer; see [below](#answer-a-run).",
        RunEvent::Progress { .. } => "The run's progress, in a line.",
        RunEvent::Notice { .. } => {
            "A message for readers of the run; `level` is `info`, `warning` or `danger`."
        }
        RunEvent::RunCompleted { .. } => "It has succeeded. The last event.",
        RunEvent::RunFailed { .. } => "It has failed. The last event.",
        RunEvent::RunCancelled { .. } => "It was stopped. The last event.",
    }
}

pub(super) fn event_table() -> Result<String> {
    let mut table = "| `type` | meaning | `payload`, for example |\n|---|---|---|\n".to_owned();
    for event in events() {
        let payload = serde_json::to_value(&event)?.get("payload").cloned().unwrap_or_default();
        let payload = payload.to_string().replace('|', "\\|");
        writeln!(table, "| `{}` | {} | `{payload}` |", tag(&event)?, meaning(&event))?;
    }
    Ok(table)
}

/// All frames in a run.
pub(super) fn stream() -> Result<String> {
    let mut text = String::new();
    let all = events().into_iter().filter(|event| {
        !matches!(
            event,
            RunEvent::StepFailed { .. }
                | RunEvent::RunWaiting(_)
                | RunEvent::Progress { .. }
                | RunEvent::Notice { .. }
                | RunEvent::RunFailed { .. }
                | RunEvent::RunCancelled { .. }
        )
    });
    for (seq, event) in (1..).zip(all) {
        let frame = RunFrame { event, run_id: RUN.into(), seq, at: AT.into() };
        wire::sse::push_event(&mut text, RUN, seq, &serde_json::to_string(&frame)?);
    }
    Ok(format!("```\n{}\n```", text.trim_end()))
}

pub(super) fn trace() -> Result<String> {
    let step = TraceStep {
        step: 1,
        node: "answer".into(),
        visit: 1,
        attempt: 1,
        status: "succeeded".into(),
        started_at: AT.into(),
        finished_at: Some(LATER.into()),
        input_digest: "5a1e…".into(),
        input: json!({"text": "It is on its way."}),
        prompts_read: Some(vec!["tone".into()]),
        result: json!({"text": "It is on its way."}),
        error: None,
    };
    let usage =
        RunUsage { calls: 1, input_tokens: Some(212), output_tokens: Some(6), cost_usd: Some(0.000_094_4) };
    let delivery = DeliveryRecord {
        id: DELIVERY.into(),
        status: DeliveryState::Queued,
        attempts: 1,
        created_at: LATER.into(),
        next_attempt_at: Some(LATEST.into()),
        finished_at: None,
        error: Some("hooks.example.com answered 503".into()),
    };
    let interrupted = InterruptedAttempt {
        node: "answer".into(),
        visit: 1,
        attempt: 1,
        started_at: AT.into(),
        noticed_at: LATER.into(),
    };
    let trace = Trace {
        run: ended(),
        usage: Some(usage),
        steps: vec![step],
        next_cursor: None,
        interrupted: vec![interrupted],
        deliveries: vec![delivery],
    };
    let mut trace = serde_json::to_value(trace)?;
    // The page shows the run record earlier.
    if let Some(run) = trace.get_mut("run") {
        *run = json!({"id": RUN, "…": "…"});
    }
    block(&trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_one_row() {
        let tags: std::collections::BTreeSet<String> =
            events().iter().map(|event| tag(event).unwrap()).collect();
        assert_eq!(tags.len(), events().len());
        assert_eq!(event_table().unwrap().lines().count(), events().len() + 2);
    }
}
