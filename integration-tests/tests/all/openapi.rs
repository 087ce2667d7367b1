//! The interface description, as the service serves it. Every test checks the responses that it reads against it.

use integration_tests::{AnswerExt, TestService, misfits};
use serde_json::{Value, json};

#[tokio::test]
async fn the_description_needs_no_credential_and_is_cacheable() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let answer = t.get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let document = answer.value();
    assert_eq!(document["openapi"], "3.1.0");
    let written: Value = serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    assert_eq!(document, written);
    let tag = answer.header("etag").unwrap().to_owned();
    let again = t.send("GET", "/openapi.json", &[("if-none-match", &tag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    t.send("GET", "/openapi.json", &[("if-none-match", "\"other\"")], "").await.expect(200);
    let head = t.open("HEAD", "/openapi.json", &[], "").await;
    assert_eq!((head.status, head.header("etag")), (200, Some(tag.as_str())));
    let refused = t.post("/openapi.json", "{}").await;
    assert_eq!(
        (refused.refusal(), refused.header("allow")),
        ("405 request.method_not_allowed".into(), Some("GET, HEAD"))
    );
}

#[test]
fn undescribed_responses_are_detected() {
    let node = json!({"name": "reply", "group": "chat", "summary": "", "effect": "speaks", "schema": {}, "result": "",
        "example": {}});
    let with = |name: &str, value: Value| {
        let mut node = node.clone();
        node[name] = value;
        node
    };
    let refused = |code: &str| json!({"detail": {"message": "…", "code": code}});
    for (status, body, fits) in [
        (200, node.clone(), true),
        (200, with("name", json!(7)), false),
        (200, with("surprise", json!(1)), false),
        (200, json!({"name": "reply"}), false),
        (201, node.clone(), false),
        (404, refused("node_type.not_found"), true),
        (404, refused("run.not_found"), false),
        (401, refused("auth.missing_token"), true),
        (418, json!({}), false),
    ] {
        let found =
            misfits("GET", "/api/nodes/reply", status, "application/json", Some(body.to_string().as_bytes()));
        assert_eq!(found.is_empty(), fits, "{status} {body}: {found:?}");
    }
    assert!(!misfits("GET", "/api/nodes/reply", 200, "text/html", Some(b"<p>")).is_empty());
    assert!(!misfits("GET", "/api/nodes/reply", 200, "application/json", Some(b"")).is_empty());
    assert!(!misfits("GET", "/api/nodes/reply", 200, "text/html", None).is_empty());
    assert!(!misfits("POST", "/api/runs/1/cancel", 204, "", Some(b"")).is_empty());
    let event = |text: &str| format!("id: 1.1\ndata: {text}\n\n");
    let run = "/api/runs/0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e/events";
    let frame = json!({"type": "progress", "payload": {"text": "…"}, "run_id": "1", "seq": 1, "at": "2026-01-01T12:00:00Z"});
    for (frame, fits) in
        [(frame.clone(), true), (json!({"type": "progress"}), false), (json!({"type": "unknown"}), false)]
    {
        let found = misfits("GET", run, 200, "text/event-stream", Some(event(&frame.to_string()).as_bytes()));
        assert_eq!(found.is_empty(), fits, "{frame}: {found:?}");
    }
    // Paths outside the interface have no description.
    assert!(misfits("GET", "/api/nowhere", 404, "application/json", Some(b"{}")).is_empty());
}
