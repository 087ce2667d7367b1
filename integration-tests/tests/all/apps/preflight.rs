//! Preflight: whether the workflows that a manifest binds can run for an app.

use integration_tests::{AnswerExt, JSON, TestService, graphs};
use serde_json::{Value, json};

use super::{ZIP, app, archive, upload};

/// An archive whose manifest binds names to workflow versions.
fn binding(bindings: &[(&str, &str, u64)]) -> Vec<u8> {
    let binding = |(name, workflow, version): &(&str, &str, u64)| {
        let binding = json!({"workflow": workflow, "version": version, "access_mode": "anonymous"});
        ((*name).to_owned(), binding)
    };
    let bindings: serde_json::Map<String, Value> = bindings.iter().map(binding).collect();
    let manifest = json!({"schema_version": 1, "bindings": bindings}).to_string();
    archive(&[("index.html", b"<p>Hi"), ("service.app.json", manifest.as_bytes())])
}

/// The details of a rejected archive's findings.
async fn details(t: &TestService, bundle: &[u8]) -> Vec<String> {
    let answer = upload(t, "desk", &[ZIP], bundle).await;
    assert_eq!(answer.refusal(), "422 workflow_preflight_failed", "{}", answer.text());
    let body = answer.value();
    let findings = body["detail"]["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| {
            assert_eq!(
                (&finding["code"], &finding["path"]),
                (&json!("workflow_preflight_failed"), &json!("service.app.json"))
            );
            finding["detail"].as_str().unwrap().to_owned()
        })
        .collect()
}

async fn workflow(t: &TestService, name: &str, nodes: &[Value]) -> String {
    t.workflow().named(name).graph(graphs::chain(nodes, None)).create().await.handle
}

#[tokio::test]
async fn bindings_require_a_runnable_version() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let good = t.workflow().named("Good").create().await;
    for name in [good.handle.as_str(), good.id.as_str()] {
        upload(&t, "desk", &[ZIP], &binding(&[("run", name, 1)])).await.expect(201);
    }
    let archived = t.workflow().named("Archived").create().await;
    let answer = t.anonymous().send("DELETE", &archived.path(""), &[], "").await;
    assert!(answer.unwrap().is_success());
    let bundle =
        binding(&[("a", "none", 1), ("b", &good.handle, 2), ("c", &archived.id, 1), ("d", &good.handle, 1)]);
    assert_eq!(
        details(&t, &bundle).await,
        [
            "Binding 'a': the workspace has no workflow 'none'.".to_owned(),
            format!("Binding 'b': the workflow '{}' has no version 2.", good.handle),
            format!("Binding 'c': the workflow '{}' is archived.", archived.id),
        ]
    );
    // A workflow in another workspace does not exist here.
    assert_eq!(t.post("/api/workspaces", "{\"slug\": \"other\"}").await.status, 201);
    let headers = [JSON, ("x-workspace", "other")];
    let there = t.send("POST", "/api/workflows", &headers, "{\"name\": \"There\"}").await.value();
    let there = there["id"].as_str().unwrap();
    let found = details(&t, &binding(&[("a", there, 1)])).await;
    assert!(found[0].contains("has no workflow"), "{found:?}");
    let audited = "SELECT count(*) FROM audit_log WHERE action = 'app.deploy_refused' AND reason = 'workflow_preflight_failed'";
    assert_eq!(t.scalar(audited).await, "2");
    assert_eq!(t.scalar("SELECT count(*) FROM app_deployments").await, "2");
}

#[tokio::test]
async fn waiting_and_unpinned_nodes_are_found_at_every_level() {
    let keys = r#"{"active": "a", "keys": {"a": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}"#;
    let t = TestService::builder().set("SERVICE_VAULT_KEYS", keys).start().await;
    app(&t, "desk").await;
    let waits = workflow(&t, "Waits", &[json!({"name": "ok", "type": "wait_for_input"})]).await;
    let looped = json!({"name": "each", "type": "for_each", "items": [1],
        "body": {"type": "sub_workflow", "workflow": waits, "version": 1}});
    let nested = workflow(&t, "Nested", &[looped]).await;
    let free = json!({"name": "sub", "type": "sub_workflow", "workflow": waits});
    let free = workflow(&t, "Free", &[free]).await;
    assert_eq!(
        details(&t, &binding(&[("a", &nested, 1), ("b", &free, 1)])).await,
        [
            format!(
                "Binding 'a', workflow '{waits}' version 1, node 'ok': an app cannot run 'wait_for_input', which waits for a person or a page."
            ),
            format!(
                "Binding 'b', workflow '{free}' version 1, node 'sub': 'workflow' and 'version' must name a fixed version, or the app \
                 would change with the workflow."
            ),
        ]
    );
    // A chain of workflows is followed eight levels deep.
    let mut last = workflow(&t, "Level 1", &[json!({"name": "s", "type": "set", "values": {"a": 1}})]).await;
    let mut levels = vec![last.clone()];
    for level in 2..=9 {
        let node = json!({"name": "sub", "type": "sub_workflow", "workflow": last, "version": 1});
        last = workflow(&t, &format!("Level {level}"), &[node]).await;
        levels.push(last.clone());
    }
    upload(&t, "desk", &[ZIP], &binding(&[("run", &levels[7], 1)])).await.expect(201);
    let deep = details(&t, &binding(&[("run", &levels[8], 1)])).await;
    assert!(deep.len() == 1 && deep[0].contains("more than 8 levels deep"), "{deep:?}");
    // A shorter path to the same version does not hide a longer one.
    let both = [("long", &levels[7]), ("short", &levels[6])].map(
        |(name, workflow)| json!({"name": name, "type": "sub_workflow", "workflow": workflow, "version": 1}),
    );
    let both = workflow(&t, "Both", &both).await;
    let deep = details(&t, &binding(&[("run", &both, 1)])).await;
    assert!(deep.len() == 1 && deep[0].contains("more than 8 levels deep"), "{deep:?}");
    // Versions are counted once, whatever binds them.
    let names: Vec<String> = (0..100).map(|number| format!("run_{number}")).collect();
    let many: Vec<(&str, &str, u64)> =
        names.iter().map(|name| (name.as_str(), levels[2].as_str(), 1)).collect();
    assert_eq!(upload(&t, "desk", &[ZIP], &binding(&many)).await.status, 201);
    // The credential existed when the version was saved.
    let made = t.post("/api/credentials", "{\"name\": \"shop\", \"secret\": \"s\"}").await.expect(201);
    let call = json!({"name": "call", "type": "http_request", "url": "https://example.org", "headers": {"authorization": "[[shop]]"}});
    let calls = workflow(&t, "Calls", &[call]).await;
    let bundle = binding(&[("run", &calls, 1)]);
    assert_eq!(upload(&t, "desk", &[ZIP], &bundle).await.status, 201);
    let id = made.value()["id"].as_str().unwrap().to_owned();
    t.anonymous().send("DELETE", &format!("/api/credentials/{id}"), &[], "").await.unwrap().expect(204);
    assert_eq!(
        details(&t, &bundle).await,
        [format!(
            "Binding 'run', workflow '{calls}' version 1, node 'call': the workspace has no credential 'shop'."
        )]
    );
}
