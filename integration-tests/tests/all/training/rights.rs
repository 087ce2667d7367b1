//! Permissions to read, start and control trainings.

use integration_tests::{AnswerExt, Bearer, JSON, Socket, TestService, graphs};
use serde_json::{Value, json};

use super::{SEED, cases, label, message, prompts, runs_of, sorting, training_of};

const READ: &str = "workflows:read";
const WRITE: &str = "workflows:write";
const EXECUTE: &str = "workflows:execute";

/// A workflow that sorts messages, created by this caller in this workspace.
async fn make(by: &Bearer<'_>, slug: &str) -> String {
    let headers = [("x-workspace", slug), JSON];
    let made = by.send("POST", "/api/workflows", &headers, &json!({"name": "Sort"}).to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let id = made.value()["id"].as_str().unwrap().to_owned();
    let version = json!({"graph": sorting("practice/classify"), "runnable_config": prompts(SEED)});
    assert_eq!(by.post(&format!("/api/workflows/{id}/versions"), &version).await.status, 201);
    id
}

fn body() -> Value {
    training_of(cases(4), json!({"name": "none"}))
}

fn with_graph() -> Value {
    let mut body = body();
    let mut graph = sorting("practice/classify");
    graph["output"] = json!({"label": "{{ results.sort.text }}"});
    body["graph_config"] = graph;
    body
}

async fn started(by: &Bearer<'_>, workflow: &str, body: &Value) -> String {
    by.post(&runs_of(workflow), body).await.expect(202).member("id")
}

/// Waits until no run is unfinished.
async fn settled(t: &TestService) {
    let open = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    t.until_scalar("all runs end", open, "0").await;
}

#[tokio::test]
async fn each_operation_requires_its_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let workflow = make(&root, "default").await;
    let run = started(&root, &workflow, &body()).await;
    settled(&t).await;
    let checkpoint =
        root.get(&super::checkpoints_of(&workflow)).await.value()[0]["id"].as_str().unwrap().to_owned();
    let (list, one) = (runs_of(&workflow), format!("{}/{run}", runs_of(&workflow)));
    let reads = [
        list.clone(),
        one.clone(),
        format!("{one}/events"),
        format!("{one}/candidates"),
        format!("{one}/cases"),
        super::checkpoints_of(&workflow),
        format!("{}/{checkpoint}", super::checkpoints_of(&workflow)),
    ];
    let changes = [list.clone(), format!("{one}/pause"), format!("{one}/resume"), format!("{one}/cancel")];
    let token = async |scope: &str| root.token(&[scope], &["default"]).await;
    let (reader, writer, runner) = (token(READ).await, token(WRITE).await, token(EXECUTE).await);
    for path in &reads {
        assert_eq!(t.bearer(&reader).get(path).await.status, 200, "{path}");
        for token in [&writer, &runner] {
            let refused = t.bearer(token).get(path).await;
            assert_eq!(refused.refusal(), "403 auth.missing_scope", "{path}");
            assert_eq!(refused.message(), format!("Missing required scopes: {READ}"));
        }
        assert_eq!(t.get(path).await.refusal(), "401 auth.missing_token", "{path}");
    }
    for path in &changes {
        for token in [&reader, &writer] {
            let refused = t.bearer(token).post(path, &body()).await;
            assert_eq!(refused.refusal(), "403 auth.missing_scope", "{path}");
            assert_eq!(refused.message(), format!("Missing required scopes: {EXECUTE}"));
        }
    }
    // The run has ended, so this is not a permission error.
    for path in &changes[1..] {
        assert_eq!(
            t.bearer(&runner).send("POST", path, &[], "").await.refusal(),
            "409 run.not_active",
            "{path}"
        );
    }
    t.bearer(&runner).post(&format!("{list}?dry_run=true"), &body()).await.expect(200);
    started(&t.bearer(&runner), &workflow, &body()).await;
    settled(&t).await;
}

