//! Open requests and created resources of a user whose rights end.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{AnswerExt, Bearer, JSON, MailServer, Socket, TestService, graphs, pause};
use serde_json::{Value, json};

use crate::auth::support::sign_in;

const MEMBERS: &str = "/api/workspaces/default/members";
const BOB: &str = "bob@example.org";

/// A service with the member Bob; returns his token and his membership's path.
async fn service(role: &str) -> (TestService, MailServer, String, String) {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .manual_clock()
        .with_bootstrap_token()
        .set("SERVICE_SMTP_URL", mail.url())
        .start()
        .await;
    let added = t.root().post(MEMBERS, &json!({"email": BOB, "role": role})).await.value();
    let bob = sign_in(&t, &mail, BOB).await;
    let path = format!("{MEMBERS}/{}", added["user_id"].as_str().unwrap());
    (t, mail, bob, path)
}

async fn make_token(by: &Bearer<'_>, scopes: &[&str], workspaces: &[&str]) -> (String, String) {
    let request = json!({"scopes": scopes, "workspaces": workspaces});
    let made = by.post("/api/admin/service-tokens", &request).await.expect(201);
    let text = |name: &str| made.value()[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// A user cannot keep lost rights through a token.
#[tokio::test]
async fn tokens_do_not_outlive_the_rights_of_their_maker() {
    let (t, _mail, bob, path) = service("admin").await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let admin = json!({"email": BOB, "role": "admin"});
    assert_eq!(root.post("/api/workspaces/other/members", &admin).await.status, 201);
    let as_bob = t.bearer(&bob);
    let (_, strong) = make_token(&as_bob, &["workflows:read", "admin:workspaces:write"], &["default"]).await;
    let (id, both) = make_token(&as_bob, &["workflows:read"], &["default", "other"]).await;
    let (_, elsewhere) = make_token(&as_bob, &["workflows:read"], &["other"]).await;
    let others = root.token(&["workflows:read"], &["default"]).await;
    let list = async |token: &str, slug: &str| {
        t.bearer(token).send("GET", "/api/workflows", &[("x-workspace", slug)], "").await.refusal()
    };
    assert_eq!(list(&strong, "default").await, "200");
    // He is not an admin any more, so none of these tokens could be created now.
    assert_eq!(root.json("PATCH", &path, &json!({"role": "editor"})).await.status, 200);
    for gone in [&strong, &both] {
        assert_eq!(list(gone, "default").await, "401 auth.invalid_token");
    }
    assert_eq!(list(&elsewhere, "other").await, "200", "nothing has changed there");
    assert_eq!(list(&others, "default").await, "200", "made by another user");
    let shown = root.get(&format!("/api/admin/service-tokens/{id}")).await.value();
    assert_eq!(
        (&shown["status"], &shown["revoked_reason"]),
        (&json!("revoked"), &json!("the creator's role is now editor"))
    );
    let rows = root.get("/api/admin/audit?action=service_token.revoked").await.value();
    assert_eq!(rows["data"].as_array().unwrap().len(), 2);
    // Tokens that an admin elsewhere has created there are revoked with the membership.
    let id = path.rsplit('/').next().unwrap();
    let there = format!("/api/workspaces/other/members/{id}");
    assert_eq!(root.json("DELETE", &there, &json!({})).await.status, 204);
    assert_eq!(list(&elsewhere, "other").await, "401 auth.invalid_token");
}

/// A token's token, a secret obtained by rotating another maker's token, and tokens created with that: all of them end
/// with the first member, and no others do.
#[tokio::test]
async fn tokens_made_by_a_members_tokens_end_with_the_member() {
    for removed in [true, false] {
        let (t, _mail, bob, path) = service("admin").await;
        let root = t.root();
        let all = ["workflows:read", "admin:tokens:write", "admin:tokens:read"];
        let (_, first) = make_token(&t.bearer(&bob), &all, &["default"]).await;
        let (_, second) = make_token(&t.bearer(&first), &all, &["default"]).await;
        let (third_id, third) = make_token(&t.bearer(&second), &["workflows:read"], &["default"]).await;
        // A revoked link in the middle does not break the chain.
        let (middle_id, middle) = make_token(&t.bearer(&second), &all, &["default"]).await;
        let (_, after_middle) = make_token(&t.bearer(&middle), &["workflows:read"], &["default"]).await;
        let revoke = format!("/api/admin/service-tokens/{middle_id}/revoke");
        assert_eq!(root.post(&revoke, &json!({"reason": "lost"})).await.status, 200);
        // Another maker's token, which one of Bob's rotates; its own holder keeps their rights.
        let (others_id, others) = make_token(&root, &all, &["default"]).await;
        let (_, before) = make_token(&t.bearer(&others), &["workflows:read"], &["default"]).await;
        let rotate = format!("/api/admin/service-tokens/{others_id}/rotate");
        let rotated = t.bearer(&second).post(&rotate, &json!({"overlap_seconds": 3600})).await.value();
        let stolen = rotated["secret"].as_str().unwrap().to_owned();
        let (_, with_stolen) = make_token(&t.bearer(&stolen), &["workflows:read"], &["default"]).await;
        let again = t.bearer(&stolen).post(&rotate, &json!({"overlap_seconds": 3600})).await.value();
        let stolen_again = again["secret"].as_str().unwrap().to_owned();
        let list = async |token: &str| t.bearer(token).get("/api/workflows").await.refusal();
        for good in
            [&first, &second, &third, &after_middle, &others, &before, &stolen, &with_stolen, &stolen_again]
        {
            assert_eq!(list(good).await, "200");
        }
        let ended = if removed {
            root.json("DELETE", &path, &json!({})).await.status
        } else {
            root.json("PATCH", &path, &json!({"role": "viewer"})).await.status
        };
        assert!(ended < 300);
        for gone in [&first, &second, &third, &after_middle, &with_stolen] {
            assert_eq!(list(gone).await, "401 auth.invalid_token");
        }
        for over in [&stolen, &stolen_again] {
            assert_eq!(list(over).await, "401 auth.token_expired");
        }
        assert_eq!(list(&others).await, "200", "its holder did not get it from Bob");
        assert_eq!(list(&before).await, "200", "made before, with another secret");
        let shown = root.get(&format!("/api/admin/service-tokens/{third_id}")).await.value();
        let reason =
            if removed { "the creator has left the workspace" } else { "the creator's role is now viewer" };
        assert_eq!(shown["revoked_reason"], reason);
        let rows = root.get("/api/admin/audit?action=service_token.secret_ended").await.value();
        assert_eq!(rows["data"].as_array().unwrap().len(), 2);
    }
}

/// The member's request is in progress when their rights end.
#[tokio::test]
async fn removing_a_member_ends_tokens_that_are_being_created() {
    let (t, _mail, bob, path) = service("admin").await;
    let all = ["workflows:read", "admin:tokens:write"];
    let (id, first) = make_token(&t.bearer(&bob), &all, &["default"]).await;
    let hold = t.hold(&format!("SELECT 1 FROM service_tokens WHERE id = '{id}' FOR UPDATE")).await;
    let request = json!({"scopes": ["workflows:read"], "workspaces": ["default"]});
    let (by_token, root) = (t.bearer(&first), t.root());
    let (nothing, made) = (json!({}), by_token.post("/api/admin/service-tokens", &request));
    let removed = async {
        t.waiting_for_locks(1).await;
        let removal = root.json("DELETE", &path, &nothing);
        let released = async {
            t.waiting_for_locks(2).await;
            hold.release().await;
        };
        tokio::join!(removal, released).0
    };
    let (made, removed) = tokio::join!(made, removed);
    assert_eq!(removed.status, 204);
    if made.status == 201 {
        let secret = made.value()["secret"].as_str().unwrap().to_owned();
        assert_eq!(t.bearer(&secret).get("/api/workflows").await.refusal(), "401 auth.invalid_token");
    } else {
        assert_eq!(made.refusal(), "401 auth.invalid_token");
    }
}

/// The removal succeeds however fast their tokens rotate each other.
#[tokio::test]
async fn rotating_tokens_does_not_delay_the_removal_of_a_member() {
    let (t, _mail, bob, path) = service("admin").await;
    let all = ["workflows:read", "admin:tokens:write"];
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(make_token(&t.bearer(&bob), &all, &["default"]).await);
    }
    let rotating = tokens.iter().enumerate().flat_map(|(own, (_, secret))| {
        let others = tokens.iter().enumerate().filter(move |(other, _)| *other != own);
        others.map(move |(_, (id, _))| (secret.clone(), id.clone()))
    });
    let rotating: Vec<_> = rotating
        .map(async |(secret, id)| {
            let path = format!("/api/admin/service-tokens/{id}/rotate");
            let mut answers = Vec::new();
            for _ in 0..5 {
                let answer = t.bearer(&secret).post(&path, &json!({"overlap_seconds": 3600})).await;
                answers.push(answer.status);
            }
            answers
        })
        .collect();
    let removal = async {
        pause(100).await;
        t.root().json("DELETE", &path, &json!({})).await.status
    };
    let (answers, removed) = tokio::join!(join_all(rotating), removal);
    assert_eq!(removed, 204);
    let answers: std::collections::BTreeSet<u16> = answers.into_iter().flatten().collect();
    assert!(answers.iter().all(|status| [200, 401, 403, 409, 429].contains(status)), "{answers:?}");
    let left = "SELECT count(*) FROM service_tokens WHERE revoked_at IS NULL";
    assert_eq!(t.scalar(left).await, "0");
}

#[tokio::test]
async fn every_member_may_leave_but_the_last_owner() {
    let (t, _mail, bob, path) = service("viewer").await;
    let bob = t.bearer(&bob);
    let eve = t.root().post(MEMBERS, &json!({"email": "eve@example.org", "role": "viewer"})).await.value();
    let eve = format!("{MEMBERS}/{}", eve["user_id"].as_str().unwrap());
    assert_eq!(
        bob.json("DELETE", &eve, &json!({})).await.refusal(),
        "403 auth.missing_scope",
        "only oneself"
    );
    assert_eq!(bob.json("DELETE", &path, &json!({})).await.status, 204);
    assert_eq!(bob.get("/api/workflows").await.refusal(), "403 auth.missing_scope");
    let removed = t.root().get("/api/admin/audit?action=member.removed").await.value();
    assert_eq!(removed["data"][0]["reason"], "was viewer");

    let (t, _mail, bob, path) = service("owner").await;
    let alone = t.bearer(&bob).json("DELETE", &path, &json!({})).await;
    assert_eq!(alone.refusal(), "409 workspace.last_owner");
}

#[tokio::test]
async fn lost_rights_close_sockets_and_streams_within_five_seconds() {
    let (t, _mail, bob, path) = service("editor").await;
    let workflow = t.workflow().graph(graphs::delayed(600.0, "late")).create().await;
    let authorization = format!("Bearer {bob}");
    let headers = [("authorization", authorization.as_str())];
    let mut socket = Socket::for_workflow(&t, &workflow, &headers).await;
    let runs = workflow.path("/runs");
    let run = t.bearer(&bob).post(&runs, &json!({"inputs": {"message": "x"}})).await.value();
    let events = format!("/api/runs/{}/events", run["id"].as_str().unwrap());
    let mut stream = t.open("GET", &events, &headers, "").await.expect(200);
    stream.until("id: ").await;
    assert_eq!(t.root().json("DELETE", &path, &json!({})).await.status, 204);
    let began = kernel::Clock::monotonic(t.clock());
    let ends = async { tokio::join!(socket.closed(), stream.rest()) };
    let (closed, _) = t.while_time_passes(ends).await;
    assert_eq!(closed, "4403 auth.missing_scope");
    let taken = kernel::Clock::monotonic(t.clock()) - began;
    // The clock runs much faster than the machine works, and the run itself would take ten minutes.
    assert!(taken <= Duration::from_mins(1), "{taken:?}");
    let cancel = format!("/api/runs/{}/cancel", run["id"].as_str().unwrap());
    assert_eq!(t.while_time_passes(t.root().post(&cancel, &json!({}))).await.status, 200);
}

/// A sender who delays a body's last byte is checked again when it arrives.
#[tokio::test]
async fn rights_are_checked_again_after_a_slow_body() {
    let (t, _mail, bob, path) = service("admin").await;
    let body = json!({"email": "sock@example.org", "role": "admin"}).to_string();
    let (first, last) = body.split_at(body.len() - 1);
    let mut raw = t.raw().await;
    let head = format!(
        "POST {MEMBERS} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bob}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{first}",
        t.address(),
        body.len()
    );
    assert!(raw.write(head).await);
    // The head is checked, and the service waits for the rest.
    pause(300).await;
    assert_eq!(t.root().json("DELETE", &path, &json!({})).await.status, 204);
    t.advance(Duration::from_secs(3));
    assert!(raw.write(last).await);
    let answer = raw.answer().await.whole().await;
    assert_eq!(answer.refusal(), "403 auth.missing_scope", "{}", answer.text());
    let all = t.root().get(MEMBERS).await.value();
    assert_eq!(all["data"], json!([]));
}

/// An editor by now can neither grant nor revoke anything, however little.
#[tokio::test]
async fn changes_of_a_former_admin_are_rejected() {
    let (t, _mail, bob, _) = service("admin").await;
    let eve = t.root().post(MEMBERS, &json!({"email": "eve@example.org", "role": "viewer"})).await.value();
    let of_eve = format!("{MEMBERS}/{}", eve["user_id"].as_str().unwrap());
    // Their change waits for this one, which has locked the members.
    let holds = "SELECT 1 FROM workspaces WHERE slug = 'default' FOR NO KEY UPDATE; \
                 UPDATE workspace_members SET role = 'editor' WHERE role = 'admin'";
    let hold = t.hold(holds).await;
    let bob = t.bearer(&bob);
    let changes = async {
        let new = json!({"email": "new@example.org", "role": "viewer"});
        let (nothing, viewer) = (json!({}), json!({"role": "viewer"}));
        tokio::join!(
            bob.post(MEMBERS, &new),
            bob.json("DELETE", &of_eve, &nothing),
            bob.json("PATCH", &of_eve, &viewer)
        )
    };
    let released = async {
        t.waiting_for_locks(3).await;
        hold.release().await;
    };
    let ((), (added, removed, changed)) = tokio::join!(released, changes);
    for answer in [added, removed, changed] {
        assert_eq!(answer.refusal(), "403 auth.missing_scope", "{}", answer.text());
    }
    let roles = "SELECT string_agg(role, ' ' ORDER BY role) FROM workspace_members";
    assert_eq!(t.scalar(roles).await, "editor viewer");
}

/// Two admins demote each other concurrently: the second is not an admin any more.
#[tokio::test]
async fn one_of_two_admins_who_demote_each_other_stays() {
    let (t, mail, bob, path) = service("admin").await;
    let ada = t.root().post(MEMBERS, &json!({"email": "ada@example.org", "role": "admin"})).await.value();
    let of_ada = format!("{MEMBERS}/{}", ada["user_id"].as_str().unwrap());
    let ada = sign_in(&t, &mail, "ada@example.org").await;
    let (bob, ada) = (t.bearer(&bob), t.bearer(&ada));
    for _ in 0..6 {
        let viewer = json!({"role": "viewer"});
        let (one, other) =
            tokio::join!(bob.json("PATCH", &of_ada, &viewer), ada.json("PATCH", &path, &viewer));
        let mut both = [one.refusal(), other.refusal()];
        both.sort();
        assert_eq!(both, ["200", "403 auth.missing_scope"]);
        for member in [&path, &of_ada] {
            let admin = json!({"role": "admin"});
            assert_eq!(t.root().json("PATCH", member, &admin).await.status, 200);
        }
    }
}

/// A key identifies a request in one workspace.
#[tokio::test]
async fn idempotency_keys_are_scoped_to_a_workspace() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    assert_eq!(t.root().post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let make = async |slug: &str| -> Value {
        let headers = [("x-workspace", slug), ("idempotency-key", "k"), JSON];
        t.root().send("POST", "/api/workflows", &headers, r#"{"name":"Desk"}"#).await.expect(201).value()
    };
    let (here, there) = (make("default").await, make("other").await);
    assert_ne!(here["workspace_id"], there["workspace_id"]);
    assert_eq!(make("other").await, there);
    let all = ["default", "other"].map(|slug| {
        let t = &t;
        async move { t.root().send("GET", "/api/workflows", &[("x-workspace", slug)], "").await.value() }
    });
    for list in join_all(all).await {
        assert_eq!(list.as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn expired_invitations_and_their_accounts_are_deleted() {
    let (t, _mail, _bob, _path) = service("editor").await;
    let eve = json!({"email": "eve@example.org", "role": "viewer"});
    assert_eq!(t.root().post(MEMBERS, &eve).await.status, 201);
    t.while_time_passes_in(Duration::from_secs(86_400), async {
        t.until_scalar("the account to go", "SELECT string_agg(email, ' ') FROM users", BOB).await;
    })
    .await;
    assert_eq!(t.scalar("SELECT count(*) FROM workspace_members").await, "1");
}

/// Visitor data is for admins and owners; an editor may change workflows but not read chats.
#[tokio::test]
async fn visitor_data_requires_an_admin() {
    let (t, _mail, bob, path) = service("editor").await;
    let workflow = t.workflow().graph(graphs::reply("hi")).published().create().await;
    let chat = workflow.path("/chat");
    t.while_time_passes(t.visitor().say(&workflow.id, "hello")).await.unwrap();
    let threads = format!("{chat}/threads");
    let listed = t.root().get(&threads).await.value();
    let (thread, visitor) =
        (listed["data"][0]["id"].as_str().unwrap(), listed["data"][0]["visitor"].as_str().unwrap());
    let as_bob = t.bearer(&bob);
    let all = async || {
        [
            as_bob.get(&threads).await.refusal(),
            as_bob.get(&format!("{threads}/{thread}/items")).await.refusal(),
            as_bob.json("PATCH", &format!("{threads}/{thread}"), &json!({"title": "T"})).await.refusal(),
            as_bob.get(&format!("{chat}/visitors/{visitor}/export")).await.refusal(),
            t.while_time_passes(as_bob.json("DELETE", &format!("{chat}/visitors/{visitor}"), &json!({})))
                .await
                .refusal(),
        ]
    };
    assert_eq!(as_bob.get(&workflow.path("")).await.status, 200);
    assert_eq!(all().await, ["403 auth.missing_scope"; 5]);
    assert_eq!(t.root().json("PATCH", &path, &json!({"role": "admin"})).await.status, 200);
    assert_eq!(all().await, ["200"; 5]);
    t.assert_no_rows("thread_items").await;
}

#[tokio::test]
async fn changing_a_rollout_requires_an_admin() {
    let (t, _mail, bob, path) = service("editor").await;
    let workflow = t.workflow().graph(graphs::reply("one")).create().await;
    let at = workflow.path("");
    let second = json!({"graph": graphs::reply("two")});
    let as_bob = t.bearer(&bob);
    assert_eq!(as_bob.post(&format!("{at}/versions"), &second).await.status, 201);
    let canary = json!({"canary": {"version": 2, "percent": 5}});
    let all = async || {
        [
            as_bob.get(&format!("{at}/rollout")).await.refusal(),
            as_bob.json("PUT", &format!("{at}/rollout"), &canary).await.refusal(),
            as_bob.post(&format!("{at}/rollout/promote"), &json!({})).await.refusal(),
            as_bob.post(&format!("{at}/versions/1/live"), &json!({"force": true})).await.refusal(),
        ]
    };
    let refused = "403 auth.missing_scope";
    assert_eq!(all().await, ["200", refused, refused, refused]);
    assert_eq!(t.root().json("PATCH", &path, &json!({"role": "admin"})).await.status, 200);
    assert_eq!(all().await, ["200"; 4]);
    let denied = "SELECT count(*) FROM audit_log WHERE action = 'auth.denied' AND outcome = 'denied'";
    assert_eq!(t.scalar(denied).await, "3");
}
