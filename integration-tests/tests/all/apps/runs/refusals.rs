//! The reasons for rejecting a start, and their order.

use integration_tests::{AnswerExt, JSON, TestService, until};
use serde_json::json;

use super::{Published, answers, frozen, runs};

/// Request headers: names and values.
type Headers<'a> = &'a [(&'a str, &'a str)];

#[tokio::test]
async fn every_rejection_has_its_code() {
    let t = TestService::start().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let open = frozen(&t, answers(), json!({"input_schema": schema})).await;
    let closed = frozen(&t, answers(), json!({"access_mode": "authenticated"})).await;
    let app = Published::new(&t, "notes", &[("form", open), ("mine", closed)]).await;
    let origin = app.origin();
    let good: Vec<(&str, &str)> = vec![JSON, ("origin", &origin), ("idempotency-key", "k")];
    let without = |name: &str| good.iter().filter(|(header, _)| *header != name).copied().collect::<Vec<_>>();
    let with = |name: &'static str, value: &'static str| {
        let mut headers = without(name);
        headers.push((name, value));
        headers
    };
    let long = "k".repeat(256);
    let mut long_key = without("idempotency-key");
    long_key.push(("idempotency-key", &long));
    let mut two_keys = good.clone();
    two_keys.push(("idempotency-key", "k"));
    let deep = format!("{{\"text\":{}1{}}}", "[".repeat(128), "]".repeat(128));
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(65_536));
    let ok = r#"{"text":"you"}"#;
    let key = "idempotency-key";
    for (binding, headers, body, expected) in [
        ("other", good.clone(), ok, "404 not_found"),
        ("form%2F", good.clone(), ok, "404 not_found"),
        ("%FF", good.clone(), ok, "400 bad_request"),
        ("form", with("origin", "https://evil.example"), ok, "403 origin_mismatch"),
        ("form", without("origin"), ok, "403 origin_mismatch"),
        ("form", with("sec-fetch-site", "cross-site"), ok, "403 origin_mismatch"),
        ("form", with("sec-fetch-site", "same-site"), ok, "403 origin_mismatch"),
        ("form", with("sec-fetch-site", "none"), ok, "403 origin_mismatch"),
        ("mine", good.clone(), ok, "401 login_required"),
        ("form", without(key), ok, "400 idempotency_key_required"),
        ("form", with(key, ""), ok, "400 idempotency_key_invalid"),
        ("form", with(key, "\"\""), ok, "400 idempotency_key_invalid"),
        ("form", with(key, "a b"), ok, "400 idempotency_key_invalid"),
        ("form", with(key, "k\u{e4}"), ok, "400 idempotency_key_invalid"),
        ("form", long_key, ok, "400 idempotency_key_invalid"),
        ("form", two_keys, ok, "400 idempotency_key_invalid"),
        ("form", good.clone(), large.as_str(), "413 input_too_large"),
        ("form", without("content-type"), ok, "415 unsupported_media_type"),
        ("form", with("content-type", "text/plain"), ok, "415 unsupported_media_type"),
        ("form", good.clone(), "{", "400 invalid_json"),
        ("form", good.clone(), deep.as_str(), "400 invalid_json"),
        ("form", good.clone(), r#"{"text":"\ud800"}"#, "400 invalid_json"),
        ("form", good.clone(), r#"{"text":"a","text":"b"}"#, "400 invalid_json"),
        ("form", good.clone(), r#"{"text":"a","more":[{"b":1,"b":1}]}"#, "400 invalid_json"),
        ("form", good.clone(), r#"["text"]"#, "422 input_invalid"),
        ("form", good.clone(), r#""text""#, "422 input_invalid"),
        ("form", good.clone(), r#"{"text":1}"#, "422 input_invalid"),
    ] {
        let answer = app.send("POST", &runs(binding), &headers, body).await;
        assert_eq!(answer.refusal(), expected, "{binding} {headers:?} {}", body.len());
        assert_eq!(answer.header("set-cookie"), None);
    }
    let answer = app.send("POST", &runs("form"), &good, r#"{"text":1}"#).await;
    assert_eq!(answer.problems(), ["/text schema"]);
    for (method, path, allowed) in [
        ("GET", runs("form"), "POST"),
        ("POST", "/__service/config".to_owned(), "GET, HEAD"),
        ("DELETE", "/__service/runs/run_x".to_owned(), "GET, HEAD"),
        ("POST", "/__service/runs/run_x/events".to_owned(), "GET"),
        ("OPTIONS", runs("form"), "POST"),
    ] {
        let answer = app.send(method, &path, &[("origin", &origin)], "").await;
        assert_eq!(answer.refusal(), "405 method_not_allowed", "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(app.count().await, "0");
    // A rejection leaves the key free.
    assert_eq!(app.send("POST", &runs("form"), &good, ok).await.status, 202);
}

#[tokio::test]
async fn the_first_of_several_rejections_is_returned() {
    let t = TestService::start().await;
    let schema = json!({"required": ["text"]});
    let open =
        frozen(&t, answers(), json!({"input_schema": schema, "limits": {"per_visitor_per_minute": 1}})).await;
    let closed = frozen(&t, answers(), json!({"access_mode": "authenticated"})).await;
    let app = Published::new(&t, "notes", &[("form", open), ("mine", closed)]).await;
    let origin = app.origin();
    let (origin, key) = (("origin", origin.as_str()), ("idempotency-key", "k"));
    let large = "x".repeat(65_537);
    let all: [(&str, Headers<'_>, &str, &str); 8] = [
        ("other", &[], &large, "403 origin_mismatch"),
        ("other", &[origin], &large, "404 not_found"),
        ("mine", &[origin], &large, "401 login_required"),
        ("form", &[origin], &large, "400 idempotency_key_required"),
        ("form", &[origin, key], &large, "413 input_too_large"),
        ("form", &[origin, key], "{", "415 unsupported_media_type"),
        ("form", &[origin, key, JSON], "{", "400 invalid_json"),
        ("form", &[origin, key, JSON], "[]", "422 input_invalid"),
    ];
    for (binding, headers, body, expected) in all {
        assert_eq!(app.send("POST", &runs(binding), headers, body).await.refusal(), expected);
    }
    // Invalid input counts for the minute only; the rate is checked before the schema, and a known key before the rate.
    assert_eq!(app.start("form", "k", &json!({})).await.refusal(), "422 input_invalid");
    assert_eq!(app.start("form", "k", &json!({})).await.refusal(), "429 rate_limited");
    t.execute("DELETE FROM app_limits").await;
    assert_eq!(app.start("form", "k", &json!({"text": "a"})).await.status, 202);
    assert_eq!(app.start("form", "k", &json!({"text": "a"})).await.status, 202);
    assert_eq!(app.start("form", "k", &json!({"text": "b"})).await.refusal(), "422 idempotency_key_reused");
    assert_eq!(app.start("form", "l", &json!({"text": "b"})).await.refusal(), "429 rate_limited");
}

#[tokio::test]
async fn a_full_workspace_starts_no_new_runs() {
    let mut t = TestService::builder().set("SERVICE_WORKSPACE_STORAGE_BYTES", "1048576").start().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let original = app.handle("form", "k", &json!({"text": "a"})).await;
    app.ended(&original).await;
    let id = app.id.clone();
    let usage = "INSERT INTO workspace_usage (workspace_id, bytes, bytes_before, measured_at) SELECT workspace_id, 1073741824, 1073741824, now() \
                 FROM apps ON CONFLICT (workspace_id) DO UPDATE SET bytes = excluded.bytes, bytes_before = excluded.bytes_before, measured_at = excluded.measured_at";
    t.execute(usage).await;
    t.restart().await;
    let app = Published::existing(&t, "notes", id);
    let full = async || app.start("form", "new", &json!({"text": "a"})).await.refusal() == "507 storage_full";
    until("the workspace is full", full).await;
    // Known keys are replayed, and reads continue.
    assert_eq!(app.handle("form", "k", &json!({"text": "a"})).await, original);
    assert_eq!(app.read(&original).await["state"], "succeeded");
}
