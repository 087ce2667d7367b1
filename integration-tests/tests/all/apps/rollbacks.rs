//! Retained data of a release, and concurrent changes to an app.

use integration_tests::{AnswerExt, JSON, TestService, graphs};
use serde_json::{Value, json};

use super::{ZIP, upload};

fn binding(workflow: &str) -> Value {
    json!({"bindings": {"ask": {"workflow": workflow, "version": 1, "access_mode": "anonymous"}}})
}

#[tokio::test]
async fn a_rollback_restores_frozen_bindings_even_of_an_archived_workflow() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Echo").create().await;
    let building = t.app("desk").manifest(&binding(&workflow.handle));
    let app = building.create().await;
    let first = app.deploy(&t, building.bundle()).await;
    let one = app.publish(&t, &first).await;
    let second = app.deploy(&t, t.app("desk").bundle()).await;
    let two = app.publish(&t, &second).await;
    assert_eq!((&two["number"], &two["bindings"]), (&json!(2), &json!({})));
    let archived = t.anonymous().send("DELETE", &workflow.path(""), &[], "").await;
    assert!(archived.unwrap().is_success());
    let at = app.path(&format!("/deployments/{first}"));
    for answer in [t.get(&format!("{at}/permissions")).await, t.post(&format!("{at}/publish"), "").await] {
        assert_eq!(answer.refusal(), "422 workflow_preflight_failed");
    }
    assert_eq!(t.get(&at).await.value()["permissions"], Value::Null);
    let headers = [JSON, ("idempotency-key", "one")];
    let body = json!({"release": one["id"]}).to_string();
    let back = t.send("POST", &app.path("/rollback"), &headers, &body).await.expect(201);
    let again = t.send("POST", &app.path("/rollback"), &headers, &body).await;
    assert_eq!(again.text(), back.text());
    let back = back.value();
    assert_eq!((&back["number"], &back["source_release_id"]), (&json!(3), &one["id"]));
    for same in ["bindings", "collections", "deployment_id", "permission_revision"] {
        assert_eq!(back[same], one[same], "{same}");
    }
    let page = t.get(&app.path("/releases?limit=2")).await.value();
    let listed = |page: &Value| -> Vec<(i64, bool)> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| (row["number"].as_i64().unwrap(), row["active"].as_bool().unwrap())).collect()
    };
    assert_eq!(listed(&page), [(3, true), (2, false)]);
    let next = page["next_cursor"].as_str().unwrap();
    let page = t.get(&app.path(&format!("/releases?limit=2&cursor={next}"))).await.value();
    assert_eq!((listed(&page), &page["next_cursor"]), (vec![(1, false)], &Value::Null));
    for (body, code) in [
        (json!({"release": "1"}), "404 release_not_found"),
        (json!({"release": first}), "404 release_not_found"),
        (json!({}), "422 request.invalid"),
    ] {
        assert_eq!(t.post(&app.path("/rollback"), &body.to_string()).await.refusal(), code, "{body}");
    }
    let release = app.path(&format!("/releases/{}", one["id"].as_str().unwrap()));
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        let answer = t.send(method, &release, &[], "").await;
        assert_eq!(answer.refusal(), "405 request.method_not_allowed", "{method}");
    }
    let other = t.app("other").create().await;
    let foreign = other.path(&format!("/releases/{}", one["id"].as_str().unwrap()));
    assert_eq!(t.get(&foreign).await.refusal(), "404 release_not_found");
    let foreign = other.path(&format!("/deployments/{first}/publish"));
    assert_eq!(t.post(&foreign, "").await.refusal(), "404 deployment_not_found");
    // A deployment without its bytes cannot be served.
    t.execute("UPDATE app_deployments SET available = false").await;
    let stale = t.post(&app.path(&format!("/deployments/{second}/publish")), "").await;
    assert_eq!(stale.refusal(), "409 deployment_stale");
    let stale = t.post(&app.path("/rollback"), &json!({"release": two["id"]}).to_string()).await;
    assert_eq!(stale.refusal(), "409 deployment_stale");
    let actions = "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log
        WHERE action IN ('app.permissions_acknowledged', 'app.published', 'app.rolled_back')";
    assert_eq!(
        t.scalar(actions).await,
        "app.permissions_acknowledged app.published app.permissions_acknowledged app.published app.rolled_back"
    );
    t.as_publisher("DELETE", &app.path(""), "").await;
    assert_eq!(t.get(&app.path("/releases")).await.refusal(), "404 app_not_found");
}

