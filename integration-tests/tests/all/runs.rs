//! Workflow runs over HTTP: started, awaited, listed, watched, traced, cancelled.

use integration_tests::{Answer, AnswerExt, JSON, Raw, TestService, Workflow, graphs, until, within};
use serde_json::{Value, json};

use crate::workflows::tidy;

async fn begin(t: &TestService, workflow: &Workflow, query: &str, body: Value) -> Answer {
    t.post(&format!("/api/workflows/{}/runs{query}", workflow.id), &body.to_string()).await
}

async fn record(t: &TestService, run: &str) -> Value {
    t.get(&format!("/api/runs/{run}")).await.value()
}

/// The run's events, from the first one.
async fn events(t: &TestService, run: &str) -> Vec<Value> {
    let body = t.open("GET", &format!("/api/runs/{run}/events"), &[], "").await.rest().await;
    integration_tests::events(&body)
}

fn id(answer: &Answer) -> String {
    answer.value()["id"].as_str().unwrap().to_owned()
}

/// Adds two numbers; both are required inputs.
fn sum() -> Value {
    json!({
        "format": "graph/1",
        "inputs": {"type": "object", "required": ["a", "b"], "additionalProperties": false,
                   "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
        "nodes": [{"name": "sum", "type": "transform", "expression": "inputs.a + inputs.b"},
                  {"name": "tell", "type": "template", "template": "{{ config.word | default('It is') }} {{ results.sum }}."}],
        "edges": [{"from": "START", "to": "sum"}, {"from": "sum", "to": "tell"}, {"from": "tell", "to": "END"}],
        "output": {"text": "{{ results.tell.text }}", "sum": "{{ results.sum }}"},
    })
}

#[tokio::test]
async fn a_run_is_accepted_at_once_and_ends_by_itself() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sum()).config(json!({"word": "Sum:"})).create().await;
    let body = json!({"inputs": {"a": 1, "b": 2}, "metadata": {"ticket": 7}});
    let begun = begin(&t, &workflow, "", body).await.expect(202);
    insta::assert_snapshot!(tidy(begun.value()), @r#"
    {
      "continued_by": null,
      "created_at": "[time]",
      "error": null,
      "finished_at": null,
      "id": "[id]",
      "inputs": {
        "a": 1,
        "b": 2
      },
      "metadata": {
        "ticket": 7
      },
      "origin_run_id": null,
      "output": null,
      "resumes_at": null,
      "started_at": null,
      "status": "queued",
      "trigger": "api",
      "version": 1,
      "version_id": "[id]",
      "waits_for": [],
      "warning": null,
      "workflow_id": "[id]"
    }
    "#);
    let run = id(&begun);
    until("the run ends", async || record(&t, &run).await["status"] == "succeeded").await;
    let ended = record(&t, &run).await;
    assert_eq!(ended["output"], json!({"text": "Sum: 3.", "sum": 3}));
    assert!(ended["started_at"].is_string() && ended["finished_at"].is_string());
}

#[tokio::test]
async fn a_request_with_wait_returns_the_result() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sum()).create().await;
    let inputs = json!({"a": 1.5, "b": 2});
    let done = begin(&t, &workflow, "?wait=10", json!({"inputs": inputs, "config": {"word": "Here:"}})).await;
    assert_eq!((done.status, done.value()["status"].as_str()), (200, Some("succeeded")));
    assert_eq!(done.value()["output"], json!({"text": "Here: 3.5.", "sum": 3.5}));
    let slow = t.workflow().graph(graphs::delayed(9.5, "late")).create().await;
    let late = begin(&t, &slow, "?wait=1", json!({})).await;
    assert_eq!((late.status, late.value()["status"].as_str()), (202, Some("running")));
    let stopped = t.post(&format!("/api/runs/{}/cancel", id(&late)), "").await;
    assert_eq!((stopped.status, stopped.value()["status"].as_str()), (200, Some("cancelled")));
    assert_eq!(stopped.value()["error"]["code"], "run.cancelled");
}

