//! Idempotency keys: the same request starts one run, whichever client repeats it.

use integration_tests::{AnswerExt, TestService};
use serde_json::json;

use super::{Published, answers, cookie, frozen, handle, slow};

#[tokio::test]
async fn the_same_request_has_the_same_handle() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding.clone()), ("other", binding)]).await;
    let first = app.start("form", "k", &json!({"text": "a", "n": 1})).await;
    let original = handle(&first);
    assert_eq!(first.value(), json!({"handle": original, "state": "queued"}));
    assert_eq!(first.header("location"), Some(format!("/__service/runs/{original}").as_str()));
    assert_eq!(first.header("idempotency-replayed"), None);
    app.ended(&original).await;
    // Another spelling of the same JSON, and of the key.
    for (key, body) in [("k", r#"{"n":1.0,"text":"\u0061"}"#), ("\"k\"", r#"{"text":"a","n":1}"#)] {
        let again = app.start_with("form", key, &[], body).await;
        assert_eq!(again.value(), json!({"handle": original, "state": "succeeded"}));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.header("set-cookie"), None, "found by the network address only");
    }
    assert_eq!(app.start("form", "k", &json!({"text": "b"})).await.refusal(), "422 idempotency_key_reused");
    assert_ne!(app.handle("other", "k", &json!({"text": "a", "n": 1})).await, original);
    assert_eq!(app.count().await, "2");
}

#[tokio::test]
async fn keys_are_scoped_to_their_visitor() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let body = r#"{"text":"a"}"#;
    let first = app.start_with("form", "k", &[], body).await;
    let (original, visitor) = (handle(&first), cookie(&first).unwrap());
    // With the cookie from the start, and without any.
    assert_eq!(handle(&app.start_with("form", "k", &[("cookie", &visitor)], body).await), original);
    assert_eq!(handle(&app.start_with("form", "k", &[], body).await), original);
    app.ended(&original).await;
    let other = cookie(&app.get("/__service/config").await).unwrap();
    let of_other = app.start_with("form", "k", &[("cookie", &other)], body).await;
    assert_ne!(handle(&of_other), original);
    assert_eq!(of_other.header("set-cookie"), None, "a visitor with a cookie keeps it");
    // A forged cookie counts as none: the network identifies the client.
    assert_eq!(
        handle(&app.start_with("form", "k", &[("cookie", "__Host-svc_anon=x")], body).await),
        original
    );
    assert_eq!(app.count().await, "2");
}

#[tokio::test]
async fn a_key_stays_valid_after_another_release() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding.clone())]).await;
    let original = app.handle("form", "k", &json!({"text": "a"})).await;
    app.ended(&original).await;
    let mut later = binding;
    later["output_projection"] = json!({"fields": []});
    app.release(2, &[("form", later)]).await;
    assert_eq!(app.handle("form", "k", &json!({"text": "a"})).await, original);
    // The run is shown according to its own release.
    assert_eq!(app.read(&original).await["output"], json!({"answer": "hello a"}));
    let new = app.handle("form", "l", &json!({"text": "a"})).await;
    assert_eq!(app.ended(&new).await["output"], json!({}));
}

#[tokio::test]
async fn concurrent_equal_requests_start_one_run() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_CONCURRENT", "1").start().await;
    let binding = frozen(&t, slow(3.0), json!({"limits": {"per_visitor_per_minute": 1}})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let input = json!({});
    let all = futures_util::future::join_all((0..16).map(|_| app.start("form", "k", &input))).await;
    let handles: Vec<String> = all.iter().map(handle).collect();
    assert!(handles.iter().all(|other| *other == handles[0]), "{handles:?}");
    let replayed = all.iter().filter(|answer| answer.header("idempotency-replayed").is_some()).count();
    assert_eq!(replayed, 15);
    assert_eq!(app.count().await, "1");
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE trigger = 'app'").await, "1");
}

#[tokio::test]
async fn a_retry_starts_a_run_that_a_killed_process_only_reserved() {
    let t = TestService::start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let original = app.handle("form", "k", &json!({"text": "a"})).await;
    app.ended(&original).await;
    t.settled().await;
    // The key is the only row that the killed process has left.
    t.execute("DELETE FROM stream_events; DELETE FROM streams; DELETE FROM run_steps; DELETE FROM runs; DELETE FROM app_runs").await;
    assert_eq!(app.get(&format!("/__service/runs/{original}")).await.refusal(), "404 not_found");
    assert_eq!(app.handle("form", "k", &json!({"text": "a"})).await, original);
    assert_eq!(app.ended(&original).await["output"], json!({"answer": "hello a"}));
    assert_eq!(app.count().await, "1");
}
