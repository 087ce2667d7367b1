//! Permissions, acknowledgements, releases and rollbacks.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

#[tokio::test]
async fn a_deployment_can_be_deleted_until_it_is_released() {
    let t = TestService::start().await;
    let app = t.app("desk").create().await;
    let deployed = t.as_publisher("POST", &app.path("/deployments"), t.app("desk").bundle()).await.value();
    let at = app.path(&format!("/deployments/{}", deployed["id"].as_str().unwrap()));
    assert_eq!(t.send("DELETE", &at, &[], "").await.status, 204);
    assert_eq!(t.get(&at).await.refusal(), "404 deployment_not_found");
    assert_eq!(t.send("DELETE", &at, &[], "").await.refusal(), "404 deployment_not_found");
    assert_eq!(t.scalar("SELECT count(*) FROM app_files").await, "0");
    let deployed = t.as_publisher("POST", &app.path("/deployments"), t.app("desk").bundle()).await.value();
    let at = app.path(&format!("/deployments/{}", deployed["id"].as_str().unwrap()));
    let body = json!({"permission_revision": deployed["permissions"]["permission_revision"]}).to_string();
    assert_eq!(t.post(&format!("{at}/acknowledge"), &body).await.status, 200);
    assert_eq!(t.post(&format!("{at}/publish"), "").await.status, 201);
    assert_eq!(t.send("DELETE", &at, &[], "").await.refusal(), "409 deployment_released");
    assert_eq!(t.get(&at).await.status, 200);
}

#[tokio::test]
async fn a_deployment_is_acknowledged_and_published() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Echo").create().await;
    let binding = json!({"workflow": workflow.handle, "version": 1, "access_mode": "anonymous",
        "output_projection": {"fields": ["b", "a"]}});
    let building = t.app("desk").manifest(&json!({"bindings": {"ask": binding}}));
    let app = building.create().await;
    let deployed = t.as_publisher("POST", &app.path("/deployments"), building.bundle()).await.value();
    let at = app.path(&format!("/deployments/{}", deployed["id"].as_str().unwrap()));
    let read = t.get(&format!("{at}/permissions")).await.value();
    assert_eq!(read, deployed["permissions"]);
    assert_eq!(read, t.get(&at).await.value()["permissions"]);
    assert_eq!(read["acknowledged"], false);
    let ask = &read["permissions"]["bindings"]["ask"];
    assert_eq!((&ask["workflow_id"], &ask["fields"]), (&json!(workflow.id), &json!(["a", "b"])));
    assert_eq!(read["workflows"][&workflow.id], json!({"handle": workflow.handle, "name": "Echo"}));
    assert_eq!(read["changes"], json!([{"path": "/bindings/ask", "before": null, "after": ask}]));
    let publish = async || t.post(&format!("{at}/publish"), "").await;
    assert_eq!(publish().await.refusal(), "409 permission_ack_required");
    let acknowledge = async |body: Value| t.post(&format!("{at}/acknowledge"), &body.to_string()).await;
    assert_eq!(
        acknowledge(json!({"permission_revision": "0"})).await.refusal(),
        "409 permission_revision_stale"
    );
    for body in [json!({}), json!({"permission_revision": null}), json!({"permission_revision": 1})] {
        assert_eq!(acknowledge(body).await.refusal(), "422 request.invalid");
    }
    // An empty body lacks it, too; a body with a duplicate member is rejected as JSON.
    for path in [format!("{at}/acknowledge"), app.path("/rollback")] {
        assert_eq!(t.post(&path, "").await.refusal(), "422 request.invalid", "{path}");
        let unknown = t.post(&path, r#"{"x": 1, "\u0078": 1}"#).await;
        assert_eq!(unknown.refusal(), "400 request.invalid_json", "{path}");
        assert!(unknown.message().contains("the member `x` is repeated"), "{}", unknown.message());
    }
    let revision = &read["permission_revision"];
    let acknowledged = acknowledge(json!({"permission_revision": revision})).await;
    assert_eq!((acknowledged.status, &acknowledged.value()["permission_revision"]), (200, revision));
    let again = acknowledge(json!({"permission_revision": revision})).await.value();
    assert_eq!(again, acknowledged.value(), "the first acknowledgement is kept");
    assert_eq!(t.get(&format!("{at}/permissions")).await.value()["acknowledged"], true);
    assert_eq!(t.get("/api/apps/desk").await.value()["active_release"], Value::Null);
    let published = publish().await.expect(201);
    let release = published.value();
    assert_eq!((&release["number"], &release["active"]), (&json!(1), &json!(true)));
    assert_eq!((&release["permission_revision"], &release["source_release_id"]), (revision, &Value::Null));
    let frozen = &release["bindings"]["ask"];
    let version = t.get(&workflow.path("/versions/1")).await.value();
    assert_eq!((&frozen["workflow_handle"], &frozen["version"]), (&json!(workflow.handle), &json!(1)));
    assert_eq!((&frozen["version_id"], &frozen["digest"]), (&version["id"], &version["digest"]));
    let shown = t.get("/api/apps/desk").await.value();
    assert_eq!(
        shown["active_release"],
        json!({"id": release["id"], "number": 1, "deployment_id": deployed["id"], "created_at": release["created_at"]})
    );
    assert_eq!(&shown["permission_revision"], revision);
    assert_eq!(t.get("/api/apps").await.value()["data"][0], shown);
    let id = release["id"].as_str().unwrap();
    assert_eq!(t.get(&app.path(&format!("/releases/{id}"))).await.value(), release);
    assert_eq!(t.get(&format!("{at}/permissions")).await.value()["changes"], json!([]));
}