#[tokio::test]
async fn invalid_inputs_start_no_run() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sum()).create().await;
    let refused = begin(&t, &workflow, "", json!({"inputs": {"a": "1", "c": 2}})).await;
    assert_eq!(refused.refusal(), "422 run.inputs_invalid");
    assert_eq!(refused.problems(), ["/inputs schema", "/inputs/a schema", "/inputs schema"]);
    t.assert_no_rows("runs").await;
    for (query, body, expected) in [
        ("", json!({"inputs": [], "verson": 1}), "422 request.invalid"),
        ("?wait=61", json!({"inputs": {"a": 1, "b": 2}}), "422 request.invalid"),
        ("?weit=6", json!({"inputs": {"a": 1, "b": 2}}), "422 request.invalid"),
        ("", json!({"inputs": {"a": 1, "b": 2}, "version": 2}), "404 version.not_found"),
    ] {
        assert_eq!(begin(&t, &workflow, query, body).await.refusal(), expected);
    }
    let missing = begin(&t, &workflow, "", json!({"version": 2})).await;
    assert_eq!(missing.message(), "Version '2' not found; the latest is 1.");
    let empty = t.workflow().without_version().create().await;
    assert_eq!(begin(&t, &empty, "", json!({})).await.refusal(), "409 workflow.no_version");
    assert_eq!(t.post("/api/workflows/none/runs", "{}").await.refusal(), "404 workflow.not_found");
    for path in ["/api/runs/none", "/api/runs/01890000-0000-7000-8000-000000000000"] {
        assert_eq!(t.get(path).await.refusal(), "404 run.not_found");
        for part in ["events", "trace"] {
            assert_eq!(t.get(&format!("{path}/{part}")).await.refusal(), "404 run.not_found");
        }
        assert_eq!(t.post(&format!("{path}/cancel"), "").await.refusal(), "404 run.not_found");
    }
    t.assert_no_rows("runs").await;
}

#[tokio::test]
async fn a_failed_run_has_its_node_and_error() {
    let t = TestService::start().await;
    let nodes = [
        json!({"name": "look", "type": "assert", "when": "inputs.n > 1", "message": "{{ inputs.n }} is too small"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).create().await;
    let failed = begin(&t, &workflow, "?wait=10", json!({"inputs": {"n": 1}})).await;
    assert_eq!((failed.status, failed.value()["status"].as_str()), (200, Some("failed")));
    let error = json!({"code": "node.failed", "message": "1 is too small", "node": "look"});
    assert_eq!(failed.value()["error"], error);
    let last = events(&t, &id(&failed)).await.pop().unwrap();
    assert_eq!((last["type"].as_str(), &last["payload"]["error"]), (Some("run_failed"), &error));
    let slow = t.workflow().graph(graphs::delayed(30.0, "late")).create().await;
    let late = begin(&t, &slow, "?wait=10", json!({"timeout_seconds": 0.2})).await;
    assert_eq!(late.value()["error"]["code"], "run.timeout");
}

#[tokio::test]
async fn events_report_every_step_and_resume_after_any_event() {
    let t = TestService::start().await;
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "say", "type": "reply", "text": "one two three", "pieces": "words", "pause_ms": 60},
                  {"name": "note", "type": "progress", "text": "nearly"},
                  {"name": "warn", "type": "notice", "level": "warning", "message": "careful"}],
        "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "note"}, {"from": "note", "to": "warn"},
                  {"from": "warn", "to": "END"}],
        "output": "{{ results.say.text }}",
    });
    let workflow = t.workflow().graph(graph).create().await;
    let run = id(&begin(&t, &workflow, "", json!({})).await);
    let mut live = t.open("GET", &format!("/api/runs/{run}/events"), &[], "").await;
    assert_eq!(live.header("content-type"), Some("text/event-stream"));
    let body = within("the run ends", live.rest()).await;
    let all = events(&t, &run).await;
    for (seq, event) in (1_u64..).zip(&all) {
        assert_eq!((event["run_id"].as_str(), event["seq"].as_u64()), (Some(run.as_str()), Some(seq)));
    }
    let kinds: Vec<&str> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[1], kinds[2]), ("run_started", "step_started", "output_delta"));
    assert_eq!(kinds.last(), Some(&"run_completed"));
    assert_eq!(all.last().unwrap()["payload"], json!({"output": "one two three"}));
    for kind in ["step_completed", "progress", "notice"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let text: String = all
        .iter()
        .filter(|event| event["type"] == "output_delta")
        .map(|event| event["payload"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "one two three");
    // The live events equal the stored ones, and each event is a valid resume position.
    let stored = t.open("GET", &format!("/api/runs/{run}/events"), &[], "").await.rest().await;
    assert_eq!(body, stored);
    let odd = t.get(&format!("/api/runs/{run}/events?from=2")).await;
    assert_eq!(odd.problems(), ["/from unknown_parameter"]);
    for index in 0..=all.len() {
        let after = format!("/api/runs/{run}/events?after={index}");
        let rest = t.open("GET", &after, &[], "").await.whole().await;
        let expected: String = stored.split_inclusive("\n\n").skip(index).collect();
        assert_eq!((rest.text(), rest.status == 204), (expected.as_str().into(), index == all.len()));
    }
}

#[tokio::test]
async fn a_retry_with_the_same_key_begins_no_second_run() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sum()).create().await;
    let path = workflow.path("/runs");
    let body = json!({"inputs": {"a": 1, "b": 2}}).to_string();
    let headers = [JSON, ("idempotency-key", "k-1")];
    let first = t.send("POST", &path, &headers, &body).await;
    until("the run ends", async || record(&t, &id(&first)).await["status"] == "succeeded").await;
    let again = t.send("POST", &path, &headers, &body).await;
    assert_eq!((again.status, again.value()), (202, first.value()));
    assert_eq!(
        (first.header("idempotency-replayed"), again.header("idempotency-replayed")),
        (None, Some("true"))
    );
    let other = json!({"inputs": {"a": 1, "b": 3}}).to_string();
    assert_eq!(t.send("POST", &path, &headers, &other).await.refusal(), "422 idempotency.key_reused");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

