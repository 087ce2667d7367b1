//! Concurrent changes to one collection.

use std::cell::Cell;

use futures_util::future::{join, join_all};
use integration_tests::{AnswerExt, TestService, until};
use serde_json::json;

use super::{Site, open};

/// Changes per workspace that have a connection.
const SHARE: usize = 2;
const LOCK: &str =
    "SELECT FROM app_collections c JOIN apps a ON a.id = c.app_id WHERE a.alias = 'busy' FOR UPDATE OF c";

/// An app in another workspace.
async fn site_in_another_workspace(t: &TestService) -> Site<'_> {
    let site = Site::publish(t, "calm", &json!({"likes": open()})).await;
    t.execute(
        "INSERT INTO workspaces (id, slug, name, created_at) VALUES (gen_random_uuid(), 'other', 'Other', now());
         UPDATE apps SET workspace_id = w.id FROM workspaces w WHERE w.slug = 'other' AND alias = 'calm';
         UPDATE app_collections c SET workspace_id = a.workspace_id FROM apps a WHERE a.id = c.app_id",
    )
    .await;
    // Refreshes the instance's copy of the row.
    assert_eq!(site.send("GET", "/__service/config", &[], "").await.status, 200);
    site
}

#[tokio::test]
async fn writers_of_one_collection_leave_connections_for_other_workspaces() {
    let t = TestService::builder().alone().start().await;
    let busy = Site::publish(&t, "busy", &json!({"likes": open()})).await;
    let calm = site_in_another_workspace(&t).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let held = t.hold(LOCK).await;
    let answered = Cell::new(0);
    let writers = join_all((0..200).map(async |n: u32| {
        let response = busy.create("likes", &json!({"n": n})).await;
        answered.set(answered.get() + 1);
        response
    }));
    let meanwhile = async {
        t.waiting_for_locks(SHARE).await;
        assert_eq!(calm.get("likes").await.status, 200);
        assert_eq!(calm.create("likes", &json!({})).await.status, 201);
        // Those without a permit are rejected; the others have their connections, and wait.
        until("198 writers are refused", async || answered.get() == 200 - SHARE).await;
        assert_eq!(t.scalar(waiting).await, SHARE.to_string());
        assert_eq!(calm.get("likes").await.status, 200);
        held.release().await;
    };
    let (responses, ()) = join(writers, meanwhile).await;
    let (stored, refused): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    assert_eq!(stored.len(), SHARE);
    for response in refused {
        assert_eq!(response.refusal(), "503 unavailable");
        assert_eq!(response.header("retry-after"), Some("1"));
    }
    // The permits were returned.
    assert_eq!(busy.create("likes", &json!({})).await.status, 201);
    assert_eq!(t.scalar("SELECT count(*) FROM app_records").await, "4");
}

#[tokio::test]
async fn a_patch_is_validated_before_it_waits_for_its_collection() {
    let t = TestService::start().await;
    let mut collection = open();
    let schema = json!({"properties": {"n": {"type": "integer"}}});
    collection.as_object_mut().unwrap().insert("schema".to_owned(), schema);
    let site = Site::publish(&t, "busy", &json!({"likes": collection})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let held = t.hold(LOCK).await;
    let any = [("if-match", "*")];
    assert_eq!(site.patch(&path, &any, &json!({"n": "x"})).await.refusal(), "422 record_invalid");
    assert_eq!(site.patch(&path, &[], &json!({"n": 2})).await.refusal(), "428 version_required");
    let stale = site.patch(&path, &[("if-match", "\"v2\"")], &json!({"n": 2})).await;
    assert_eq!(stale.refusal(), "412 version_conflict");
    held.release().await;
    assert_eq!(site.patch(&path, &any, &json!({"n": 2})).await.status, 200);
}

#[tokio::test]
async fn a_patch_is_merged_into_the_version_of_a_concurrent_writer() {
    let t = TestService::start().await;
    let mut collection = open();
    let schema = json!({"properties": {"sum": {"maximum": 10}}});
    collection.as_object_mut().unwrap().insert("schema".to_owned(), schema);
    let site = Site::publish(&t, "busy", &json!({"likes": collection})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let change = r#"UPDATE app_records SET version = version + 1, data = '{"n":5}'"#;
    let any = [("if-match", "*")];
    let held = t.hold(&format!("{LOCK}; {change}")).await;
    let (sum, one) = (json!({"sum": 3}), [("if-match", "\"v1\"")]);
    let both = join(site.patch(&path, &any, &sum), site.patch(&path, &one, &sum));
    let ((merged, stale), ()) = join(both, async {
        t.waiting_for_locks(SHARE).await;
        held.release().await;
    })
    .await;
    assert_eq!((merged.status, merged.value()["data"].clone()), (200, json!({"n": 5, "sum": 3})));
    assert_eq!(merged.value()["version"], 3);
    assert_eq!(stale.refusal(), "412 version_conflict");
}
