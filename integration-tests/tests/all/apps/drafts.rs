//! Bindings and collections of apps, and the deployments that they apply to.

use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::{Value, json};

use super::{PAGE, ZIP, app, archive, upload};

fn binding(workflow: &str) -> Value {
    json!({"workflow": workflow, "version": 1, "access_mode": "anonymous"})
}

fn collection(name: &str) -> Value {
    json!({"name": name, "kind": "shared", "capabilities": {"anonymous": ["read"], "member": ["create", "read"]}})
}

#[tokio::test]
async fn a_binding_is_set_replaced_listed_and_deleted() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let put = async |name: &str, body: &Value| {
        t.send("PUT", &format!("/api/apps/desk/bindings/{name}"), &[JSON], &body.to_string()).await
    };
    let made = put("ask", &binding("one")).await.expect(201);
    let value = made.value();
    assert_eq!((&value["name"], &value["binding"]["limits"]["timeout_seconds"]), (&json!("ask"), &json!(60)));
    let replaced = put("ask", &binding("two")).await;
    assert_eq!((replaced.status, &replaced.value()["binding"]["workflow"]), (200, &json!("two")));
    assert_eq!(replaced.value()["created_at"], value["created_at"]);
    assert_eq!(put("sort_2", &binding("one")).await.status, 201);
    let page = t.get("/api/apps/desk/bindings?limit=1").await.value();
    assert_eq!(page["data"][0]["name"], "sort_2");
    let next = page["next_cursor"].as_str().unwrap();
    let page = t.get(&format!("/api/apps/desk/bindings?limit=1&cursor={next}")).await.value();
    assert_eq!((&page["data"][0]["name"], &page["next_cursor"]), (&json!("ask"), &Value::Null));
    for (name, body, code) in [
        ("Ask", binding("one"), "422 manifest_invalid"),
        ("ask", json!({}), "422 manifest_invalid"),
        ("ask", json!({"workflow": "a", "version": 0, "access_mode": "all", "x": 1}), "422 manifest_invalid"),
        ("ask", json!([]), "422 request.invalid"),
    ] {
        assert_eq!(put(name, &body).await.refusal(), code, "{body}");
    }
    let mut wrong = binding("one");
    wrong.as_object_mut().unwrap().insert("input_schema".to_owned(), json!({"$ref": "https://example.org"}));
    let refused = put("ask", &wrong).await;
    assert_eq!(refused.refusal(), "422 schema_invalid");
    assert_eq!(refused.value()["detail"]["findings"][0]["path"], "bindings");
    let twice = r#"{"workflow": "a", "workflow": "b", "version": 1, "access_mode": "anonymous"}"#;
    let twice = t.send("PUT", "/api/apps/desk/bindings/ask", &[JSON], twice).await;
    assert_eq!(twice.refusal(), "422 manifest_invalid");
    let delete =
        async |name: &str| t.send("DELETE", &format!("/api/apps/desk/bindings/{name}"), &[], "").await;
    assert_eq!(delete("ask").await.status, 204);
    assert_eq!(delete("ask").await.refusal(), "404 binding_not_found");
    assert_eq!(delete("a%00b").await.refusal(), "404 binding_not_found");
    assert_eq!(t.get("/api/apps/none/bindings").await.refusal(), "404 app_not_found");
    for number in 0..99 {
        assert_eq!(put(&format!("b{number}"), &binding("one")).await.status, 201);
    }
    let full = put("more", &binding("one")).await;
    assert_eq!(full.refusal(), "422 manifest_invalid");
    assert_eq!(full.value()["detail"]["findings"][0]["detail"], "An app has at most 100 bindings.");
    assert_eq!(put("b1", &binding("two")).await.status, 200, "replaced");
    let audited = "SELECT count(*) FILTER (WHERE action = 'app.binding_set') || ' ' || count(*) FILTER (WHERE action = 'app.binding_deleted') FROM audit_log";
    assert_eq!(t.scalar(audited).await, "103 1");
}