/// The first response counts, even if the same run could not be started any more.
#[tokio::test]
async fn a_retry_is_replayed_after_the_workflow_changed() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await;
    let path = format!("/api/workflows/{}/runs", workflow.handle);
    let headers = [JSON, ("idempotency-key", "k")];
    let send = async || t.send("POST", &path, &headers, "{}").await;
    let first = send().await.expect(202);
    // From another address, the same key belongs to another caller.
    let raw = Raw::connect_from([127, 0, 0, 2].into(), t.address()).await;
    let [kind, key] = headers;
    let theirs = raw.request("POST", &path, &[kind, key, ("connection", "close")], "{}").await.whole().await;
    assert_ne!(id(&theirs), id(&first));
    let strict = json!({"graph": sum()}).to_string();
    assert_eq!(t.post(&workflow.path("/versions"), &strict).await.status, 201);
    let again = send().await;
    assert_eq!((again.status, again.value()), (202, first.value()), "its inputs would not do for version 2");
    t.send("PUT", &workflow.path(""), &headers, r#"{"handle": "new"}"#).await.expect(200);
    t.client().archive(&workflow.id).await.unwrap();
    let again = send().await;
    assert_eq!(
        (again.status, again.value()),
        (202, first.value()),
        "the workflow is archived, under another name"
    );
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(t.send("POST", &path, &headers, "{ }").await.refusal(), "422 idempotency.key_reused");
    assert_eq!(t.send("POST", &path, &[kind], "{}").await.refusal(), "404 workflow.not_found");
    t.until_scalar("both runs end", "SELECT count(*) FROM runs WHERE finished_at IS NULL", "0").await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
}

#[tokio::test]
async fn the_event_position_is_validated_with_the_whole_query() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await;
    let run = id(&begin(&t, &workflow, "?wait=10", json!({})).await);
    let path = format!("/api/runs/{run}/events");
    assert_eq!(
        t.get(&format!("{path}?aftr=1&after=x")).await.problems(),
        ["/aftr unknown_parameter", "/after format"]
    );
    let head = t.open("HEAD", &path, &[], "").await;
    assert_eq!(
        (head.status, head.header("allow")),
        (405, Some("GET")),
        "a stream has no known headers in advance"
    );
}

#[tokio::test]
async fn every_list_has_the_same_limits_and_a_cursor() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("a")).create().await;
    for text in ["b", "c"] {
        let version = json!({"graph": graphs::reply(text)}).to_string();
        assert_eq!(t.post(&workflow.path("/versions"), &version).await.status, 201);
        begin(&t, &workflow, "?wait=10", json!({})).await;
    }
    begin(&t, &workflow, "?wait=10", json!({})).await;
    let lists = ["versions", "runs"].map(|list| format!("/api/workflows/{}/{list}", workflow.id));
    for (path, other) in [(&lists[0], &lists[1]), (&lists[1], &lists[0])] {
        for limit in ["0", "201", "-1", "x", ""] {
            assert_eq!(t.get(&format!("{path}?limit={limit}")).await.problems(), ["/limit range"], "{path}");
        }
        assert_eq!(t.get(&format!("{path}?page=2")).await.problems(), ["/page unknown_parameter"]);
        let whole = t.get(&format!("{path}?limit=200")).await.value();
        assert_eq!((whole["data"].as_array().unwrap().len(), &whole["next_cursor"]), (3, &Value::Null));
        let first = t.get(&format!("{path}?limit=2")).await.value();
        let cursor = first["next_cursor"].as_str().unwrap();
        assert_eq!(t.get(&format!("{other}?cursor={cursor}")).await.problems(), ["/cursor format"]);
        let rest = t.get(&format!("{path}?limit=2&cursor={cursor}")).await.value();
        assert_eq!((&rest["data"][0], &rest["next_cursor"]), (&whole["data"][2], &Value::Null));
    }
}

