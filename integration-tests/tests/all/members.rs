//! Workspace members: invitations by mail, roles, removal.

use chrono::TimeDelta;
use integration_tests::{AnswerExt, Bearer, MailServer, TestService};
use serde_json::{Value, json};

use crate::auth::support::sign_in;

const MEMBERS: &str = "/api/workspaces/default/members";
const ADA: &str = "ada@example.org";
const BOB: &str = "bob@example.org";

async fn service(variables: &[(&str, &str)]) -> (TestService, MailServer) {
    let mail = MailServer::start().await;
    let builder = TestService::builder().manual_clock().with_bootstrap_token();
    let builder = builder.set("SERVICE_SMTP_URL", mail.url()).set_all(variables.iter().copied());
    (builder.start().await, mail)
}

async fn invite(by: &Bearer<'_>, email: &str, role: &str) -> Value {
    by.post(MEMBERS, &json!({"email": email, "role": role})).await.expect(201).value()
}

fn member(record: &Value) -> String {
    format!("{MEMBERS}/{}", record["user_id"].as_str().unwrap())
}

/// Address, role and status of all members.
async fn member_rows(t: &TestService) -> Vec<[String; 3]> {
    let list = t.root().get(MEMBERS).await.value();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |found: &Value| ["email", "role", "status"].map(|name| text(&found[name]));
    list["data"].as_array().unwrap().iter().map(row).collect()
}

fn row(email: &str, role: &str, status: &str) -> [String; 3] {
    [email, role, status].map(str::to_owned)
}

#[tokio::test]
async fn an_invitation_is_accepted_by_the_first_sign_in() {
    let (t, mail) = service(&[("SERVICE_SIGNUP", "members")]).await;
    let invited = invite(&t.root(), BOB, "editor").await;
    assert_eq!((&invited["role"], &invited["status"]), (&json!("editor"), &json!("invited")));
    let letter = mail.mail(1).await;
    assert_eq!(letter.to, [BOB]);
    assert!(letter.header("subject").unwrap().starts_with("Invitation to \"Default\" on "));
    assert_eq!(letter.link(), Some(format!("{}/login", t.client().base().trim_end_matches('/'))));
    assert!(letter.data.contains("as editor"), "{}", letter.data);
    assert_eq!(member_rows(&t).await, [row(BOB, "editor", "invited")]);
    let bob = sign_in(&t, &mail, BOB).await;
    assert_eq!(member_rows(&t).await, [row(BOB, "editor", "active")]);
    let bob = t.bearer(&bob);
    assert_eq!(bob.get("/api/auth/me").await.value()["workspaces"][0]["role"], "editor");
    assert_eq!(bob.post("/api/workflows", &json!({"name": "Desk"})).await.status, 201);
    assert_eq!(bob.get(MEMBERS).await.status, 200);
    let refused = bob.post(MEMBERS, &json!({"email": ADA, "role": "viewer"})).await;
    assert_eq!(refused.refusal(), "403 auth.missing_scope", "editors cannot invite");
    // A user with an account becomes a member without accepting an invitation.
    t.root().post("/api/workspaces", &json!({"slug": "other"})).await;
    let body = json!({"email": BOB, "role": "viewer"});
    let added = t.root().post("/api/workspaces/other/members", &body).await;
    assert_eq!((added.status, &added.value()["status"]), (201, &json!("active")));
    assert_eq!(bob.get("/api/workflows").await.refusal(), "400 workspace.required");
    let rows = t.root().get("/api/admin/audit?action=member.invited").await.value();
    assert_eq!(rows["data"][0]["reason"], "as editor");
    assert_eq!(rows["data"][0]["target"]["id"], invited["user_id"]);
}