#[tokio::test]
async fn a_graph_requires_the_write_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let workflow = make(&root, "default").await;
    let runner = root.token(&[EXECUTE], &["default"]).await;
    let author = root.token(&[EXECUTE, WRITE], &["default"]).await;
    for path in [runs_of(&workflow), format!("{}?dry_run=true", runs_of(&workflow))] {
        let refused = t.bearer(&runner).post(&path, &with_graph()).await;
        assert_eq!(refused.refusal(), "403 auth.missing_scope", "{path}");
        assert_eq!(refused.message(), format!("Missing required scopes: {WRITE}"));
    }
    assert_eq!(t.scalar("SELECT count(*) FROM workflow_versions WHERE draft").await, "0");
    let address = format!("/ws/workflow/{workflow}");
    let header = format!("Bearer {runner}");
    let mut socket = Socket::open(t.address(), &address, &[("authorization", &header)]).await;
    socket.say(&message("train_workflow", "r", &with_graph())).await;
    let error = socket.next().await;
    assert_eq!((&error["payload"]["code"], &error["run_id"]), (&json!("auth.missing_scope"), &Value::Null));
    socket.say(&message("train_workflow", "r", &body())).await;
    assert_eq!(socket.until("run_completed").await[0]["payload"]["version"], 1);
    socket.close().await;
    started(&t.bearer(&author), &workflow, &with_graph()).await;
    settled(&t).await;
    let drafts = "SELECT count(*) FROM runs r JOIN workflow_versions v ON v.id = r.version_id WHERE v.draft";
    assert_eq!(t.scalar(drafts).await, "1");
}

/// Otherwise a caller with execute permission only could redirect a workspace secret through `{{ config.endpoint }}`.
#[tokio::test]
async fn a_config_requires_the_write_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let workflow = make(&root, "default").await;
    let runner = root.token(&[EXECUTE], &["default"]).await;
    let author = root.token(&[EXECUTE, WRITE], &["default"]).await;
    let with = |mut body: Value, member: &str, config: Value| {
        body[member] = config;
        body
    };
    let evaluation = || json!({"evaluation": {"dataset": {"cases": cases(4)}, "evaluators": label()}});
    let runs = format!("/api/workflows/{workflow}/runs");
    let run = json!({"inputs": {"message": "x"}});
    let requests = [
        (runs.clone(), run.clone(), "config", "run_workflow"),
        (runs_of(&workflow), body(), "runnable_config", "train_workflow"),
        (runs_of(&workflow), evaluation(), "runnable_config", "evaluate_workflow"),
    ];
    let address = format!("/ws/workflow/{workflow}");
    let header = format!("Bearer {runner}");
    let mut socket = Socket::open(t.address(), &address, &[("authorization", &header)]).await;
    for (path, body, member, kind) in requests {
        let chosen = with(body.clone(), member, json!({"endpoint": "https://example.org"}));
        let refused = t.bearer(&runner).post(&path, &chosen).await;
        assert_eq!(refused.refusal(), "403 auth.missing_scope", "{kind}");
        assert_eq!(refused.message(), format!("Missing required scopes: {WRITE}"));
        socket.say(&message(kind, "r", &chosen)).await;
        let error = socket.next().await;
        assert_eq!(error["payload"]["code"], "auth.missing_scope", "{kind}: {error}");
        assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "0", "{kind}");
        // An empty config changes nothing.
        for (token, body) in [(&runner, with(body, member, json!({}))), (&author, chosen)] {
            let started = t.bearer(token).post(&path, &body).await;
            assert_eq!(started.status, 202, "{kind}: {}", started.text());
        }
        settled(&t).await;
    }
    socket.close().await;
}