#[tokio::test]
async fn a_recreated_collection_has_a_new_id() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let post = async |body: &Value| t.post("/api/apps/desk/collections", &body.to_string()).await;
    let made = post(&collection("notes")).await.expect(201);
    assert_eq!(made.value()["capabilities"]["member"], json!(["read", "create"]));
    assert_eq!(post(&collection("notes")).await.refusal(), "409 collection_taken");
    for (body, code) in [
        (json!({}), "422 manifest_invalid"),
        (collection("No"), "422 manifest_invalid"),
        (
            json!({"name": "a", "kind": "user", "capabilities": {"anonymous": ["read"], "member": []}}),
            "422 manifest_invalid",
        ),
    ] {
        assert_eq!(post(&body).await.refusal(), code, "{body}");
    }
    let twice =
        r#"{"name": "a", "name": "b", "kind": "user", "capabilities": {"anonymous": [], "member": []}}"#;
    assert_eq!(t.post("/api/apps/desk/collections", twice).await.refusal(), "422 manifest_invalid");
    let delete = async || t.send("DELETE", "/api/apps/desk/collections/notes", &[], "").await;
    assert_eq!(delete().await.status, 204);
    assert_eq!(delete().await.refusal(), "404 collection_not_found");
    let again = post(&collection("notes")).await.value();
    assert_ne!(again["id"], made.value()["id"]);
    let listed = t.get("/api/apps/desk/collections").await.value();
    assert_eq!(listed["data"], json!([again]));
    let actions =
        "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log WHERE action LIKE 'app.collection%'";
    assert_eq!(
        t.scalar(actions).await,
        "app.collection_created app.collection_deleted app.collection_created"
    );
}

#[tokio::test]
async fn app_bindings_apply_to_deployments_that_declare_none() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let workflow = t.workflow().named("One").create().await;
    let bound = binding(&workflow.handle).to_string();
    assert_eq!(t.send("PUT", "/api/apps/desk/bindings/ask", &[JSON], &bound).await.status, 201);
    assert_eq!(t.post("/api/apps/desk/collections", &collection("notes").to_string()).await.status, 201);
    let names = |record: &Value, part: &str| -> Vec<String> {
        record[part].as_object().unwrap().keys().cloned().collect()
    };
    let deploy = async |manifest: Option<Value>| {
        let manifest = manifest.map(|manifest| manifest.to_string());
        let mut files: Vec<(&str, &[u8])> = vec![("index.html", b"<p>Hi")];
        files.extend(manifest.as_ref().map(|manifest| ("service.app.json", manifest.as_bytes())));
        let deployed = upload(&t, "desk", &[ZIP], &archive(&files)).await.expect(201);
        (names(&deployed.value(), "bindings"), names(&deployed.value(), "collections"))
    };
    let (none, ask, notes) = (Vec::<String>::new(), vec!["ask".to_owned()], vec!["notes".to_owned()]);
    assert_eq!(deploy(None).await, (ask, notes.clone()));
    assert_eq!(deploy(Some(json!({"schema_version": 1, "bindings": {}}))).await, (none.clone(), notes));
    let nothing = json!({"schema_version": 1, "bindings": {}, "collections": {}});
    assert_eq!(deploy(Some(nothing)).await, (none.clone(), none));
    // They are checked like the manifest's bindings.
    let wrong = binding("missing").to_string();
    assert_eq!(t.send("PUT", "/api/apps/desk/bindings/wrong", &[JSON], &wrong).await.status, 201);
    let refused = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await;
    assert_eq!(refused.refusal(), "422 workflow_preflight_failed");
    let finding = &refused.value()["detail"]["findings"][0];
    assert_eq!(finding["path"], "bindings");
    assert_eq!(finding["detail"], "Binding 'wrong': the workspace has no workflow 'missing'.");
}
