//! Every operation with every kind of caller: the declarations decide who may call it.

use auth::scope::Scope;
use integration_tests::{AnswerExt, JSON, MailServer, TestService};
use serde_json::{Value, json};
use wire::operation::Access;

use super::support::{SECRET, browser, jwt, other_workspace, seconds_from_now, sign_in};

/// The resources that paths name.
struct Resources {
    workflow: String,
    run: String,
    token: String,
    workspace: String,
    member: String,
    credential: String,
    index: String,
    thread: String,
    training: String,
    checkpoint: String,
    dataset: String,
    app: String,
    deployment: String,
    revision: String,
    release: String,
}

impl Resources {
    async fn create(t: &TestService, path: &str) -> Self {
        // A name has at most a hundred handles.
        let mut workflow = t.workflow().named(path).published();
        if path.contains("/inputs/") {
            let asks = json!({"name": "asks", "type": "wait_for_input", "key": "1"});
            workflow = workflow.graph(integration_tests::graphs::chain(&[asks], None));
        }
        let workflow = workflow.create().await;
        let runs = workflow.path("/runs?wait=10");
        let run = t.root().post(&runs, &json!({"inputs": {"message": "hi"}})).await.value();
        let token = t.root().make_token(&["workflows:read"], &["default"]).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let yearly = r#"{"expression": "0 0 1 1 *"}"#;
        assert_eq!(t.root().send("PUT", &workflow.path("/triggers/cron"), &[JSON], yearly).await.status, 200);
        let webhook = workflow.path("/triggers/webhook/config");
        let open = r#"{"allow_unsigned": true}"#;
        assert_eq!(t.root().send("PUT", &webhook, &[JSON], open).await.status, 200);
        let slug = format!("of-{}", text(&token["id"]).split_once('-').unwrap().1);
        let workspace = t.root().post("/api/workspaces", &json!({"slug": slug})).await.value();
        let mut member = json!({"user_id": ""});
        // Invitations per inviter and day are limited.
        if path.contains("/members/") {
            let invited = json!({"email": format!("{slug}@example.org"), "role": "viewer"});
            member = t.root().post(&format!("/api/workspaces/{slug}/members"), &invited).await.value();
        }
        let credential = json!({"name": format!("c{}", slug.replace('-', "")), "secret": "a-secret"});
        let credential = t.root().post("/api/credentials", &credential).await.value();
        let index = format!(
            "INSERT INTO search_indexes (workspace_id, name) SELECT id, '{slug}' FROM workspaces WHERE slug = 'default'"
        );
        t.execute(&index).await;
        let mut thread = json!("");
        let mut training = json!("");
        let mut checkpoint = json!("");
        if path.contains("/trainer/") {
            let trainer = workflow.path("/trainer");
            // A running training can be paused, and an ended one has a checkpoint.
            let model = if path.contains("/checkpoints") || path.ends_with("/rescore") {
                "practice/classify"
            } else {
                "practice/classify@2000ms"
            };
            let sorting = json!({"graph": crate::training::sorting(model),
                "runnable_config": crate::training::prompts("Sort the message.")});
            t.root().post(&workflow.path("/versions"), &sorting).await.expect(201);
            let request = crate::training::training(json!({"epochs": 1}));
            training = t.root().post(&format!("{trainer}/runs"), &request).await.value()["id"].clone();
            if path.ends_with("/events") {
                let cancel = format!("{trainer}/runs/{}/cancel", text(&training));
                t.root().post(&cancel, &json!({})).await;
            }
            if path.ends_with("/rescore") {
                let run = format!("{trainer}/runs/{}", text(&training));
                integration_tests::until("the training to end", async || {
                    t.root().get(&run).await.value()["status"] == "succeeded"
                })
                .await;
            }
            if path.contains("/checkpoints") {
                let checkpoints = format!("{trainer}/checkpoints");
                integration_tests::until("a checkpoint to be stored", async || {
                    checkpoint = t.root().get(&checkpoints).await.value()[0]["id"].clone();
                    checkpoint.is_string()
                })
                .await;
            }
        }
        if path.ends_with("/rollout/promote") {
            let at = workflow.path("");
            let second = json!({"graph": integration_tests::graphs::reply("two")});
            assert_eq!(t.root().post(&format!("{at}/versions"), &second).await.status, 201);
            let canary = json!({"canary": {"version": 2, "percent": 5}}).to_string();
            assert_eq!(t.root().send("PUT", &format!("{at}/rollout"), &[JSON], &canary).await.status, 200);
        }
        let mut dataset = json!("");
        if path.contains("/datasets/") || path.ends_with("/case") {
            let request = json!({"name": "kept", "cases": [{"inputs": {}}]});
            let made = t.root().post(&workflow.path("/datasets"), &request).await;
            dataset = made.value()["id"].clone();
        }
        if path.contains("/chat/threads/") {
            let answer = t.chat(&integration_tests::chat::create(&workflow, "hi")).await.expect(200);
            let stream_events = integration_tests::events(&answer.text());
            thread = stream_events.iter().find_map(|event| event["thread"].get("id")).unwrap().clone();
        }
        let mut app = json!("");
        if path.starts_with("/api/apps/") {
            let request = json!({"alias": slug, "name": "An app"});
            app = t.root().post("/api/apps", &request).await.value()["id"].clone();
        }
        if path.contains("/bindings/") || path.contains("/collections/") {
            let at = format!("/api/apps/{slug}");
            let binding = json!({"workflow": "a", "version": 1, "access_mode": "anonymous"}).to_string();
            assert_eq!(
                t.root().send("PUT", &format!("{at}/bindings/one"), &[JSON], &binding).await.status,
                201
            );
            let collection =
                json!({"name": "one", "kind": "shared", "capabilities": {"anonymous": [], "member": []}});
            assert_eq!(t.root().post(&format!("{at}/collections"), &collection).await.status, 201);
        }
        let (mut deployment, mut revision, mut release) = (json!(""), json!(""), json!(""));
        if path.contains("/deployments/") || path.contains("/releases/") || path.ends_with("/rollback") {
            let uploads = format!("/api/apps/{slug}/deployments");
            deployment = t.root().send("POST", &uploads, &ZIP, crate::apps::PAGE).await.value()["id"].clone();
            let at = format!("{uploads}/{}", deployment.as_str().unwrap());
            let read = t.root().get(&format!("{at}/permissions")).await;
            revision = read.value()["permission_revision"].clone();
            // A released deployment cannot be deleted.
            if !path.ends_with("/acknowledge") && path != "/api/apps/*/deployments/*" {
                let body = json!({"permission_revision": revision});
                assert_eq!(t.root().post(&format!("{at}/acknowledge"), &body).await.status, 200);
                release = t.root().post(&format!("{at}/publish"), &json!({})).await.value()["id"].clone();
            }
        }
        let (token, workspace, member) = (&token["id"], &workspace["id"], &member["user_id"]);
        Self {
            workflow: workflow.id,
            run: text(&run["id"]),
            token: text(token),
            workspace: text(workspace),
            member: text(member),
            credential: text(&credential["id"]),
            index: slug,
            thread: text(&thread),
            training: text(&training),
            checkpoint: text(&checkpoint),
            dataset: text(&dataset),
            app: text(&app),
            deployment: text(&deployment),
            revision: text(&revision),
            release: text(&release),
        }
    }

