//! The run list of an app, for its owners.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};

use super::runs::{Published, answers, slow};

/// An app with one binding for each way a run can end.
async fn desk(t: &TestService) -> Published<'_> {
    let failing = json!({"name": "no", "type": "assert", "when": "false", "message": "a secret"});
    let mut bindings = json!({});
    for (name, graph, seconds) in [
        ("form", answers(), 60),
        ("fails", graphs::chain(&[failing], None), 60),
        ("late", slow(60.0), 1),
        ("slow", slow(60.0), 60),
    ] {
        let workflow = t.workflow().named(name).graph(graph).create().await;
        bindings[name] = json!({"workflow": workflow.handle, "version": 1, "access_mode": "anonymous",
            "limits": {"timeout_seconds": seconds}});
    }
    let app = t.app("desk").manifest(&json!({"bindings": bindings})).publish().await;
    Published::existing(t, "desk", app.id)
}

async fn list(t: &TestService, query: &str) -> Value {
    let listed = t.get(&format!("/api/apps/desk/runs{query}")).await;
    assert_eq!(listed.status, 200, "{query}: {}", listed.text());
    listed.value()
}

fn prefixes(listed: &Value) -> Vec<&str> {
    listed["data"].as_array().unwrap().iter().map(|run| run["handle_prefix"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn app_runs_are_listed_with_states_and_handle_prefixes() {
    let t = TestService::start().await;
    let app = desk(&t).await;
    assert_eq!(list(&t, "").await, json!({"data": [], "next_cursor": null}));
    let mut handles = Vec::new();
    for binding in ["form", "fails", "late"] {
        let handle = app.handle(binding, binding, &json!({"text": "a"})).await;
        app.ended(&handle).await;
        handles.push(handle);
    }
    let handle = app.handle("slow", "cancelled", &json!({})).await;
    app.running(&handle).await;
    let id = list(&t, "?limit=1").await["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(t.post(&format!("/api/runs/{id}/cancel"), "").await.status, 200);
    app.ended(&handle).await;
    handles.push(handle);
    let handle = app.handle("slow", "running", &json!({})).await;
    app.running(&handle).await;
    handles.push(handle);
    handles.reverse();
    let expected: Vec<&str> = handles.iter().map(|handle| &handle[..12]).collect();
    let all = t.get("/api/apps/desk/runs").await;
    for handle in &handles {
        assert!(!all.text().contains(&handle[..13]), "the whole handle would give access to the run");
    }
    assert!(!all.text().contains("a secret"), "{}", all.text());
    let all = all.value();
    assert_eq!((prefixes(&all), &all["next_cursor"]), (expected.clone(), &Value::Null));
    let shown =
        |run: &Value| format!("{} {} {}", run["binding"], run["state"], run["error"]).replace('"', "");
    let shown: Vec<String> = all["data"].as_array().unwrap().iter().map(shown).collect();
    let states = [
        "slow running null",
        "slow cancelled {code:run.cancelled}",
        "late timed_out {code:run.timeout}",
        "fails failed {code:node.failed}",
        "form succeeded null",
    ];
    assert_eq!(shown, states);
    let release = t.get("/api/apps/desk").await.value()["active_release"]["id"].clone();
    let run = &all["data"][4];
    assert_eq!((&run["release_id"], &run["visitor"]), (&release, &json!("anonymous")));
    let record = t.get(&format!("/api/runs/{}", run["id"].as_str().unwrap())).await.value();
    assert_eq!((&run["created_at"], &run["finished_at"]), (&record["created_at"], &record["finished_at"]));
    assert_eq!(all["data"][0]["finished_at"], Value::Null);
    for (query, indices) in [
        ("?state=running", &[0][..]),
        ("?state=queued,running", &[0]),
        ("?state=failed,timed_out", &[2, 3]),
        ("?state=succeeded", &[4]),
        ("?state=queued", &[]),
        ("?binding=slow", &[0, 1]),
        ("?binding=slow&state=cancelled", &[1]),
        ("?binding=other", &[]),
    ] {
        let expected: Vec<&str> = indices.iter().map(|indices| expected[*indices]).collect();
        assert_eq!(prefixes(&list(&t, query).await), expected, "{query}");
    }
    let by_id = t.get(&format!("/api/apps/{}/runs", app.id)).await.value();
    assert_eq!(by_id, all);
    let other = t.app("other").publish().await;
    assert_eq!(t.get(&other.path("/runs")).await.value()["data"], json!([]));
    let running = all["data"][0]["id"].as_str().unwrap();
    assert_eq!(t.post(&format!("/api/runs/{running}/cancel"), "").await.status, 200);
}

#[tokio::test]
async fn app_runs_are_listed_in_pages_and_invalid_queries_are_rejected() {
    let t = TestService::start().await;
    let app = desk(&t).await;
    let mut all = Vec::new();
    for number in 0..5 {
        let handle = app.handle("form", &number.to_string(), &json!({"text": "a"})).await;
        app.ended(&handle).await;
        all.insert(0, handle[..12].to_owned());
    }
    for filter in ["", "&binding=form", "&state=succeeded"] {
        let (mut seen, mut query) = (Vec::new(), format!("?limit=2{filter}"));
        loop {
            let page = list(&t, &query).await;
            seen.extend(prefixes(&page).into_iter().map(str::to_owned));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            query = format!("?limit=2{filter}&cursor={cursor}");
        }
        assert_eq!(seen, all, "{filter}");
    }
    for (query, problems) in [
        ("state=waiting", &["/state choice"][..]),
        ("state=", &["/state choice"]),
        ("state=failed,", &["/state choice"]),
        ("binding=", &["/binding format"]),
        ("binding=Form", &["/binding format"]),
        ("binding=%00", &["/binding format"]),
        ("limit=0", &["/limit range"]),
        ("limit=201", &["/limit range"]),
        ("cursor=72756e733a31", &["/cursor format"]),
        ("status=failed&state=done", &["/state choice", "/status unknown_parameter"]),
    ] {
        let refused = t.get(&format!("/api/apps/desk/runs?{query}")).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{query}");
        assert_eq!(refused.problems(), problems, "{query}");
    }
    assert_eq!(t.get("/api/apps/nothing/runs").await.refusal(), "404 app_not_found");
    let posted = t.post("/api/apps/desk/runs", "").await;
    assert_eq!(posted.refusal(), "405 request.method_not_allowed");
    t.as_publisher("DELETE", "/api/apps/desk", "").await;
    assert_eq!(t.get("/api/apps/desk/runs").await.refusal(), "404 app_not_found");
}