#[tokio::test]
async fn an_invitation_expires_and_is_renewed() {
    let (t, mail) = service(&[("SERVICE_SIGNUP", "members")]).await;
    let root = t.root();
    let body = json!({"email": BOB, "role": "editor"});
    let invited = invite(&root, BOB, "editor").await;
    mail.mail(1).await;
    t.advance(TimeDelta::days(6).to_std().unwrap());
    let again = root.post(MEMBERS, &body).await;
    assert_eq!((again.status, &again.value()["user_id"]), (200, &invited["user_id"]));
    mail.mail(2).await;
    let other = root.post(MEMBERS, &json!({"email": BOB, "role": "viewer"})).await;
    assert_eq!(other.refusal(), "409 workspace.member_has_other_role");
    t.advance(TimeDelta::days(7).to_std().unwrap());
    assert_eq!(member_rows(&t).await, [row(BOB, "editor", "expired")]);
    // The invitation is withdrawn, so no mail lets them in.
    t.post("/api/auth/email/start", &json!({"email": BOB}).to_string()).await.expect(202);
    assert_eq!(root.post(MEMBERS, &json!({"email": ADA, "role": "viewer"})).await.status, 201);
    assert_eq!(mail.mail(3).await.to, [ADA], "bob was sent no mail");
    let renewed = root.post(MEMBERS, &json!({"email": BOB, "role": "viewer"})).await;
    assert_eq!((renewed.status, &renewed.value()["role"]), (201, &json!("viewer")));
    mail.mail(4).await;
    sign_in(&t, &mail, BOB).await;
    assert_eq!(member_rows(&t).await, [row(BOB, "viewer", "active"), row(ADA, "viewer", "invited")]);
    root.post(MEMBERS, &json!({"email": BOB, "role": "viewer"})).await.expect(200);
    assert_eq!(mail.mails().len(), 5, "a member is not invited");
}

#[tokio::test]
async fn an_expired_invitation_grants_no_access() {
    let (t, mail) = service(&[]).await;
    invite(&t.root(), BOB, "owner").await;
    mail.mail(1).await;
    t.advance(TimeDelta::days(8).to_std().unwrap());
    let bob = sign_in(&t, &mail, BOB).await;
    assert_eq!(t.bearer(&bob).get("/api/auth/me").await.value()["workspaces"], json!([]));
    assert_eq!(member_rows(&t).await, [[""; 3]; 0]);
}

#[tokio::test]
async fn roles_above_the_callers_cannot_be_granted_or_removed() {
    let (t, mail) = service(&[("SERVICE_OWNER_EMAIL", ADA)]).await;
    let ada = sign_in(&t, &mail, ADA).await;
    let ada = t.bearer(&ada);
    let owner = ada.get(MEMBERS).await.value()["data"][0].clone();
    invite(&ada, BOB, "admin").await;
    mail.mail(2).await;
    let bob = sign_in(&t, &mail, BOB).await;
    let bob = t.bearer(&bob);
    let eve = invite(&bob, "eve@example.org", "viewer").await;
    let give = |role: &str| json!({"email": "new@example.org", "role": role});
    assert_eq!(bob.post(MEMBERS, &give("owner")).await.refusal(), "403 auth.missing_scope");
    for (path, body, expected) in [
        (member(&eve), json!({"role": "admin"}), "200"),
        (member(&eve), json!({"role": "owner"}), "403 auth.missing_scope"),
        (member(&owner), json!({"role": "viewer"}), "403 auth.missing_scope"),
        (member(&eve), json!({"role": "editor"}), "200"),
    ] {
        assert_eq!(bob.json("PATCH", &path, &body).await.refusal(), expected, "{body}");
    }
    assert_eq!(bob.json("DELETE", &member(&owner), &json!({})).await.refusal(), "403 auth.missing_scope");
    assert_eq!(bob.json("DELETE", &member(&eve), &json!({})).await.status, 204);
    assert_eq!(
        bob.json("DELETE", &member(&eve), &json!({})).await.refusal(),
        "404 workspace.member_not_found"
    );
    // A workspace's token can grant the rights that it has, but cannot change owners.
    let token = t.root().token(&["admin:workspaces:write"], &["default"]).await;
    let refused = t.bearer(&token).post(MEMBERS, &give("viewer")).await;
    assert_eq!(refused.refusal(), "403 auth.missing_scope");
    let texts: Vec<&str> = auth::scope::Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let token = t.root().token(&texts, &["default"]).await;
    assert_eq!(t.bearer(&token).post(MEMBERS, &give("owner")).await.refusal(), "403 auth.missing_scope");
    assert_eq!(t.bearer(&token).post(MEMBERS, &give("admin")).await.status, 201);
    let denied = t.root().get("/api/admin/audit?action=auth.denied").await.value();
    assert_eq!(denied["data"].as_array().unwrap().len(), 6, "{denied}");
}