    /// The path filled with these resources, and a matching body.
    fn request(&self, method: &str, path: &str) -> (String, Value) {
        let thing = match path {
            path if path.starts_with("/api/runs/") => &self.run,
            path if path.starts_with("/api/admin/") => &self.token,
            path if path.starts_with("/api/credentials/") => &self.credential,
            path if path.starts_with("/api/indexes/") => &self.index,
            path if path.starts_with("/api/workspaces/") => &self.workspace,
            path if path.starts_with("/api/apps/") => &self.app,
            "/api/nodes/*" => "reply",
            _ => &self.workflow,
        };
        let second = match path {
            path if path.contains("/members/") => &self.member,
            path if path.contains("/chat/threads/") => &self.thread,
            path if path.contains("/chat/visitors/") => "visitor:1",
            path if path.contains("/datasets/") => &self.dataset,
            path if path.contains("/deployments/") => &self.deployment,
            path if path.contains("/releases/") => &self.release,
            path if path.contains("/bindings/") || path.contains("/collections/") => "one",
            path if path.contains("/trainer/runs/") => &self.training,
            path if path.contains("/trainer/checkpoints/") => &self.checkpoint,
            _ => "1",
        };
        let filled = path.replacen('*', thing, 1).replace('*', second);
        let graph = integration_tests::graphs::reply("hi");
        let body = match path {
            "/api/chat/session" => json!({"workflow_id": self.workflow}),
            "/api/workflows" => json!({"name": "Another"}),
            "/api/workflows/check" | "/api/workflows/*/versions" => json!({"graph": graph}),
            "/api/workflows/*/datasets" => json!({"name": "Another", "cases": []}),
            "/api/workflows/*/datasets/*/versions" => json!({"cases": []}),
            "/api/runs/*/case" => json!({"dataset": "kept"}),
            "/api/workflows/*/trainer/runs/*/rescore" => {
                json!({"evaluators": [{"id": "a", "entrypoint": "builtin:exact_match"}]})
            }
            "/api/workflows/*/trainer/runs" => crate::training::evaluation(1, json!({})),
            "/api/runs/*/rerun" => json!({"from_step": 1}),
            "/api/workflows/*/runs" => json!({"inputs": {"message": "hi"}}),
            "/api/workflows/*/triggers/cron" if method == "PUT" => json!({"expression": "0 0 1 1 *"}),
            "/api/workflows/*/triggers/webhook/config" if method == "PUT" => json!({"allow_unsigned": true}),
            "/api/credentials" => json!({"name": format!("by {}", self.run), "secret": "s"}),
            "/api/credentials/*" if method == "PATCH" => json!({"secret": "another"}),
            "/api/apps" => json!({"alias": format!("by-{}", self.run), "name": "Another"}),
            "/api/apps/*/deployments/*/acknowledge" => json!({"permission_revision": self.revision}),
            "/api/apps/*/rollback" => json!({"release": self.release}),
            "/api/apps/*/bindings/*" if method == "PUT" => {
                json!({"workflow": "a", "version": 1, "access_mode": "anonymous"})
            }
            "/api/apps/*/collections" => {
                json!({"name": "two", "kind": "shared", "capabilities": {"anonymous": [], "member": []}})
            }
            "/api/apps/*" if method == "PATCH" => json!({"name": "Another"}),
            "/api/workspaces" => json!({"slug": format!("by-{}", self.workspace)}),
            "/api/workspaces/*/members" => json!({"email": "new@example.org", "role": "viewer"}),
            "/api/workspaces/*/members/*" if method == "PATCH" => json!({"role": "editor"}),
            "/api/workflows/*/chat/threads/*" => json!({"title": "Another"}),
            "/api/workspaces/*" if method == "PATCH" => json!({"name": "Another"}),
            "/api/admin/service-tokens" => json!({"scopes": []}),
            "/api/admin/service-tokens/*" | "/api/admin/service-tokens/*/revoke" => json!({"reason": "over"}),
            _ => json!({}),
        };
        (filled, body)
    }
}