#[tokio::test]
async fn publishing_fails_when_a_workflow_is_archived_before_the_commit() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Echo").create().await;
    let building = t.app("desk").manifest(&binding(&workflow.handle));
    let app = building.create().await;
    let deployment = app.deploy(&t, building.bundle()).await;
    app.acknowledge(&t, &deployment).await;
    let held = t.hold("SELECT 1 FROM apps FOR UPDATE").await;
    let publish = app.path(&format!("/deployments/{deployment}/publish"));
    let (refused, ()) = tokio::join!(t.post(&publish, ""), async {
        // The workflows were read, and the app is locked.
        t.waiting_for_locks(1).await;
        assert!(t.anonymous().send("DELETE", &workflow.path(""), &[], "").await.unwrap().is_success());
        held.release().await;
    });
    assert_eq!(refused.refusal(), "422 workflow_preflight_failed", "{}", refused.text());
    assert_eq!(t.scalar("SELECT count(*) FROM app_releases").await, "0");
}

#[tokio::test]
async fn concurrent_publishes_create_two_releases_in_order() {
    let t = TestService::start().await;
    let app = t.app("desk").create().await;
    let deployment = app.deploy(&t, t.app("desk").bundle()).await;
    app.acknowledge(&t, &deployment).await;
    let publish = app.path(&format!("/deployments/{deployment}/publish"));
    let held = t.hold("SELECT 1 FROM apps FOR UPDATE").await;
    let (one, two, ()) = tokio::join!(t.post(&publish, ""), t.post(&publish, ""), async {
        t.waiting_for_locks(2).await;
        held.release().await;
    });
    assert_eq!((one.status, two.status), (201, 201), "{} {}", one.text(), two.text());
    let mut numbers = [&one, &two].map(|answer| answer.value()["number"].as_i64().unwrap());
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(t.get(&app.path("")).await.value()["active_release"]["number"], 2);
}

#[tokio::test]
async fn manifest_collections_are_created_once_and_keep_their_ids() {
    let t = TestService::start().await;
    let collection = |kind: &str, member: &[&str]| json!({"collections": {"notes": {"kind": kind, "capabilities": {"anonymous": [], "member": member}}}});
    let app = t.app("desk").create().await;
    let deploy = async |manifest: &Value| app.deploy(&t, t.app("desk").manifest(manifest).bundle()).await;
    let first = deploy(&collection("user", &["read"])).await;
    let one = app.publish(&t, &first).await;
    let id = one["collections"]["notes"]["id"].clone();
    let listed = t.get(&app.path("/collections")).await.value();
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["kind"]), (&id, &json!("user")));
    let second = deploy(&collection("user", &["read", "create"])).await;
    let two = app.publish(&t, &second).await;
    assert_eq!(two["collections"]["notes"]["id"], id);
    let member = |value: &Value| value["capabilities"]["member"].clone();
    assert_eq!(member(&two["collections"]["notes"]), json!(["read", "create"]));
    let listed = t.get(&app.path("/collections")).await.value();
    assert_eq!(member(&listed["data"][0]), json!(["read", "create"]));
    let other = deploy(&collection("shared", &["read"])).await;
    app.acknowledge(&t, &other).await;
    let other = app.path(&format!("/deployments/{other}/publish"));
    assert_eq!(t.post(&other, "").await.refusal(), "409 collection_taken");
    t.as_publisher("DELETE", &app.path("/collections/notes"), "").await;
    let new = t.post(&other, "").await.expect(201);
    assert_ne!(new.value()["collections"]["notes"]["id"], id);
    // The 33rd collection.
    for number in 1..32 {
        let body = json!({"name": format!("c{number}"), "kind": "shared", "capabilities": {"anonymous": [], "member": []}});
        assert_eq!(t.post(&app.path("/collections"), &body.to_string()).await.status, 201);
    }
    let body = json!({"name": "c32", "kind": "shared", "capabilities": {"anonymous": [], "member": []}});
    let full = t.post(&app.path("/collections"), &body.to_string()).await;
    assert_eq!(full.refusal(), "422 manifest_invalid");
    assert_eq!(full.value()["detail"]["findings"][0]["detail"], "An app has at most 32 collections.");
    let more =
        json!({"collections": {"more": {"kind": "shared", "capabilities": {"anonymous": [], "member": []}}}});
    let more = deploy(&more).await;
    app.acknowledge(&t, &more).await;
    let more = t.post(&app.path(&format!("/deployments/{more}/publish")), "").await;
    assert_eq!(more.refusal(), "422 manifest_invalid");
}

