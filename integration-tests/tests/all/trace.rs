//! A run's trace: every attempt, page by page, and its models' usage.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{AnswerExt, TestService, Workflow, chat, graphs, thread_of};
use serde_json::{Value, json};

use crate::waiting_runs::{answer, becomes, begin};

/// Runs a workflow to its end; returns the run record.
async fn completed_run(t: &TestService, workflow: &Workflow) -> Value {
    t.post(&workflow.path("/runs?wait=10"), "{}").await.value()
}

#[tokio::test]
async fn a_trace_contains_every_attempt() {
    let t = TestService::start().await;
    let large = "x".repeat(20_000);
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "big", "type": "template", "template": large},
                  {"name": "bad", "type": "assert", "when": "false", "on_error": "continue"}],
        "edges": [{"from": "START", "to": "big"}, {"from": "big", "to": "bad"}, {"from": "bad", "to": "END"}],
        "output": "{{ results.bad.error.code }}",
    });
    let workflow = t.workflow().graph(graph).create().await;
    let run = completed_run(&t, &workflow).await;
    assert_eq!(run["output"], "node.failed", "{run}");
    let path = format!("/api/runs/{}/trace", run["id"].as_str().unwrap());
    let trace = t.get(&path).await.value();
    assert_eq!(trace["run"], run);
    let steps: Vec<(i64, &str, &str)> = trace["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            assert_eq!((step["visit"].as_i64(), step["attempt"].as_i64()), (Some(1), Some(1)));
            assert_eq!(step["input_digest"].as_str().unwrap().len(), 64);
            (step["step"].as_i64().unwrap(), step["node"].as_str().unwrap(), step["status"].as_str().unwrap())
        })
        .collect();
    assert_eq!(steps, [(1, "big", "succeeded"), (2, "bad", "failed")]);
    assert_eq!(trace["steps"][0]["result"]["text"].as_str().unwrap().len(), 20_000);
    assert_eq!(trace["steps"][1]["error"]["code"], "node.failed");
    assert_eq!(t.scalar("SELECT count(*) FROM blobs").await, "1");
    let first = t.get(&format!("{path}?limit=1")).await.value();
    assert_eq!(first["steps"], json!([trace["steps"][0]]));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = t.get(&format!("{path}?limit=1&cursor={cursor}")).await.value();
    assert_eq!((&second["steps"], &second["next_cursor"]), (&json!([trace["steps"][1]]), &Value::Null));
    for bad in ["limit=0", "limit=5001", "cursor=abc", "page=2"] {
        let refused = t.get(&format!("{path}?{bad}")).await;
        assert_eq!(refused.status, 422, "{bad}: {}", refused.text());
    }
}

