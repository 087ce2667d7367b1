//! Which workspace a request works in, and who may be there.

use integration_tests::{AnswerExt, TestService};
use serde_json::json;

use super::support::other_workspace;

const LIST: &str = "/api/workflows";
const ALL: [&str; 3] = ["workflows:read", "workflows:write", "workflows:execute"];

#[tokio::test]
async fn a_token_stays_in_its_workspaces() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    other_workspace(&t).await;
    let here = t.workflow().named("Here").create().await;
    let stranger = t.root().token(&ALL, &["other"]).await;
    let stranger = t.bearer(&stranger);
    let there = stranger.post(LIST, &json!({"name": "There"})).await.value();
    let there = there["id"].as_str().unwrap();
    let names = async |bearer: &integration_tests::Bearer<'_>| -> Vec<String> {
        let list = bearer.get(LIST).await.value();
        list.as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&stranger).await, ["There"]);
    assert_eq!(names(&t.root()).await, ["Here"], "the default workspace");
    assert_eq!(stranger.get(&format!("{LIST}/{}", here.id)).await.refusal(), "403 auth.workspace_forbidden");
    assert_eq!(stranger.get(&format!("{LIST}/{}", here.handle)).await.refusal(), "404 workflow.not_found");
    assert_eq!(t.root().get(&format!("{LIST}/{there}")).await.status, 200, "no header is needed");
    let run = t
        .root()
        .post(&format!("{LIST}/{}/runs?wait=10", here.id), &json!({"inputs": {"message": "hi"}}))
        .await
        .value();
    let run = run["id"].as_str().unwrap();
    for path in
        [format!("/api/runs/{run}"), format!("/api/runs/{run}/trace"), format!("/api/runs/{run}/events")]
    {
        assert_eq!(stranger.get(&path).await.refusal(), "403 auth.workspace_forbidden", "{path}");
        assert_eq!(t.root().get(&path).await.status, 200, "{path}");
    }
    let unknown = format!("{LIST}/00000000-0000-7000-8000-000000000000");
    assert_eq!(stranger.get(&unknown).await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn the_header_says_which_workspace() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    other_workspace(&t).await;
    let here = t.workflow().create().await;
    let at = async |token: &str, slug: &str, path: &str| {
        t.bearer(token).send("GET", path, &[("x-workspace", slug)], "").await.refusal()
    };
    let both = t.root().token(&ALL, &["default", "other"]).await;
    assert_eq!(t.bearer(&both).get(LIST).await.refusal(), "400 workspace.required");
    assert_eq!(at(&both, "other", LIST).await, "200");
    assert_eq!(at(&both, "default", LIST).await, "200");
    for closed in ["third", "", "DEFAULT"] {
        assert_eq!(at(&both, closed, LIST).await, "403 auth.workspace_forbidden", "{closed:?}");
    }
    let one = t.root().token(&ALL, &["default"]).await;
    assert_eq!(at(&one, "other", LIST).await, "403 auth.workspace_forbidden");
    let none = t.root().token(&ALL, &["gone"]).await;
    assert_eq!(t.bearer(&none).get(LIST).await.refusal(), "403 auth.workspace_forbidden");
    let path = format!("{LIST}/{}", here.id);
    assert_eq!(at(&both, "other", &path).await, "403 auth.workspace_forbidden", "it is not there");
    assert_eq!(at(&both, "default", &path).await, "200");
    assert_eq!(t.bearer(&both).get(&path).await.status, 200, "the workflow's own counts");
}
