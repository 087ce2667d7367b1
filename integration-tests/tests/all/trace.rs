//! The trace of a run: every attempt, page by page, and what its models used.

use integration_tests::{AnswerExt, TestService, Workflow};
use serde_json::{Value, json};

/// Runs a workflow to its end; returns its record.
async fn ran(t: &TestService, workflow: &Workflow) -> Value {
    t.post(&format!("/api/workflows/{}/runs?wait=10", workflow.id), "{}").await.value()
}

#[tokio::test]
async fn the_trace_holds_every_attempt() {
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
    let run = ran(&t, &workflow).await;
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
    let run = ran(&t, &workflow).await;
    let today = run["created_at"].as_str().unwrap()[..10].to_owned();
    assert_eq!(run["output"], format!("model.bad_answer {today} 36"), "{run}");
    let trace = t.get(&format!("/api/runs/{}/trace", run["id"].as_str().unwrap())).await.value();
    assert_eq!(trace["steps"].as_array().unwrap().len(), 2);
    // Each attempt asks twice: its answer did not fit.
    assert_eq!((&trace["usage"]["calls"], &trace["usage"]["cost_usd"]), (&json!(4), &json!(0.0)), "{trace}");
    assert!(trace["usage"]["input_tokens"].as_u64().unwrap() > 0);
}
