//! App files, as visitors receive them.

mod asked;
mod away;
mod bodies;
mod caching;
mod encodings;
mod files;
mod headers;
mod members;
mod releases;
mod switches;

use integration_tests::{Answer, AnswerExt, RawAnswer, TestService};
use serde_json::json;

use super::{ZIP, archive, upload};

/// Creates a public app.
pub(crate) async fn public_app(t: &TestService, alias: &str) {
    let body = json!({"alias": alias, "name": alias, "access": "public"}).to_string();
    t.post("/api/apps", &body).await.expect(201);
}

/// Deploys files to an app; returns the deployment id.
pub(crate) async fn deploy(t: &TestService, alias: &str, files: &[(&str, &[u8])]) -> String {
    let deployed = upload(t, alias, &[ZIP], &archive(files)).await.expect(201);
    let record: serde_json::Value = serde_json::from_slice(&deployed.body).unwrap();
    record["id"].as_str().unwrap().to_owned()
}

/// The statement that makes a deployment the active release at a given time.
pub(crate) fn release(deployment: &str, at: &str) -> String {
    format!(
        "WITH d AS (SELECT * FROM app_deployments WHERE id = '{deployment}'),
         made AS (INSERT INTO app_releases SELECT gen_random_uuid(), d.app_id, d.workspace_id,
             1 + coalesce((SELECT max(number) FROM app_releases r WHERE r.app_id = d.app_id), 0), d.id, NULL, 'none',
             '{{\"bindings\":{{}},\"collections\":{{}},\"frame_ancestors\":[],\"wasm\":false}}', '{{}}', '{{}}', d.spa, d.frame_ancestors, d.wasm, NULL, {at} FROM d RETURNING id, app_id)
         UPDATE apps a SET active_release = made.id FROM made WHERE a.id = made.app_id"
    )
}

/// Deploys files and makes them the active release; returns the deployment id.
pub(crate) async fn publish(t: &TestService, alias: &str, files: &[(&str, &[u8])]) -> String {
    let deployment = deploy(t, alias, files).await;
    t.execute(&release(&deployment, "now()")).await;
    deployment
}

/// The host of an app.
pub(crate) fn host(alias: &str) -> String {
    format!("{alias}.apps.localhost")
}

/// Sends a request to an app.
async fn ask(t: &TestService, method: &str, alias: &str, path: &str, headers: &[(&str, &str)]) -> RawAnswer {
    let host = host(alias);
    let mut all = vec![("host", host.as_str()), ("connection", "close")];
    all.extend_from_slice(headers);
    t.raw().await.request(method, path, &all, "").await
}

/// Reads a path of an app.
async fn get(t: &TestService, alias: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    ask(t, "GET", alias, path, headers).await.whole().await
}

/// Status and code of an app's error response.
fn code(answer: &Answer) -> String {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    format!("{} {}", answer.status, body["detail"]["code"].as_str().unwrap())
}

/// Part of the response body for a missing file.
const NOT_FOUND: &str = "<h1>Not found</h1>";