#[tokio::test]
async fn failed_attempts_and_uncounted_tokens_show_in_a_trace() {
    let t = TestService::start().await;
    let schema = json!({"type": "object", "required": ["n"]});
    let ask = json!({"name": "ask", "type": "llm", "model": "practice/rewrite", "user": "no JSON", "response_schema": schema,
                     "retry": {"max_attempts": 2, "initial_delay_seconds": 0}, "on_error": "continue"});
    let graph = json!({"format": "graph/1", "nodes": [ask],
                       "edges": [{"from": "START", "to": "ask"}, {"from": "ask", "to": "END"}],
                       "output": "{{ results.ask.error.code }} {{ now()[:10] }} {{ uuid() | length }}"});
    let workflow = t.workflow().graph(graph).create().await;
    let run = completed_run(&t, &workflow).await;
    let today = run["created_at"].as_str().unwrap()[..10].to_owned();
    assert_eq!(run["output"], format!("model.bad_answer {today} 36"), "{run}");
    let trace = t.get(&format!("/api/runs/{}/trace", run["id"].as_str().unwrap())).await.value();
    assert_eq!(trace["steps"].as_array().unwrap().len(), 2);
    // Each attempt calls the model twice, because its first reply did not fit.
    assert_eq!((&trace["usage"]["calls"], &trace["usage"]["cost_usd"]), (&json!(4), &json!(0.0)), "{trace}");
    assert!(trace["usage"]["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_trace_lists_the_prompts_read_by_each_step() {
    let t = TestService::start().await;
    let prompts = json!({"prompts": {"tone": {"text": "Be {{ config.prompts.word.text }}."}, "word": {"text": "kind"}, "other": {"text": "x"}}});
    let ask = json!({"name": "ask", "type": "llm", "model": "practice/rewrite", "system": "{{ config.prompts.tone.text }}", "user": "hi"});
    let say = json!({"name": "say", "type": "template", "template": "{{ results.ask.text }}"});
    let workflow = t.workflow().graph(graphs::chain(&[ask, say], None)).config(prompts).create().await;
    let run = completed_run(&t, &workflow).await;
    let trace = trace(&t, run["id"].as_str().unwrap()).await;
    let read: Vec<&Value> =
        trace["steps"].as_array().unwrap().iter().map(|step| &step["prompts_read"]).collect();
    assert_eq!(read, [&json!(["tone", "word"]), &json!([])], "{trace:#}");
}

async fn trace(t: &TestService, run: &str) -> Value {
    t.get(&format!("/api/runs/{run}/trace")).await.value()
}

/// Step inputs by node.
fn inputs(trace: &Value) -> Value {
    let steps = trace["steps"].as_array().unwrap().iter();
    steps.map(|step| (step["node"].as_str().unwrap().to_owned(), step["input"].clone())).collect()
}

#[tokio::test]
async fn a_trace_shows_step_inputs_without_secrets() {
    let keys = json!({"active": "a", "keys": {"a": STANDARD.encode([1; 32])}});
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_VAULT_KEYS", keys.to_string())
        .start()
        .await;
    let made = json!({"name": "key", "secret": "sesame-canary-77x"});
    assert_eq!(t.root().post("/api/credentials", &made).await.status, 201);
    let inner = graphs::chain(
        &[json!({"name": "said", "type": "template", "template": "inner {{ inputs.word }}"})],
        None,
    );
    let inner = t.workflow().named("Inner").graph(inner).create().await;
    let nodes = [
        json!({"name": "day", "type": "template", "template": "{{ now()[:10] }} {{ uuid() | length }}"}),
        json!({"name": "each", "type": "for_each", "items": ["{{ inputs.word }}", "b"],
               "body": {"type": "template", "template": "{{ index }} {{ item }}"}}),
        json!({"name": "call", "type": "sub_workflow", "workflow": inner.handle, "inputs": {"word": "{{ inputs.word }}"}}),
        json!({"name": "send", "type": "http_request", "url": "https://127.0.0.1:1/{{ inputs.word }}", "on_error": "continue",
               "headers": {"authorization": "Bearer [[key]]"}}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).create().await;
    let body = json!({"inputs": {"word": "sesame-canary-77x"}});
    let run = t.root().post(&workflow.path("/runs?wait=30"), &body).await.value();
    assert_eq!(run["status"], "succeeded", "{run}");
    let trace = t.root().get(&format!("/api/runs/{}/trace", run["id"].as_str().unwrap())).await.value();
    let given = inputs(&trace);
    let day = &run["created_at"].as_str().unwrap()[..10];
    assert_eq!(given["day"], json!(format!("{day} 36")), "{given}");
    assert_eq!((&given["each[0]"], &given["each[1]"]), (&json!("0 [redacted]"), &json!("1 b")));
    assert_eq!(
        (&given["call"], &given["call/said"]),
        (&json!({"word": "[redacted]"}), &json!("inner [redacted]"))
    );
    let sent = given["send"].to_string();
    assert!(sent.contains("[[key]]") && sent.contains("127.0.0.1:1/[redacted]"), "{sent}");
    assert!(!given.to_string().contains("sesame"), "{given}");
}

#[tokio::test]
async fn a_turn_trace_shows_the_model_request() {
    let t = TestService::start().await;
    let ask = json!({"name": "ask", "type": "llm", "model": "practice/rewrite", "messages": "{{ messages }}", "stream": true});
    let workflow = t.workflow().graph(graphs::chain(&[ask], None)).published().create().await;
    let first = t.chat(&chat::create(&workflow, "one")).await;
    let thread = thread_of(&first.text());
    t.chat(&chat::add(&workflow, &thread, "two")).await;
    t.chat(&chat::add(&workflow, &thread, "three")).await;
    let run = t.scalar("SELECT id FROM runs ORDER BY id OFFSET 1 LIMIT 1").await;
    let given = inputs(&trace(&t, &run).await)["ask"].to_string();
    assert!(given.contains("one") && given.contains("two") && !given.contains("three"), "{given}");
}

/// A run that only waits is not interrupted by a restart.
#[tokio::test]
async fn a_restart_does_not_interrupt_a_waiting_run() {
    let mut t = TestService::start().await;
    let graph = graphs::chain(&[json!({"name": "ok", "type": "wait_for_input"})], None);
    let workflow = t.workflow().graph(graph).create().await;
    let waiting = begin(&t, &workflow, "?wait=30", json!({})).await;
    t.restart().await;
    assert_eq!(answer(&t, &waiting, "ok", json!(1)).await.status, 202);
    becomes(&t, &waiting, "succeeded").await;
    assert_eq!(trace(&t, waiting["id"].as_str().unwrap()).await["interrupted"], json!([]));
}
