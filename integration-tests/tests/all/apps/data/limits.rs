//! The limits of a record, a collection, a workspace and a visitor.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, TestService, until};
use serde_json::{Value, json};

use super::{PATCH, Site, open};

fn sized(bytes: usize) -> Value {
    json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())})
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn records_are_limited_to_64_kib_and_32_levels_without_nul() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &sized(65_536)).await;
    assert_eq!(site.create("likes", &sized(65_537)).await.refusal(), "413 record_too_large");
    assert_eq!(site.create("likes", &sized(200_000)).await.refusal(), "413 record_too_large");
    assert_eq!(site.create("likes", &nested(32)).await.status, 201);
    let any = [("if-match", "*")];
    for (bad, problem) in [
        (nested(33), "/data depth"),
        (json!({"a": "x\0"}), "/data nul"),
        (json!({"a\0": 1}), "/data nul"),
        (json!([1]), "/data type"),
        (json!(null), "/data type"),
    ] {
        let response = site.create("likes", &bad).await;
        assert_eq!(response.refusal(), "422 record_invalid", "{bad}");
        assert_eq!(response.problems(), [problem]);
        assert_eq!(site.put(&path, &any, &json!({"data": bad})).await.problems(), [problem]);
    }
    // The result of a patch counts, not the patch.
    let more = json!({"b": 1});
    assert_eq!(site.patch(&path, &any, &more).await.refusal(), "413 record_too_large");
    assert_eq!(site.patch(&path, &any, &json!(5)).await.problems(), ["/data type"]);
    let post = async |headers: &[(&str, &str)], body: &str| {
        site.send("POST", "/__service/data/likes", headers, body).await.refusal()
    };
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let surrogate = "{\"data\": {\"a\": \"\\ud800\"}}";
    let repeated = [r#"{"data": {"a": 1, "a": 2}}"#, r#"{"data": {}, "data": {}}"#];
    for bad in ["", "{", surrogate, &deep].into_iter().chain(repeated) {
        assert_eq!(post(&[JSON], bad).await, "400 invalid_json", "{bad:.30}");
    }
    let repeated = r#"{"a": {"b": 1, "b": null}}"#;
    let full = format!("/__service/data/{path}");
    assert_eq!(site.send("PATCH", &full, &[PATCH, any[0]], repeated).await.refusal(), "400 invalid_json");
    for bad in ["[]", "5", "{}", r#"{"data": {}, "id": "x"}"#, r#"{"data": {}, "version": 1}"#] {
        assert_eq!(post(&[JSON], bad).await, "422 record_invalid", "{bad}");
    }
    for kind in [&[][..], &[("content-type", "text/plain")], &[PATCH]] {
        assert_eq!(post(kind, r#"{"data": {}}"#).await, "415 unsupported_media_type");
    }
    let charset = [("content-type", "application/json; charset=utf-8")];
    assert_eq!(post(&charset, r#"{"data": {}}"#).await, "201");
    let full = format!("/__service/data/{path}");
    let wrong = site.send("PATCH", &full, &[JSON, any[0]], r#"{"data": {}}"#).await;
    assert_eq!(wrong.refusal(), "415 unsupported_media_type");
    for version in [json!(0), json!("1"), json!(1.5), json!(null)] {
        let response = site.put(&path, &[], &json!({"data": {}, "version": version})).await;
        assert_eq!(response.problems(), ["/version type"]);
    }
    for (method, path, allowed) in [
        ("PUT", "/__service/data/likes", "GET, HEAD, POST"),
        ("OPTIONS", "/__service/data/likes", "GET, HEAD, POST"),
        ("POST", full.as_str(), "GET, HEAD, PUT, PATCH, DELETE"),
    ] {
        let response = site.send(method, path, &[], "").await;
        assert_eq!(response.refusal(), "405 method_not_allowed");
        assert_eq!(response.header("allow"), Some(allowed));
    }
}

#[tokio::test]
async fn records_follow_the_schema_of_the_release() {
    let t = TestService::start().await;
    let mut collection = open();
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    collection.as_object_mut().unwrap().insert("schema".to_owned(), schema);
    let site = Site::publish(&t, "notes", &json!({"likes": collection})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let any = [("if-match", "*")];
    for response in [
        site.create("likes", &json!({"n": "x"})).await,
        site.put(&path, &any, &json!({"data": {"n": "x"}})).await,
        site.patch(&path, &any, &json!({"n": "x"})).await,
    ] {
        assert_eq!(
            (response.refusal().as_str(), response.problems()),
            ("422 record_invalid", vec!["/data/n schema".to_owned()])
        );
        assert!(!response.text().contains("\"x\""), "the value is not repeated");
    }
    assert_eq!(site.patch(&path, &any, &json!({"n": null})).await.problems(), ["/data schema"]);
    assert_eq!(site.get(&path).await.value()["version"], 1);
}

#[tokio::test]
async fn a_collection_holds_at_most_10_000_records_and_64_mib() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let set = async |records: u64, bytes: u64| {
        t.execute(&format!("UPDATE app_collections SET record_count = {records}, record_bytes = {bytes}"))
            .await;
    };
    let any = [("if-match", "*")];
    set(9_999, 7).await;
    assert_eq!(site.create("likes", &json!({})).await.status, 201);
    assert_eq!(site.create("likes", &json!({})).await.refusal(), "507 collection_full");
    assert_eq!(site.put(&path, &any, &json!({"data": {"n": 10}})).await.status, 200);
    set(2, (64 << 20) - 2).await;
    assert_eq!(site.create("likes", &json!({"n": 1})).await.refusal(), "507 collection_full");
    assert_eq!(site.put(&path, &any, &json!({"data": {"n": 1_000}})).await.status, 200);
    assert_eq!(site.put(&path, &any, &json!({"data": {"n": 10_000}})).await.refusal(), "507 collection_full");
    assert_eq!(site.patch(&path, &any, &json!({"m": 1})).await.refusal(), "507 collection_full");
    assert_eq!(site.put(&path, &any, &json!({"data": {}})).await.status, 200, "a smaller value is accepted");
    assert_eq!(site.delete(&path, &any).await.status, 204);
    let left = "SELECT concat_ws(' ', record_count, record_bytes) FROM app_collections";
    assert_eq!(t.scalar(left).await, format!("1 {}", (64 << 20) - 10));
}

#[tokio::test]
async fn a_full_workspace_rejects_new_records() {
    let mut t = TestService::builder().set("SERVICE_WORKSPACE_STORAGE_BYTES", "300000").start().await;
    t.measured().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    for _ in 0..5 {
        site.create_path("likes", &sized(65_000)).await;
    }
    t.measure().await;
    t.measure().await;
    let site = Site { t: &t, alias: "notes" };
    until("the workspace is full", async || site.create("likes", &json!({})).await.status == 507).await;
    let any = [("if-match", "*")];
    assert_eq!(site.create("likes", &json!({})).await.refusal(), "507 storage_full");
    assert_eq!(site.put(&path, &any, &json!({"data": {}})).await.refusal(), "507 storage_full");
    assert_eq!(site.patch(&path, &any, &json!({})).await.refusal(), "507 storage_full");
    assert_eq!(site.get(&path).await.status, 200);
    assert_eq!(site.delete(&path, &any).await.status, 204);
}

#[tokio::test]
async fn anonymous_writes_per_network_are_limited_with_a_burst() {
    let t = TestService::builder()
        .manual_clock()
        .set("SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE", "6")
        .alone()
        .start()
        .await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let far = Site::publish(&t, "far", &json!({"likes": open()})).await;
    let keyed = async || {
        let headers = [JSON, ("idempotency-key", "k")];
        site.send("POST", "/__service/data/likes", &headers, r#"{"data": {}}"#).await
    };
    assert_eq!(keyed().await.status, 201);
    let path = site.create_path("likes", &json!({})).await;
    assert_eq!(site.put(&path, &[("if-match", "*")], &json!({"data": {}})).await.status, 200);
    assert_eq!(site.patch(&path, &[("if-match", "*")], &json!({"data": {}})).await.status, 200);
    assert_eq!(site.delete(&path, &[]).await.status, 428);
    assert_eq!(site.delete(&path, &[("if-match", "*")]).await.status, 204);
    let refused = site.create("likes", &json!({})).await;
    assert_eq!(refused.refusal(), "429 rate_limited");
    assert_eq!(refused.header("retry-after"), Some("10"));
    // Reads, another app, and the stored outcome of a key.
    assert_eq!(site.get("likes").await.status, 200);
    assert_eq!(far.create("likes", &json!({})).await.status, 201);
    assert_eq!(keyed().await.header("idempotency-replayed"), Some("true"));
    t.advance(Duration::from_secs(10));
    assert_eq!(site.create("likes", &json!({})).await.status, 201);
    assert_eq!(site.create("likes", &json!({})).await.status, 429);
}