/// Otherwise a caller with execute permission only could have a workspace secret sent to their own address.
#[tokio::test]
async fn a_request_with_a_credential_requires_the_write_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let workflow = make(&root, "default").await;
    let runner = root.token(&[EXECUTE], &["default"]).await;
    let author = root.token(&[EXECUTE, WRITE], &["default"]).await;
    let path = format!("{}?dry_run=true", runs_of(&workflow));
    let own = json!({"model": "openai/m", "base_url": "https://judge.example/v1", "credential": "stripe"});
    let judge = |config: &Value| json!([{"id": "a", "entrypoint": "builtin:llm_judge", "config": config}]);
    let mut rubric = own.clone();
    rubric["rubric"] = json!("x");
    let mut bodies = [body(), body(), body()];
    bodies[0]["training"]["evaluators"] = judge(&rubric);
    bodies[1]["training"]["evaluators"] =
        json!([{"id": "a", "entrypoint": "http:stripe", "config": {"url": "https://judge.example"}}]);
    bodies[2]["training"]["optimizer"]["models"] = json!({"optimizer": own});
    let allowed = ["200", "422 request.invalid", "200"];
    for (body, allowed) in bodies.into_iter().zip(allowed) {
        let refused = t.bearer(&runner).post(&path, &body).await;
        assert_eq!(refused.refusal(), "403 auth.missing_scope", "{body}");
        assert_eq!(refused.message(), format!("Missing required scopes: {WRITE}"));
        let answer = t.bearer(&author).post(&path, &body).await;
        // The workspace has no credential with this name, which is detected before the start if an evaluator uses it.
        assert_eq!(answer.refusal(), allowed, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_run_of_another_workspace_is_not_found() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let (here, there) = (make(&root, "default").await, make(&root, "other").await);
    let run = started(&root, &there, &body()).await;
    settled(&t).await;
    let checkpoint =
        root.get(&super::checkpoints_of(&there)).await.value()[0]["id"].as_str().unwrap().to_owned();
    let token = root.token(&[READ, WRITE, EXECUTE], &["default"]).await;
    let stranger = t.bearer(&token);
    let path = format!("{}/{run}", runs_of(&here));
    for path in
        [path.clone(), format!("{path}/events"), format!("{path}/candidates"), format!("{path}/cases")]
    {
        assert_eq!(stranger.get(&path).await.refusal(), "404 run.not_found", "{path}");
    }
    for operation in ["pause", "resume", "cancel"] {
        let refused = stranger.send("POST", &format!("{path}/{operation}"), &[], "").await;
        assert_eq!(refused.refusal(), "404 run.not_found", "{operation}");
    }
    let checkpoint = format!("{}/{checkpoint}", super::checkpoints_of(&here));
    assert_eq!(stranger.get(&checkpoint).await.refusal(), "404 checkpoint.not_found");
    let elsewhere = stranger.get(&format!("{}/{run}", runs_of(&there))).await;
    assert_eq!(elsewhere.refusal(), "403 auth.workspace_forbidden");
    // Neither its prompts nor its results can start another training.
    let id = checkpoint.rsplit('/').next().unwrap();
    for resume in [json!({"run_id": run}), json!({"checkpoint_id": id})] {
        let body = training_of(cases(4), json!({"name": "none", "resume": resume}));
        let refused = stranger.post(&runs_of(&here), &body).await;
        assert_eq!(refused.problems(), ["/training/optimizer/resume checkpoint_not_found"], "{body}");
    }
    // A workflow in another workspace cannot judge here.
    let headers = [("x-workspace", "other"), JSON];
    let new = json!({"name": "Judge", "handle": "judge-of-the-other"}).to_string();
    let judge = root.send("POST", "/api/workflows", &headers, &new).await.value();
    let own = graphs::chain(&[json!({"name": "yes", "type": "template", "template": "1"})], Some(json!(1)));
    let versions = format!("/api/workflows/{}/versions", judge["id"].as_str().unwrap());
    assert_eq!(root.post(&versions, &json!({"graph": own})).await.status, 201);
    let mut judged = body();
    let evaluators = json!([label()[0], {"id": "own", "entrypoint": "workflow:judge-of-the-other"}]);
    judged["training"]["evaluators"] = evaluators;
    assert_eq!(stranger.post(&runs_of(&here), &judged).await.status, 422);
}
