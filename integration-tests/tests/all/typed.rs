//! The typed client against the service: graphs checked, compared and drawn, runs started and followed.

use std::time::Duration;

use client::{Client, ClientError, Part, RunOptions, StreamEvent};
use integration_tests::{TestService, graphs, until};
use serde_json::{Value, json};
use wire::{CheckVersion, CreateRun, CreateVersion, RunEvent, RunFrame, RunState};

fn version(graph: Value) -> CreateVersion {
    CreateVersion { graph, runnable_config: None, metadata: None, notes: None }
}

fn inputs(inputs: Value) -> CreateRun {
    CreateRun { inputs: Some(inputs), ..CreateRun::default() }
}

fn code(error: &ClientError) -> &str {
    error.code().unwrap_or_default()
}

async fn follow(client: &Client, run: &str, after: Option<&str>) -> Vec<StreamEvent<RunFrame>> {
    let mut following = client.follow_run(run, after);
    let mut events = Vec::new();
    while let Some(event) = following.next().await.unwrap() {
        events.push(event);
    }
    assert_eq!((following.repeated(), following.skipped()), (0, 0));
    events
}

#[tokio::test]
async fn a_graph_is_checked_compared_and_drawn() {
    let t = TestService::start().await;
    let client = t.client();
    let workflow = t.workflow().graph(graphs::reply("one")).create().await;
    let slip = json!({"format": "graph/1", "nodes": [{"name": "a", "type": "replay"}], "edges": [{"from": "START", "to": "a"}]});
    let checked = client.check(&CheckVersion { graph: slip, runnable_config: None }).await.unwrap();
    assert!(!checked.valid);
    assert_eq!(checked.errors[0].suggestion.as_deref(), Some("did you mean 'reply'?"));
    let (saved, new) = client.save_version(&workflow.id, &version(graphs::reply("two"))).await.unwrap();
    assert_eq!((saved.version.version, saved.warnings, new), (Some(2), vec![], true));
    let diff = client.diff(&workflow.handle, 1, 2).await.unwrap();
    assert_eq!((diff.base, diff.target, diff.changes.len()), (Some(1), Some(2), 1));
    assert_eq!(
        (diff.changes[0].node.as_deref(), diff.changes[0].field.as_deref()),
        (Some("say"), Some("text"))
    );
    assert_eq!(code(&client.diff(&workflow.id, 1, 7).await.unwrap_err()), "version.not_found");
    assert!(client.diagram_svg(&workflow.id, 2).await.unwrap().contains(">say</text>"));
    assert!(client.diagram_mermaid(&workflow.id, 2).await.unwrap().starts_with("flowchart TD\n"));
    assert_eq!(code(&client.diagram_svg(&workflow.id, 3).await.unwrap_err()), "version.not_found");

    let mut part = Part { limit: Some(10), cursor: None };
    let first = client.nodes(&part).await.unwrap();
    part.cursor.clone_from(&first.next_cursor);
    part.limit = Some(200);
    let rest = client.nodes(&part).await.unwrap();
    assert_eq!((first.data.len(), rest.next_cursor.as_deref()), (10, None));
    assert_eq!(client.node("set").await.unwrap(), first.data[0]);
    assert_eq!(code(&client.node("sett").await.unwrap_err()), "node_type.not_found");
}

#[tokio::test]
async fn a_missing_sub_workflow_causes_a_warning() {
    let keys = json!({"active": "a", "keys": {"a": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}});
    let t = TestService::builder().set("SERVICE_VAULT_KEYS", keys.to_string()).start().await;
    let client = t.client();
    t.workflow().named("Refund").create().await;
    t.workflow().named("Empty").without_version().create().await;
    let call = |name: &str, more: Value| {
        let mut node = json!({"name": "call", "type": "sub_workflow", "workflow": name});
        if let Value::Object(more) = more {
            node.as_object_mut().unwrap().extend(more);
        }
        graphs::chain(&[node], None)
    };
    let warned = async |graph: Value| -> Vec<String> {
        let checked = client.check(&CheckVersion { graph, runnable_config: None }).await.unwrap();
        assert!(checked.valid, "{checked:?}");
        let line = |warning: wire::FieldError| {
            format!(
                "{} {}: {} ({})",
                warning.pointer,
                warning.code,
                warning.message,
                warning.suggestion.unwrap_or_default()
            )
        };
        checked.warnings.into_iter().map(line).collect()
    };
    assert_eq!(warned(call("refund", json!({}))).await, [""; 0]);
    assert_eq!(warned(call("refund", json!({"version": 1}))).await, [""; 0]);
    assert_eq!(
        warned(call("refnud", json!({}))).await,
        [
            "/nodes/0/workflow unknown_workflow: this workspace has no workflow 'refnud' (did you mean 'refund'?)"
        ]
    );
    assert_eq!(
        warned(call("refund", json!({"version": 9}))).await,
        [
            "/nodes/0/version unknown_version: the workflow 'refund' has no version 9 (its latest is 1; without 'version' the live version is used)"
        ]
    );
    assert_eq!(warned(call("refund", json!({"version": 4_000_000_000_u32}))).await.len(), 1);
    assert_eq!(
        warned(call("empty", json!({}))).await,
        ["/nodes/0/workflow no_version: the workflow 'empty' has no version yet ()"]
    );
    assert!(warned(call("\0", json!({}))).await[0].starts_with("/nodes/0/workflow unknown_workflow: "));
    let unknown = warned(call("01890000-0000-7000-8000-000000000000", json!({}))).await;
    assert!(unknown[0].starts_with("/nodes/0/workflow unknown_workflow: "), "{unknown:?}");

    // Saving reports the same warnings and saves; a workflow that calls itself is valid then.
    let chosen = json!({"name": "call", "type": "http_request", "url": "{{ inputs.url }}",
                        "headers": {"Authorization": "Bearer [[stripe]]"}});
    let credential = json!({"name": "stripe", "secret": "a-secret-of-stripe"});
    assert_eq!(t.post("/api/credentials", &credential.to_string()).await.status, 201);
    let warnings = warned(graphs::chain(&[chosen], None)).await;
    assert!(
        warnings.last().unwrap().starts_with("/nodes/0/url secret_address: the address comes from 'inputs'"),
        "{warnings:?}"
    );
    let (saved, new) = client.save_version("empty", &version(call("zebra", json!({})))).await.unwrap();
    assert!(new && saved.warnings.len() == 1 && saved.warnings[0].code == "unknown_workflow", "{saved:?}");
    let t_self = t.workflow().named("Itself").without_version().create().await;
    let (saved, _) = client.save_version(&t_self.id, &version(call("itself", json!({})))).await.unwrap();
    assert_eq!(saved.warnings, []);
}