#[tokio::test]
async fn the_apps_current_bindings_apply_without_a_manifest() {
    let t = TestService::start().await;
    let get = json!({"name": "get", "type": "http_request", "url": "https://example.org"});
    let inner = t.workflow().named("Inner").graph(graphs::chain(&[get], None)).create().await;
    let sub = json!({"name": "sub", "type": "sub_workflow", "workflow": inner.handle, "version": 1});
    let outer = t.workflow().named("Outer").graph(graphs::chain(&[sub], None)).create().await;
    let app = t.app("desk").create().await;
    let deployment = app.deploy(&t, t.app("desk").bundle()).await;
    let set = json!({"workflow": outer.handle, "version": 1, "access_mode": "anonymous"}).to_string();
    assert_eq!(t.as_publisher("PUT", &app.path("/bindings/ask"), set).await.status, 201);
    let one = app.publish(&t, &deployment).await;
    let include = &one["bindings"]["ask"]["includes"][0];
    assert_eq!((&include["workflow_id"], &include["version"]), (&json!(inner.id), &json!(1)));
    let read = t.get(&app.path(&format!("/deployments/{deployment}/permissions"))).await.value();
    assert_eq!(
        read["permissions"]["bindings"]["ask"]["outbound"],
        json!([{"workflow_id": inner.id, "version": 1, "node": "get", "type": "http_request"}])
    );
    // Draft changes do not affect published releases.
    t.as_publisher("DELETE", &app.path("/bindings/ask"), "").await;
    let shown = t.get(&app.path(&format!("/releases/{}", one["id"].as_str().unwrap()))).await.value();
    assert_eq!(shown["bindings"], one["bindings"]);
    let read = t.get(&app.path(&format!("/deployments/{deployment}/permissions"))).await.value();
    assert_eq!((&read["permissions"]["bindings"], &read["acknowledged"]), (&json!({}), &json!(false)));
    assert_eq!(read["changes"][0]["path"], "/bindings/ask");
    // Bindings and collections together have the limits of a manifest.
    let long = "x".repeat(60_000);
    for number in 0..5 {
        let binding = json!({"workflow": outer.handle, "version": 1, "access_mode": "anonymous", "input_schema": {"description": long}});
        let path = app.path(&format!("/bindings/b{number}"));
        assert_eq!(t.as_publisher("PUT", &path, binding.to_string()).await.status, 201);
    }
    let refused = upload(&t, "desk", &[ZIP], &t.app("desk").bundle()).await;
    assert_eq!(refused.refusal(), "422 manifest_invalid", "{}", refused.text());
    assert_eq!(refused.value()["detail"]["findings"][0]["path"], "bindings");
}

#[tokio::test]
async fn a_repeated_upload_to_a_deleted_app_is_replayed() {
    let t = TestService::start().await;
    let app = t.app("desk").create().await;
    let keyed = [ZIP, ("idempotency-key", "one")];
    let bundle = t.app("desk").bundle();
    let first = upload(&t, "desk", &keyed, &bundle).await.expect(201);
    t.as_publisher("DELETE", &app.path(""), "").await;
    let again = upload(&t, "desk", &keyed, &bundle).await;
    assert_eq!((again.status, again.text()), (201, first.text()));
    let other = t.app("desk").file("a.txt", "a").bundle();
    assert_eq!(upload(&t, "desk", &keyed, &other).await.refusal(), "422 idempotency.key_reused");
    let unkeyed = upload(&t, "desk", &[ZIP], &bundle).await;
    assert_eq!(unkeyed.refusal(), "404 app_not_found");
    let audited = "SELECT count(*) FROM audit_log WHERE action = 'app.deployed' AND outcome = 'success'";
    assert_eq!(t.scalar(audited).await, "1");
}

#[tokio::test]
async fn publishing_requires_the_workspace_and_the_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    assert_eq!(t.root().post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let app = t.app("desk").publish().await;
    let release = t.root().get(&app.path("")).await.value()["active_release"].clone();
    let at = app.path(&format!("/deployments/{}", release["deployment_id"].as_str().unwrap()));
    let body = json!({});
    let paths = [format!("{at}/acknowledge"), format!("{at}/publish"), app.path("/rollback")];
    let foreign = t.root().token(&["apps:read", "apps:write", "apps:publish"], &["other"]).await;
    let foreign = t.bearer(&foreign);
    let writes = t.root().token(&["apps:read", "apps:write"], &["default"]).await;
    let writes = t.bearer(&writes);
    for path in &paths {
        assert_eq!(foreign.post(path, &body).await.refusal(), "403 auth.workspace_forbidden", "{path}");
        assert_eq!(writes.post(path, &body).await.refusal(), "403 auth.missing_scope", "{path}");
    }
    for rest in ["/deployments", "/bindings", "/collections", "/releases", "/runs"] {
        assert_eq!(foreign.get(&app.path(rest)).await.refusal(), "403 auth.workspace_forbidden", "{rest}");
    }
    let collection = json!({"name": "a", "kind": "shared", "capabilities": {"anonymous": [], "member": []}});
    assert_eq!(
        foreign.post(&app.path("/collections"), &collection).await.refusal(),
        "403 auth.workspace_forbidden"
    );
    assert_eq!(t.scalar("SELECT count(*) FROM app_releases").await, "1");
}