/// The content type of a bundle.
const ZIP: [(&str, &str); 1] = [("content-type", "application/zip")];

#[tokio::test]
async fn every_route_checks_every_kind_of_caller() {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
        .set("CHAT_TOKEN_SIGNING_KEY", "chat-key-0123456789abcdef0123456789abcdef")
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .set("SERVICE_SMTP_URL", mail.url())
        .set(
            "SERVICE_VAULT_KEYS",
            r#"{"active": "a", "keys": {"a": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}"#,
        )
        .start()
        .await;
    other_workspace(&t).await;
    let texts: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let other_workspace_token = t.root().token(&texts, &["other"]).await;
    let subject =
        json!({"sub": "somebody", "exp": seconds_from_now(600), "scopes": texts, "workspace_ids": []});
    let nowhere = jwt(&subject);
    // An owner of another workspace.
    let bob = json!({"email": "bob@example.org", "role": "owner"});
    assert_eq!(t.root().post("/api/workspaces/other/members", &bob).await.status, 201);
    let bob = sign_in(&t, &mail, "bob@example.org").await;
    let eve = browser(&t, &mail, "eve@example.org").await;
    for operation in wire::operations::all() {
        let (method, path) = (operation.method.as_str(), operation.pattern());
        let path = path.as_str();
        let things = Resources::create(&t, path).await;
        let (address, body) = things.request(method, path);
        let row = format!("{method} {path}");
        let (mut content, mut body_text) = ([JSON], body.to_string());
        if method == "GET" {
            body_text.clear();
        }
        if row == "POST /api/apps/*/deployments" {
            (content, body_text) = (ZIP, crate::apps::PAGE.to_owned());
        }
        let plain = t.send(method, &address, &content, &body_text).await;
        let (scope, bound) = match operation.access {
            Access::User | Access::Own => {
                // An upload that names no workflow requires a credential, too.
                let asks = operation.access == Access::User || path == "/api/chat/upload";
                assert_eq!(plain.code() == "auth.missing_token", asks, "{row}");
                // A file with this name does not exist; a webhook may reject the method itself.
                let routed =
                    !["request.not_found", "request.method_not_allowed"].contains(&plain.code().as_str());
                assert!(
                    routed || path == "/assets/*" || path.ends_with("/triggers/webhook"),
                    "{row} has no handler"
                );
                continue;
            }
            Access::Scope(scope) => (scope, true),
            Access::Anywhere(scope) => (scope, false),
        };
        assert_eq!(plain.refusal(), "401 auth.missing_token", "{row}");
        let cookie = eve.send(method, &address, &content, body_text.clone()).await.unwrap();
        assert_eq!(
            cookie.refusal(),
            "401 auth.missing_token",
            "{row}: a browser's cookie gives access to pages only"
        );
        let without: Vec<&str> = texts.iter().copied().filter(|text| *text != scope.as_str()).collect();
        let weak = t.root().token(&without, &[]).await;
        let lacking = t.bearer(&weak).send(method, &address, &content, &body_text).await;
        let status = operation.status_of(wire::ErrorCode::MissingScope);
        assert_eq!((lacking.status, lacking.code().as_str()), (status, "auth.missing_scope"), "{row}");
        assert_eq!(lacking.message(), format!("Missing required scopes: {scope}"), "{row}");
        for (caller, token) in [("nowhere", &nowhere), ("elsewhere", &other_workspace_token), ("bob", &bob)] {
            let is_own = match path {
                // Created resources go to the caller's own workspace, which here is the other one.
                "/api/workflows" | "/api/credentials" | "/api/indexes" | "/api/indexes/*" | "/api/runs"
                | "/api/apps" => caller != "nowhere",
                // Users may have more workspaces.
                "/api/workspaces" => caller == "bob",
                _ => false,
            };
            let answer = t.bearer(token).send(method, &address, &content, &body_text).await;
            let refused = answer.refusal() == "403 auth.workspace_forbidden";
            assert_eq!(refused, bound && !is_own, "{row} {caller}: {}", answer.refusal());
        }
        if row == "POST /api/admin/service-tokens" {
            body_text = json!({"scopes": [], "workspaces": ["default"]}).to_string();
        }
        if row == "POST /api/workspaces" {
            body_text = json!({"slug": format!("right-{}", things.workspace)}).to_string();
        }
        if row == "POST /api/credentials" {
            body_text = json!({"name": format!("right {}", things.run), "secret": "s"}).to_string();
        }
        if row == "POST /api/apps" {
            body_text = json!({"alias": format!("right-{}", things.run), "name": "Another"}).to_string();
        }
        // Only unrestricted callers create and delete workspaces, and rotate the vault key.
        let everywhere = ["POST /api/workspaces", "DELETE /api/workspaces/*", "POST /api/admin/vault/rotate"];
        let everywhere = everywhere.contains(&row.as_str());
        let places = ["default", things.workspace.as_str()];
        let right = t.root().token(&texts, if everywhere { &[] } else { &places }).await;
        let headers = [content[0], ("x-workspace", "default")];
        let inside = path.starts_with("/api/workspaces/");
        let headers = if inside { &headers[..1] } else { &headers[..] };
        let answer = t.bearer(&right).send(method, &address, headers, &body_text).await;
        assert!(answer.is_success(), "{row}: {}", answer.text());
        if !things.training.is_empty() {
            let cancel =
                format!("/api/workflows/{}/trainer/runs/{}/cancel", things.workflow, things.training);
            t.root().post(&cancel, &json!({})).await;
        }
    }
}