#[tokio::test]
async fn a_run_is_started_awaited_listed_and_traced() {
    let t = TestService::start().await;
    let client = t.client();
    let nodes = [json!({"name": "sum", "type": "transform", "expression": "inputs.a + 1"})];
    let workflow = t.workflow().graph(graphs::chain(&nodes, Some(json!("{{ results.sum }}")))).create().await;
    let wait = RunOptions { wait: Some(Duration::from_secs(10)), ..RunOptions::default() };
    let done = client.begin_run(&workflow.id, &inputs(json!({"a": 1})), &wait).await.unwrap();
    assert_eq!((done.run.status, &done.run.output, done.replayed), (RunState::Succeeded, &json!(2), false));
    let keyed = RunOptions { wait: None, idempotency_key: Some("key-1".to_owned()) };
    let once = client.begin_run(&workflow.id, &inputs(json!({"a": 2})), &keyed).await.unwrap();
    let twice = client.begin_run(&workflow.id, &inputs(json!({"a": 2})), &keyed).await.unwrap();
    assert_eq!((once.replayed, twice.replayed, &once.run.id), (false, true, &twice.run.id));
    let other = client.begin_run(&workflow.id, &inputs(json!({"a": 3})), &keyed).await.unwrap_err();
    assert_eq!(code(&other), "idempotency.key_reused");
    until("the run ends", async || client.run(&once.run.id).await.unwrap().status.is_terminal()).await;
    let listed = client.runs(&workflow.handle, Some(RunState::Succeeded), &Part::default()).await.unwrap();
    let ids: Vec<&str> = listed.data.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, [&once.run.id, &done.run.id]);
    assert_eq!(client.runs(&workflow.id, Some(RunState::Failed), &Part::default()).await.unwrap().data, []);
    let trace = client.trace(&done.run.id).await.unwrap();
    assert_eq!((trace.run, trace.steps.len(), &trace.steps[0].result), (done.run, 1, &json!(2)));
    assert_eq!(code(&client.run("none").await.unwrap_err()), "run.not_found");
    assert!(matches!(client.run("").await, Err(ClientError::Usage(_))));
}

#[tokio::test]
async fn a_run_is_followed_from_any_event_and_over_a_restart() {
    let mut t = TestService::start().await;
    let client = t.client().clone();
    let workflow = t.workflow().graph(graphs::interrupted("one", 0.5, "two")).create().await;
    let begun = client.begin_run(&workflow.id, &CreateRun::default(), &RunOptions::default()).await.unwrap();
    let id = begun.run.id;
    let mut following = client.follow_run(&id, None);
    let first = following.next().await.unwrap().unwrap();
    assert!(matches!(first.event.event, RunEvent::RunStarted { resumed: false, .. }), "{first:?}");
    t.restart().await;
    let (mut last, mut seq) = (first, 1);
    while let Some(event) = following.next().await.unwrap() {
        seq += 1;
        assert_eq!((event.seq, event.event.seq, event.event.run_id.as_str()), (seq, seq, id.as_str()));
        last = event;
    }
    assert!(matches!(last.event.event, RunEvent::RunCompleted { .. }), "{last:?}");
    assert!(following.resumes() >= 1);
    let all = follow(&client, &id, None).await;
    assert_eq!(all.len(), usize::try_from(seq).unwrap());
    for (index, event) in all.iter().enumerate() {
        assert_eq!(follow(&client, &id, Some(&event.id)).await, all[index + 1..]);
    }
    assert!(client.run_events(&id, Some(&last.id)).await.unwrap().is_none());
    assert_eq!(code(&client.run_events(&id, Some("x.1")).await.err().unwrap()), "request.invalid");
}

#[tokio::test]
async fn a_cancelled_run_ends_its_followers_stream() {
    let t = TestService::start().await;
    let client = t.client();
    let workflow = t.workflow().graph(graphs::delayed(60.0, "late")).create().await;
    let run =
        client.begin_run(&workflow.id, &CreateRun::default(), &RunOptions::default()).await.unwrap().run;
    let mut following = client.follow_run(&run.id, None);
    assert!(following.next().await.unwrap().is_some());
    let stopped = client.cancel_run(&run.id).await.unwrap();
    assert_eq!(stopped.status, RunState::Cancelled);
    assert_eq!(client.cancel_run(&run.id).await.unwrap(), stopped);
    let mut last = None;
    while let Some(event) = following.next().await.unwrap() {
        last = Some(event.event.event);
    }
    assert!(matches!(last, Some(RunEvent::RunCancelled { .. })), "{last:?}");
}
