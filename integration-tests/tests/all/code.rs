//! Workflow code over HTTP: modules are saved and run, invalid ones are rejected with their line, and an endless loop
//! blocks no other run.

use integration_tests::{AnswerExt, TestService, chat, until, within};
use serde_json::{Value, json};

fn graph() -> Value {
    json!({
        "format": "graph/1",
        "modules": {
            "metrics.py": "def exact(args):\n    return {'score': 1.0 if args['a'] == args['b'] else 0.0}\n",
            "shape.js": "import { double } from './lib.js';\nexport const tidy = (args) => ({ n: double(args.n) });\n",
            "lib.js": "export const double = (n) => n * 2;\n",
        },
        "nodes": [
            {"name": "score", "type": "code", "module": "metrics.py", "function": "exact",
             "args": {"a": "{{ inputs.a }}", "b": "word"}},
            {"name": "shape", "type": "code", "module": "shape.js", "function": "tidy", "args": {"n": "{{ inputs.n }}"}},
            {"name": "short", "type": "code", "language": "python", "source": "args + 1", "args": "{{ results.shape.n }}"},
        ],
        "edges": [{"from": "START", "to": "score"}, {"from": "score", "to": "shape"}, {"from": "shape", "to": "short"},
                  {"from": "short", "to": "END"}],
        "output": {"score": "{{ results.score.score }}", "n": "{{ results.short }}"},
    })
}

#[tokio::test]
async fn modules_are_saved_and_run_and_invalid_ones_rejected_with_their_line() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graph()).create().await;
    let runs = workflow.path("/runs?wait=30");
    let ended = t.post(&runs, r#"{"inputs": {"a": "word", "n": 20}}"#).await.value();
    assert_eq!((&ended["status"], &ended["output"]), (&json!("succeeded"), &json!({"score": 1.0, "n": 41})));

    let mut bad = graph();
    bad["modules"]["metrics.py"] = json!("def exact(args):\n    return args +\n");
    bad["nodes"][1]["function"] = json!("tidi");
    let refused = t.post(&workflow.path("/versions"), &json!({"graph": bad}).to_string()).await.expect(422);
    let checked = t.post("/api/workflows/check", &json!({"graph": bad}).to_string()).await.value();
    assert_eq!(checked["valid"], json!(false));
    for errors in [&refused.value()["detail"]["errors"], &checked["errors"]] {
        let pointers: Vec<&str> =
            errors.as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect();
        assert_eq!(pointers, ["/modules/metrics.py", "/nodes/1/function"], "{errors}");
        assert!(errors[0]["message"].as_str().unwrap().ends_with("(line 2, column 18)"), "{errors}");
        assert_eq!(errors[1]["suggestion"], json!("did you mean 'tidy'?"));
    }
}

#[tokio::test]
async fn an_endless_loop_fails_only_its_own_run() {
    let t = TestService::builder().set("SERVICE_SANDBOX_WORKERS", "2").start().await;
    let endless = |seconds: f64| {
        json!({
            "format": "graph/1",
            "nodes": [{"name": "spin", "type": "code", "language": "javascript", "source": "for (;;) {}",
                       "timeout_seconds": seconds}],
            "edges": [{"from": "START", "to": "spin"}, {"from": "spin", "to": "END"}],
        })
    };
    let workflow = t.workflow().graph(endless(10.0)).create().await;
    let echo = t.workflow().echo().published().create().await;
    let runs = workflow.path("/runs");
    let mut started = Vec::new();
    for _ in 0..2 {
        started.push(t.post(&runs, r#"{"inputs": {}}"#).await.value()["id"].as_str().unwrap().to_owned());
    }
    let record = async |run: &str| t.get(&format!("/api/runs/{run}")).await.value();
    until("both runs to spin", async || {
        record(&started[0]).await["status"] == "running" && record(&started[1]).await["status"] == "running"
    })
    .await;
    within("other runs continue meanwhile", async {
        t.assert_healthy().await;
        t.chat(&chat::create(&echo, "hi")).await.expect(200);
    })
    .await;
    for run in &started {
        until("the run to fail", async || record(run).await["status"] == "failed").await;
        let error = record(run).await["error"].clone();
        assert_eq!((&error["code"], &error["node"]), (&json!("code.timeout"), &json!("spin")));
    }

    // A stopped run releases its worker at once.
    let long = t.workflow().graph(endless(300.0)).create().await;
    for _ in 0..2 {
        let run = t.post(&long.path("/runs"), r#"{"inputs": {}}"#).await.value();
        let run = run["id"].as_str().unwrap().to_owned();
        until("the run to spin", async || record(&run).await["status"] == "running").await;
        assert!(t.post(&format!("/api/runs/{run}/cancel"), "").await.status < 300);
        until("the run to be cancelled", async || record(&run).await["status"] == "cancelled").await;
    }
    let quick = t.workflow().graph(graph()).create().await;
    let ended = t.post(&quick.path("/runs?wait=30"), r#"{"inputs": {"a": "", "n": 1}}"#).await.value();
    assert_eq!(ended["status"], json!("succeeded"), "{ended}");
}
