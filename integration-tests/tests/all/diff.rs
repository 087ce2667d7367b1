//! The differences between two versions, over HTTP.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::json;

#[tokio::test]
async fn two_versions_are_compared_by_node_and_field() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = format!("/api/workflows/{}/versions", workflow.handle);
    let save = async |graph, config| {
        let body = json!({"graph": graph, "runnable_config": config}).to_string();
        assert_eq!(t.post(&path, &body).await.status, 201);
    };
    save(graphs::reply("one"), json!({"prompts": {"p": {"text": "a"}}})).await;
    save(graphs::reply("two"), json!({"prompts": {"p": {"text": "b"}}})).await;
    let diff = t.get(&format!("{path}/1/diff/2")).await.value();
    assert_eq!(
        diff,
        json!({"base": 1, "target": 2, "changes": [
            {"node": "say", "field": "text", "before": "one", "after": "two"},
            {"node": null, "field": "runnable_config.prompts.p.text", "before": "a", "after": "b"},
        ]})
    );
    let back = t.get(&workflow.path("/versions/2/diff/1")).await.value();
    assert_eq!((&back["base"], &back["changes"][0]["after"]), (&json!(2), &json!("one")));
    assert_eq!(t.get(&format!("{path}/2/diff/2")).await.value()["changes"], json!([]));
    for missing in ["1/diff/3", "0/diff/1", "1/diff/latest", "01/diff/2", "1/diff/99999999999"] {
        assert_eq!(t.get(&format!("{path}/{missing}")).await.refusal(), "404 version.not_found", "{missing}");
    }
    let message = t.get(&format!("{path}/1/diff/3")).await.message();
    assert_eq!(message, "Version '3' not found; the latest is 2.");
    assert_eq!(t.get("/api/workflows/none/versions/1/diff/2").await.refusal(), "404 workflow.not_found");
    assert_eq!(t.get(&format!("{path}/1/diff/2?full=1")).await.refusal(), "422 request.invalid");
    assert_eq!(t.get(&format!("{path}/1/diff")).await.refusal(), "404 request.not_found");
}
