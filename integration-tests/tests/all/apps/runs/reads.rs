//! The data that a handle shows, and to which visitors.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};

use super::{Published, answers, frozen, slow};

#[tokio::test]
async fn a_page_receives_only_the_named_output_of_a_run() {
    let t = TestService::start().await;
    let shown = frozen(&t, answers(), json!({})).await;
    let mut hidden = shown.clone();
    hidden["visitor_can_read_output"] = json!(false);
    let mut small = shown.clone();
    small["limits"] = json!({"output_max_bytes": 20});
    let app = Published::new(&t, "notes", &[("form", shown), ("hidden", hidden), ("small", small)]).await;
    let handle = app.handle("form", "k", &json!({"text": "you"})).await;
    let read = app.ended(&handle).await;
    assert_eq!(read, json!({"handle": handle, "state": "succeeded", "output": {"answer": "hello you"}}));
    let handle = app.handle("hidden", "k", &json!({"text": "you"})).await;
    assert_eq!(app.ended(&handle).await, json!({"handle": handle, "state": "succeeded"}));
    let handle = app.handle("small", "k", &json!({"text": "you"})).await;
    let expected = json!({"handle": handle, "state": "failed", "error": {"code": "output_too_large"}});
    assert_eq!(app.ended(&handle).await, expected);
}

#[tokio::test]
async fn every_outcome_of_a_run_has_its_state() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_CONCURRENT", "0").start().await;
    let fails = graphs::chain(
        &[json!({"name": "no", "type": "assert", "when": "false", "message": "a secret"})],
        None,
    );
    let waits = graphs::chain(&[json!({"name": "wait", "type": "delay", "seconds": 600})], None);
    let failing = frozen(&t, fails, json!({})).await;
    let late = frozen(&t, slow(30.0), json!({"limits": {"timeout_seconds": 1}})).await;
    let stopped = frozen(&t, slow(30.0), json!({})).await;
    let waiting = frozen(&t, waits, json!({"limits": {"timeout_seconds": 2}})).await;
    let all = [("failing", failing), ("late", late), ("stopped", stopped), ("waiting", waiting)];
    let app = Published::new(&t, "notes", &all).await;
    let ended = async |binding: &str| {
        let handle = app.handle(binding, "k", &json!({})).await;
        let mut read = app.ended(&handle).await;
        assert_eq!(read["handle"].take(), json!(handle));
        read
    };
    let expected = |state: &str, code: &str| json!({"handle": null, "state": state, "error": {"code": code}});
    assert_eq!(ended("failing").await, expected("failed", "run_failed"));
    assert_eq!(ended("late").await, expected("timed_out", "timed_out"));
    // A parked run times out, too.
    assert_eq!(ended("waiting").await, expected("timed_out", "timed_out"));
    let handle = app.handle("stopped", "k", &json!({})).await;
    app.running(&handle).await;
    let run = t.scalar("SELECT run_id FROM app_runs WHERE binding = 'stopped'").await;
    assert_eq!(t.post(&format!("/api/runs/{run}/cancel"), "").await.status, 200);
    let mut read = app.ended(&handle).await;
    assert_eq!(read["handle"].take(), json!(handle));
    assert_eq!(read, expected("cancelled", "cancelled"));
}

#[tokio::test]
async fn a_run_is_readable_by_its_own_handle_only() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding.clone())]).await;
    let other = Published::new(&t, "other", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({"text": "a"})).await;
    app.ended(&handle).await;
    let run = t.scalar("SELECT run_id FROM app_runs").await;
    let changed = format!("{}A", &handle[..handle.len() - 2]);
    for unknown in ["x", "run_", &handle[4..], &changed, &run, &handle.to_uppercase()] {
        let answer = app.get(&format!("/__service/runs/{unknown}")).await;
        assert_eq!(answer.refusal(), "404 not_found", "{unknown}");
        let answer = app.get(&format!("/__service/runs/{unknown}/events")).await;
        assert_eq!(answer.refusal(), "404 not_found", "{unknown}");
    }
    assert_eq!(app.get("/__service/runs/%FF").await.refusal(), "400 bad_request");
    let from_other_app = other.get(&format!("/__service/runs/{handle}")).await;
    assert_eq!(from_other_app.refusal(), "404 not_found", "another app");
    // The database alone does not reveal the handle.
    let found = "SELECT count(*) FROM app_runs a WHERE a::text LIKE '%";
    assert_eq!(t.scalar(&format!("{found}{}%'", &handle[4..])).await, "0");
    assert_eq!(
        t.scalar(&format!("SELECT count(*) FROM app_runs WHERE handle = sha256('{handle}')")).await,
        "1"
    );
    // A member's run is not readable for another visitor, even with the handle.
    t.execute("UPDATE app_runs SET user_id = app_id").await;
    assert_eq!(app.get(&format!("/__service/runs/{handle}")).await.refusal(), "404 not_found");
    assert_eq!(app.get(&format!("/__service/runs/{handle}/events")).await.refusal(), "404 not_found");
}

#[tokio::test]
async fn owners_see_the_run_with_its_trigger_and_app() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({"limits": {"timeout_seconds": 7}})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({"text": "a"})).await;
    app.ended(&handle).await;
    let listed = t.get("/api/runs?trigger=app").await.value();
    assert_eq!((&listed["data"][0]["trigger"], &listed["data"][1]), (&json!("app"), &Value::Null));
    let options: Value = serde_json::from_str(&t.scalar("SELECT options FROM runs").await).unwrap();
    assert_eq!(options["timeout_seconds"], json!(7.0));
    assert_eq!(options["app"]["id"], json!(app.id));
    assert_eq!(options["app"].get("member"), None);
}