#[tokio::test]
async fn role_changes_apply_to_the_next_request_and_one_owner_stays() {
    let (t, mail) = service(&[("SERVICE_OWNER_EMAIL", ADA)]).await;
    let ada = sign_in(&t, &mail, ADA).await;
    let ada = t.bearer(&ada);
    let owner = ada.get(MEMBERS).await.value()["data"][0].clone();
    for (method, body) in [("PATCH", json!({"role": "admin"})), ("DELETE", json!({}))] {
        assert_eq!(ada.json(method, &member(&owner), &body).await.refusal(), "409 workspace.last_owner");
    }
    let bob = invite(&ada, BOB, "owner").await;
    mail.mail(2).await;
    let still = ada.json("DELETE", &member(&owner), &json!({})).await;
    assert_eq!(still.refusal(), "409 workspace.last_owner", "the invitation is not accepted yet");
    let token = sign_in(&t, &mail, BOB).await;
    let as_bob = t.bearer(&token);
    assert_eq!(as_bob.json("PATCH", &member(&owner), &json!({"role": "viewer"})).await.status, 200);
    assert_eq!(ada.post("/api/workflows", &json!({"name": "x"})).await.refusal(), "403 auth.missing_scope");
    assert_eq!(ada.get("/api/workflows").await.status, 200);
    assert_eq!(as_bob.json("DELETE", &member(&owner), &json!({})).await.status, 204);
    assert_eq!(ada.get("/api/workflows").await.refusal(), "403 auth.missing_scope", "no longer a member");
    assert_eq!(ada.get("/api/auth/me").await.status, 200, "the account is kept");
    assert_eq!(as_bob.json("DELETE", &member(&bob), &json!({})).await.refusal(), "409 workspace.last_owner");
}

/// Two owners remove each other concurrently: one stays.
#[tokio::test]
async fn one_owner_stays_when_two_owners_remove_each_other() {
    let (t, mail) = service(&[("SERVICE_OWNER_EMAIL", ADA)]).await;
    for round in 0..8 {
        // Invitation mails per recipient and hour are limited.
        t.advance(TimeDelta::hours(1).to_std().unwrap());
        let slug = format!("round-{round}");
        assert_eq!(t.root().post("/api/workspaces", &json!({"slug": slug})).await.status, 201);
        let path = format!("/api/workspaces/{slug}/members");
        let mut ids = Vec::new();
        for email in [ADA, BOB] {
            if round == 0 {
                sign_in(&t, &mail, email).await;
            }
            let added = t.root().post(&path, &json!({"email": email, "role": "owner"})).await.value();
            ids.push(added["user_id"].as_str().unwrap().to_owned());
        }
        let root = t.root();
        let remove =
            async |id: &str| root.json("DELETE", &format!("{path}/{id}"), &json!({})).await.refusal();
        let (one, other) = tokio::join!(remove(&ids[0]), remove(&ids[1]));
        let mut both = [one, other];
        both.sort();
        assert_eq!(both, ["204", "409 workspace.last_owner"]);
    }
}

#[tokio::test]
async fn invitations_per_workspace_are_limited() {
    let (t, _mail) = service(&[]).await;
    let root = t.root();
    for n in 0..100 {
        let body = json!({"email": format!("n{n}@example.org"), "role": "viewer"});
        assert_eq!(root.post(MEMBERS, &body).await.status, 201);
    }
    let more = json!({"email": "more@example.org", "role": "viewer"});
    let refused = root.post(MEMBERS, &more).await;
    assert_eq!(refused.refusal(), "429 workspace.too_many_invitations");
    assert_eq!(refused.header("retry-after"), Some("600"));
    assert_eq!(
        root.get(&format!("{MEMBERS}?limit=200")).await.value()["data"].as_array().unwrap().len(),
        100
    );
    t.advance(TimeDelta::minutes(61).to_std().unwrap());
    assert_eq!(root.post(MEMBERS, &more).await.status, 201);
}

#[tokio::test]
async fn invalid_member_requests_change_nothing() {
    let (t, _mail) = service(&[]).await;
    let root = t.root();
    for body in [json!({}), json!({"email": "x", "role": "viewer"}), json!({"email": BOB, "role": "root"})] {
        assert_eq!(root.post(MEMBERS, &body).await.refusal(), "422 request.invalid", "{body}");
    }
    let unknown_member = format!("{MEMBERS}/00000000-0000-7000-8000-000000000000");
    for path in [unknown_member.as_str(), "/api/workspaces/default/members/bob"] {
        let refused = root.json("PATCH", path, &json!({"role": "viewer"})).await;
        assert_eq!(refused.refusal(), "404 workspace.member_not_found", "{path}");
    }
    assert_eq!(root.get("/api/workspaces/gone/members").await.refusal(), "404 workspace.not_found");
    assert_eq!(member_rows(&t).await, [[""; 3]; 0]);
}
