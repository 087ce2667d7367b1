//! From a bundle to a visitor: an app is published through the control plane, its page opens, runs a workflow that
//! stores a record, and reads the record.

use integration_tests::{Answer, AnswerExt, JSON, TestService, graphs, until};
use serde_json::{Value, json};

/// Sends a request like a page of the app.
async fn send(t: &TestService, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let host = format!("guests.apps.localhost:{}", t.address().port());
    let origin = format!("http://{host}");
    let mut all = vec![("host", host.as_str()), ("origin", origin.as_str()), JSON];
    all.extend_from_slice(headers);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    t.open(method, path, &all, &body).await.whole().await
}

async fn get(t: &TestService, path: &str) -> Answer {
    send(t, "GET", path, &[], &Value::Null).await
}

fn manifest(version: u64, collections: &Value) -> Value {
    json!({
        "bindings": {"sign": {
            "workflow": "guest-book", "version": version, "access_mode": "anonymous",
            "output_projection": {"fields": ["note"]}, "visitor_can_read_output": true}},
        "collections": collections,
    })
}

#[tokio::test]
async fn a_bundle_becomes_an_app_that_runs_its_workflow_and_stores_records() {
    let t = TestService::start().await;
    let put = json!({"name": "put", "type": "collection_put", "collection": "notes", "data": {"text": "{{ inputs.text }}"}});
    let graph = graphs::chain(
        &[put],
        Some(json!({"note": "{{ results.put.record.data.text }}", "secret": "inside"})),
    );
    let workflow = t.workflow().named("Guest book").graph(graph).create().await;
    let notes = json!({"notes": {"kind": "shared", "capabilities": {"anonymous": ["read"], "member": []}}});

    // The bundle is rejected without the collection that its workflow names.
    let builder = t.app("guests").manifest(&manifest(1, &json!({})));
    let app = builder.create().await;
    let refused = t.as_publisher("POST", &app.path("/deployments"), builder.bundle()).await;
    assert_eq!(refused.refusal(), "422 workflow_preflight_failed");
    assert!(refused.text().contains("the app has no collection 'notes'"), "{}", refused.text());

    let bundle = t.app("guests").file("index.html", "<p>One").manifest(&manifest(1, &notes)).bundle();
    let first = app.deploy(&t, bundle).await;
    let permissions =
        t.as_publisher("GET", &app.path(&format!("/deployments/{first}/permissions")), "").await.value();
    let binding = &permissions["permissions"]["bindings"]["sign"];
    assert_eq!(binding["data"], json!([{"collection": "notes", "verbs": ["create"]}]));
    assert_eq!((&binding["outbound"], &permissions["acknowledged"]), (&json!([]), &json!(false)));
    assert_eq!(get(&t, "/").await.status, 404, "nothing is published");
    app.publish(&t, &first).await;

    let page = get(&t, "/").await;
    assert_eq!((page.status, page.text().as_str()), (200, "<p>One"));
    let by_id = t.open("GET", "/", &[("host", &format!("{}.apps.localhost", app.id))], "").await;
    assert_eq!(by_id.whole().await.status, 404, "an app has one host");
    let key = ("idempotency-key", "k");
    let started = send(&t, "POST", "/__service/workflows/sign/runs", &[key], &json!({"text": "Hej"})).await;
    assert_eq!(started.status, 202, "{}", started.text());
    let run = format!("/__service/runs/{}", started.value()["handle"].as_str().unwrap());
    until("the run has ended", async || get(&t, &run).await.value()["state"] == "succeeded").await;
    assert_eq!(
        get(&t, &run).await.value()["output"],
        json!({"note": "Hej"}),
        "only the output that the binding names"
    );
    let listed = get(&t, "/__service/data/notes").await.value();
    assert_eq!(listed["items"][0]["data"], json!({"text": "Hej"}), "{listed}");

    // Later changes do not affect the release.
    t.as_publisher("DELETE", &workflow.path(""), "").await;
    let again = send(
        &t,
        "POST",
        "/__service/workflows/sign/runs",
        &[("idempotency-key", "l")],
        &json!({"text": "Hi"}),
    )
    .await;
    let run = format!("/__service/runs/{}", again.value()["handle"].as_str().unwrap());
    until("the frozen version runs", async || get(&t, &run).await.value()["state"] == "succeeded").await;
    let publish = app.path(&format!("/deployments/{first}/publish"));
    assert_eq!(t.as_publisher("POST", &publish, "").await.refusal(), "422 workflow_preflight_failed");

    // A deleted collection is gone for the release; a deleted app is gone at once.
    assert_eq!(t.as_publisher("DELETE", &app.path("/collections/notes"), "").await.status, 204);
    assert_eq!(get(&t, "/__service/data/notes").await.refusal(), "410 collection_gone");
    assert_eq!(t.as_publisher("DELETE", &app.path(""), "").await.status, 204);
    until("the host to respond like an unknown one", async || get(&t, "/").await.status == 404).await;
}
