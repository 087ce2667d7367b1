//! Access to records: capabilities, apps, origins, and row-level security in the database.

use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::json;

use super::{Site, etag, open};

#[tokio::test]
async fn visitors_have_the_capabilities_of_the_release() {
    let t = TestService::start().await;
    let collections = json!({
        "reads": {"kind": "shared", "anonymous": ["read"], "member": ["read", "create"]},
        "mine": {"kind": "user", "anonymous": [], "member": ["read", "create"]},
        "none": {"kind": "shared", "anonymous": [], "member": []},
    });
    let site = Site::publish(&t, "notes", &collections).await;
    let path = |collection: &str| format!("{collection}/018f0000-0000-7000-8000-000000000000");
    let body = json!({"data": {}});
    assert_eq!(site.get("reads").await.status, 200);
    assert_eq!(site.get(&path("reads")).await.refusal(), "404 not_found");
    assert_eq!(site.create("reads", &json!({})).await.refusal(), "401 login_required");
    assert_eq!(site.put(&path("reads"), &[], &body).await.refusal(), "403 forbidden");
    assert_eq!(site.patch(&path("reads"), &[], &body).await.refusal(), "403 forbidden");
    assert_eq!(site.delete(&path("reads"), &[]).await.refusal(), "403 forbidden");
    assert_eq!(site.get("mine").await.refusal(), "401 login_required");
    assert_eq!(site.create("mine", &json!({})).await.refusal(), "401 login_required");
    assert_eq!(site.delete(&path("mine"), &[]).await.refusal(), "403 forbidden");
    assert_eq!(site.get("none").await.refusal(), "403 forbidden");
    for missing in ["other", "Reads", "reads%2f", "..", "a'b"] {
        assert_eq!(site.get(missing).await.refusal(), "404 not_found", "{missing}");
    }
    for bad in ["%FF", "reads/%FF", "reads/%zz", "%C3", "reads%2"] {
        assert_eq!(site.get(bad).await.refusal(), "400 bad_request", "{bad}");
    }
    assert_eq!(site.delete("reads/%FF", &[]).await.refusal(), "400 bad_request");
    // Capabilities are checked before the key and the body.
    let bad = site.send("POST", "/__service/data/reads", &[("idempotency-key", "")], "{").await;
    assert_eq!(bad.refusal(), "401 login_required");
}

#[tokio::test]
async fn visitors_without_read_access_receive_no_stored_data() {
    let t = TestService::start().await;
    let writes = json!({"kind": "shared", "anonymous": ["create", "update"], "member": ["read"]});
    let site = Site::publish(&t, "notes", &json!({"box": writes, "likes": open()})).await;
    let made = site.create("box", &json!({"secret": "s3cret", "n": 1})).await;
    assert_eq!((made.status, made.value()["data"].clone()), (201, json!({"secret": "s3cret", "n": 1})));
    let path = format!("box/{}", made.value()["id"].as_str().unwrap());
    assert_eq!(site.get(&path).await.refusal(), "401 login_required");
    for patch in [json!({}), json!({"n": 2})] {
        let merged = site.patch(&path, &[("if-match", "*")], &patch).await;
        assert_eq!(merged.status, 200, "{}", merged.text());
        assert_eq!(etag(&merged), format!("\"v{}\"", merged.value()["version"]));
        let mut members: Vec<_> = merged.value().as_object().unwrap().keys().cloned().collect();
        members.sort();
        assert_eq!(members, ["created_at", "id", "updated_at", "version"]);
        assert!(!merged.text().contains("s3cret"), "{}", merged.text());
    }
    let stored = t.scalar("SELECT data FROM app_records").await;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&stored).unwrap(),
        json!({"secret": "s3cret", "n": 2})
    );
    // A replacement contains all data.
    let replaced = site.put(&path, &[("if-match", "*")], &json!({"data": {"n": 3}})).await;
    assert_eq!((replaced.status, replaced.value()["data"].clone()), (200, json!({"n": 3})));
    let readable = site.create_path("likes", &json!({"a": 1})).await;
    let merged = site.patch(&readable, &[("if-match", "*")], &json!({"b": 2})).await;
    assert_eq!(merged.value()["data"], json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn only_pages_of_the_app_can_change_its_records() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let far = Site::publish(&t, "far", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    // The same collection name in another app.
    assert_eq!(far.get(&path).await.refusal(), "404 not_found");
    assert_eq!(far.put(&path, &[("if-match", "*")], &json!({"data": {}})).await.refusal(), "404 not_found");
    assert_eq!(far.delete(&path, &[("if-match", "*")]).await.refusal(), "404 not_found");
    assert_eq!(far.get("likes").await.value()["items"], json!([]));
    for origin in ["http://far.apps.localhost", "null", "https://notes.apps.localhost"] {
        let headers = [("host", "notes.apps.localhost"), ("origin", origin), JSON];
        let raw = t.raw().await;
        let mut response = raw.request("POST", "/__service/data/likes", &headers, r#"{"data": {}}"#).await;
        assert_eq!(response.status, 403, "{origin}");
        assert!(response.rest().await.contains("origin_mismatch"));
    }
    assert_eq!(t.scalar("SELECT count(*) FROM app_records").await, "1");
    // The central host serves no records.
    assert_eq!(t.get("/__service/data/likes").await.status, 404);
}

#[tokio::test]
async fn records_of_a_deleted_app_are_erased() {
    let mut t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    site.create_path("likes", &json!({"n": 1})).await;
    let path = site.create_path("likes", &json!({"n": 2})).await;
    assert_eq!(site.delete(&path, &[("if-match", "*")]).await.status, 204);
    let far = Site::publish(&t, "far", &json!({"likes": open()})).await;
    far.create_path("likes", &json!({"n": 3})).await;
    assert_eq!(t.anonymous().send("DELETE", "/api/apps/notes", &[], "").await.unwrap().status, 204);
    t.restart().await;
    integration_tests::until("its records are erased", async || {
        t.scalar("SELECT string_agg(data, ',') FROM app_records").await == r#"{"n":3}"#
    })
    .await;
    let left = "SELECT count(*) FROM app_collections WHERE app_id IN (SELECT id FROM apps WHERE deleted_at IS NOT NULL)";
    t.until_scalar("its collections are deleted", left, "0").await;
}