#[tokio::test]
async fn a_list_shows_the_newest_first_and_page_by_page() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(sum()).create().await;
    let mut begun = Vec::new();
    for n in 0..5 {
        begun.push(id(&begin(&t, &workflow, "?wait=10", json!({"inputs": {"a": n, "b": 0}})).await));
    }
    begun.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page =
            t.get(&format!("/api/workflows/{}/runs?limit=2&cursor={cursor}", workflow.id)).await.value();
        let ids = page["data"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, begun);
    let list = |status: &str| format!("/api/workflows/{}/runs?status={status}", workflow.id);
    assert_eq!(t.get(&list("succeeded")).await.value()["data"].as_array().unwrap().len(), 5);
    assert_eq!(t.get(&list("failed")).await.value()["data"], json!([]));
    assert_eq!(t.get(&list("done")).await.refusal(), "422 request.invalid");
}

#[tokio::test]
async fn a_cancellation_is_durable_and_idempotent() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "late")).create().await;
    let run = id(&begin(&t, &workflow, "", json!({})).await);
    let path = format!("/api/runs/{run}/cancel");
    let stopped = t.post(&path, "{}").await;
    assert_eq!((stopped.status, stopped.value()["status"].as_str()), (200, Some("cancelled")));
    assert_eq!(t.post(&path, "").await.value(), stopped.value());
    assert_eq!(events(&t, &run).await.last().unwrap()["type"], "run_cancelled");
    let done = t.workflow().graph(sum()).create().await;
    let done = begin(&t, &done, "?wait=10", json!({"inputs": {"a": 1, "b": 2}})).await;
    let after = t.post(&format!("/api/runs/{}/cancel", id(&done)), "").await;
    assert_eq!((after.status, after.value()), (200, done.value()));
}

#[tokio::test]
async fn a_run_continues_after_a_restart_without_repeating_steps() {
    let mut t = TestService::start().await;
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "first", "type": "template", "template": "done"},
                  {"name": "wait", "type": "delay", "seconds": 7},
                  {"name": "last", "type": "reply", "text": "{{ results.first.text }}!"}],
        "edges": [{"from": "START", "to": "first"}, {"from": "first", "to": "wait"}, {"from": "wait", "to": "last"},
                  {"from": "last", "to": "END"}],
        "output": "{{ results.last.text }}",
    });
    let workflow = t.workflow().graph(graph).create().await;
    let run = id(&begin(&t, &workflow, "", json!({})).await);
    until("the first step is stored", async || {
        t.scalar("SELECT count(*) FROM run_steps WHERE node = 'first' AND status = 'succeeded'").await == "1"
    })
    .await;
    t.restart().await;
    until("the run ends", async || record(&t, &run).await["status"] == "succeeded").await;
    assert_eq!(record(&t, &run).await["output"], "done!");
    let all = events(&t, &run).await;
    for (seq, event) in (1_u64..).zip(&all) {
        assert_eq!(event["seq"].as_u64(), Some(seq));
    }
    let count = |kind: &str, node: &str| {
        all.iter().filter(|event| event["type"] == kind && event["payload"]["node"] == node).count()
    };
    assert_eq!((count("step_started", "first"), count("step_completed", "first")), (1, 1));
    assert_eq!(count("step_completed", "last"), 1);
    let resumed: Vec<bool> = all
        .iter()
        .filter(|event| event["type"] == "run_started")
        .map(|event| event["payload"]["resumed"].as_bool().unwrap())
        .collect();
    assert_eq!(resumed, [false, true]);
}

#[tokio::test]
async fn a_sub_workflow_is_found_in_the_workspace_by_its_handle() {
    let t = TestService::start().await;
    let inner = t.workflow().named("Adder").graph(sum()).create().await;
    let handle = t.get(&inner.path("")).await.value()["handle"].as_str().unwrap().to_owned();
    let call = |workflow: &str| {
        let node = json!({"name": "add", "type": "sub_workflow", "workflow": workflow, "inputs": {"a": 20, "b": 22}});
        graphs::chain(&[node], Some(json!("{{ results.add.sum }}")))
    };
    for name in [handle.as_str(), inner.id.as_str()] {
        let outer = t.workflow().graph(call(name)).create().await;
        let done = begin(&t, &outer, "?wait=10", json!({})).await;
        assert_eq!(done.value()["output"], 42, "{}", done.text());
    }
    let outer = t.workflow().graph(call("nobody")).create().await;
    let failed = begin(&t, &outer, "?wait=10", json!({})).await;
    assert_eq!(failed.value()["error"]["code"], "workflow.not_found");
    assert_eq!(failed.value()["error"]["node"], "add");
}
