//! `callboard token …`, `callboard audit`, and permission to publish.

use integration_tests::{BOOTSTRAP, TestService, graphs};
use serde_json::Value;

use super::json_of;
use super::terminal::{CommandResult, Terminal};

async fn service() -> (TestService, Terminal) {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    (t, terminal)
}

/// A token from a command's output: its id and its secret.
fn issued(ran: &CommandResult) -> (String, String) {
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    let secret = ran.out.strip_suffix('\n').unwrap();
    assert!(secret.starts_with("svc_") && !secret.contains(char::is_whitespace), "the secret alone");
    assert!(!ran.err.contains(secret), "{}", ran.err);
    let id = ran.err.split_once("service token ").unwrap().1;
    (id[..36].to_owned(), secret.to_owned())
}

fn refused(ran: &CommandResult, status: i32, code: &str) {
    assert_eq!((ran.status, ran.out.as_str()), (Some(status), ""), "{}", ran.err);
    assert!(ran.err.starts_with("error: ") && ran.err.contains(&format!("({code})")), "{}", ran.err);
}

#[tokio::test]
async fn the_first_token_of_an_open_service_comes_with_an_admin_token() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let made = terminal.run(&["token", "create", "--scope", "workflows:read"]).await;
    assert_eq!(made.status, Some(0), "{}", made.err);
    assert!(made.err.contains("authentication is now required"), "{}", made.err);
    let admin = made.err.lines().find(|line| line.starts_with("svc_")).unwrap();
    assert_ne!(made.out.trim_end(), admin);
    terminal.with_token(admin).output_of(&["workflow", "create", "One"]).await;
    let list = terminal.with_token(made.out.trim_end()).output_of(&["workflow", "list"]).await;
    assert!(list.contains("One"), "{list}");
    let refused = terminal.run(&["workflow", "list"]).await;
    assert_eq!(refused.status, Some(3), "{}", refused.err);
}

#[tokio::test]
async fn a_token_is_created_used_rotated_revoked_and_audited() {
    let (_t, terminal) = service().await;
    let none = terminal.run(&["token", "list"]).await;
    assert_eq!((none.status, none.out.as_str()), (Some(0), ""));
    assert!(none.err.starts_with("No service tokens found."), "{}", none.err);
    let made = terminal
        .run(&[
            "token",
            "create",
            "--name",
            "build server",
            "--scope",
            "workflows:read",
            "--scope",
            "workflows:write",
            "--workspace",
            "default",
            "--expires-in",
            "3600",
        ])
        .await;
    let (id, secret) = issued(&made);
    assert!(made.err.starts_with(&format!("Created service token {id} \"build server\".\n")), "{}", made.err);
    assert!(made.err.contains("It expires at 20") && made.err.ends_with(" The secret is shown only once:\n"));

    let build = terminal.with_token(&secret);
    build.output_of(&["workflow", "create", "One"]).await;
    let listed = terminal.output_of(&["token", "list"]).await;
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "STATUS", "ISSUED", "EXPIRES", "WORKSPACES", "NAME", "SCOPES"]);
    assert_eq!((lines.len(), lines[1][0], lines[1][1], lines[1][5]), (2, id.as_str(), "active", "default"));
    assert!(listed.ends_with("  build server  workflows:read,workflows:write\n"), "{listed}");
    let shown = terminal.output_of(&["token", "show", &id]).await;
    assert!(shown.starts_with(&format!("{id} \"build server\"\nstatus     active\n")), "{shown}");
    for line in ["scopes     workflows:read, workflows:write\n", "workspaces default\n", " by bootstrap\n"] {
        assert!(shown.contains(line), "{shown}");
    }

    let rotated = terminal.run(&["token", "rotate", &id, "--overlap", "600"]).await;
    let (same, second) = issued(&rotated);
    assert!(
        same == id && second != secret && rotated.err.contains("stays valid for 600 s"),
        "{}",
        rotated.err
    );
    let (_, third) = issued(&terminal.run(&["token", "rotate", &id, "--overlap", "600"]).await);
    for good in [&secret, &second, &third] {
        terminal.with_token(good).output_of(&["workflow", "list"]).await;
    }
    let rotated = terminal.run(&["token", "rotate", &id]).await;
    let (_, last) = issued(&rotated);
    assert!(rotated.err.contains("the previous one is no longer valid"), "{}", rotated.err);
    for old in [&secret, &second, &third] {
        refused(&terminal.with_token(old).run(&["workflow", "list"]).await, 3, "auth.token_expired");
    }

    let why = ["token", "revoke", id.as_str(), "--reason", "Left\u{1b}[2Jthe team."];
    refused(&terminal.run(&why).await, 1, "request.invalid");
    for _ in 0..2 {
        let revoked = terminal.output_of(&["token", "revoke", &id, "--reason", "Left the team."]).await;
        assert_eq!(revoked, format!("Revoked service token {id} \"build server\".\n"));
    }
    refused(&terminal.with_token(&last).run(&["workflow", "list"]).await, 3, "auth.invalid_token");
    refused(&terminal.run(&["token", "rotate", &id]).await, 1, "service_token.not_active");
    assert!(terminal.output_of(&["token", "show", &id]).await.contains(": Left the team.\n"));
    assert_eq!(
        terminal.run(&["token", "list", "--status", "active"]).await.err,
        "No active service tokens found.\n"
    );
    assert!(terminal.output_of(&["token", "list", "--status", "revoked"]).await.contains(&id));

    let trail = terminal.output_of(&["audit"]).await;
    assert!(trail.starts_with("AT                    OUTCOME  ACTION"), "{trail}");
    let of_token: Vec<&str> = trail
        .lines()
        .filter(|line| line.contains(&format!("service_token:{id}")) && line.contains("  success  "))
        .map(|line| line.split_whitespace().nth(3).unwrap())
        .collect();
    let rotations = ["service_token.rotated"; 3];
    assert_eq!(of_token.first(), Some(&"service_token.revoked"), "{trail}");
    assert_eq!(&of_token[1..4], rotations, "{trail}");
    assert_eq!(of_token.last(), Some(&"service_token.created"), "{trail}");
    let denied = terminal.output_of(&["audit", "--outcome", "denied", "--action", "auth.failed"]).await;
    assert!(denied.lines().skip(1).all(|line| line.contains("  denied   auth.failed  ")), "{denied}");
    let few = terminal.json_of(&["audit", "--limit", "2", "--output", "json"]).await;
    assert_eq!(few.as_array().unwrap().len(), 2);
    let by = terminal.json_of(&["audit", "--actor", &id, "--output", "json"]).await;
    assert!(by.as_array().unwrap().iter().all(|row| row["actor"]["id"] == id.as_str()), "{by}");
    let unknown_actor = terminal.run(&["audit", "--actor", "nobody"]).await;
    assert_eq!((unknown_actor.out.as_str(), unknown_actor.err.as_str()), ("", "No audit rows found.\n"));
    for secret in [&secret, &second, &third, &last, &BOOTSTRAP.to_owned()] {
        assert!(!trail.contains(secret.as_str()) && !shown.contains(secret.as_str()));
    }
}

#[tokio::test]
async fn a_rejected_token_is_reported_with_its_reason_and_status() {
    let (_t, terminal) = service().await;
    let slip = terminal.run(&["token", "create", "--scope", "workflow:read", "--expires-in", "0"]).await;
    refused(&slip, 1, "request.invalid");
    assert!(slip.err.contains("\n  /scopes/0: ") && slip.err.contains("workflows:read"), "{}", slip.err);
    assert!(slip.err.contains("\n  /expires_in: "), "{}", slip.err);
    let slip = terminal.run(&["token", "create", "--scope", "workflow:read", "--output", "json"]).await;
    assert_eq!((slip.status, slip.out.as_str()), (Some(1), ""));
    assert_eq!(json_of(&slip.err)["detail"]["errors"][0]["pointer"], "/scopes/0");

    let (_, small) = issued(&terminal.run(&["token", "create", "--scope", "workflows:read"]).await);
    let reader = terminal.with_token(&small);
    for command in [
        ["token", "list"].as_slice(),
        &["token", "create", "--scope", "workflows:read"],
        &["audit"],
        &["token", "revoke", "0193b3c4-0000-7000-8000-000000000000", "--reason", "x"],
    ] {
        let ran = reader.run(command).await;
        refused(&ran, 3, "auth.missing_scope");
        assert!(ran.err.starts_with("error: Missing required scopes: admin:tokens:"), "{}", ran.err);
        assert!(!ran.err.contains(&small));
    }
    let scopes = ["token", "create", "--scope", "admin:tokens:write"];
    let (_, maker) = issued(&terminal.run(&scopes).await);
    let more = ["token", "create", "--scope", "workflows:write"];
    refused(&terminal.with_token(&maker).run(&more).await, 3, "auth.missing_scope");
    let anonymous = Terminal::at(terminal.address()).run(&["token", "list"]).await;
    refused(&anonymous, 3, "auth.missing_token");
    assert!(anonymous.err.contains("SERVICE_SERVICE_TOKEN"), "{}", anonymous.err);

    for unknown in ["0193b3c4-0000-7000-8000-000000000000", "x/y"] {
        let ran = terminal.run(&["token", "show", unknown]).await;
        refused(&ran, 1, "service_token.not_found");
        assert!(ran.err.contains("`callboard token list`"), "{}", ran.err);
    }
    let useless = terminal.run(&["token", "create"]).await;
    issued(&useless);
    assert!(useless.err.contains("It has no scope") && useless.err.contains("It does not expire."));
    for usage in [
        ["token", "revoke", "x"].as_slice(),
        &["token", "rotate"],
        &["token", "rotate", "x", "--overlap", "soon"],
        &["token", "list", "--status", "gone"],
        &["audit", "--outcome", "maybe"],
        &["audit", "--limit", "0"],
        &["token", "show", ".."],
    ] {
        let ran = terminal.run(usage).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{usage:?}: {}", ran.err);
    }
    for help in [["token", "create", "--help"].as_slice(), &["--help"], &["audit", "--help"]] {
        assert!(!terminal.output_of(help).await.contains(BOOTSTRAP), "{help:?}");
    }
}

#[tokio::test]
async fn json_prints_the_whole_response_and_a_closed_reader_ends_quietly() {
    let (_t, terminal) = service().await;
    let made = ["token", "create", "--scope", "workflows:read", "--output", "json"];
    let made = terminal.run(&made).await;
    let record = json_of(&made.out);
    assert_eq!(made.err, "");
    assert!(record["secret"].as_str().unwrap().starts_with("svc_"));
    let id = record["id"].as_str().unwrap();
    let rotated = terminal.json_of(&["--output", "json", "token", "rotate", id]).await;
    assert!(rotated["id"] == id && rotated["secret"] != record["secret"]);
    let shown = terminal.json_of(&["token", "show", id, "--output", "json"]).await;
    assert!(shown["status"] == "active" && shown.get("secret").is_none(), "{shown}");
    let listed = terminal.json_of(&["token", "list", "--output", "json"]).await;
    assert_eq!(listed, Value::Array(vec![shown]));
    let revoke = ["token", "revoke", id, "--reason", "done", "--output", "json"];
    assert_eq!(terminal.json_of(&revoke).await["revoked_reason"], "done");
    let mut audit = terminal.command(&["audit", "--output", "json"]);
    let mut child = audit.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]));
}

#[tokio::test]
async fn a_permitted_caller_publishes_with_a_login_and_unpublishes() {
    let (_t, terminal) = service().await;
    let graph = terminal.file("graph.json", graphs::reply("hi"));
    terminal.output_of(&["workflow", "upload", "desk", &graph, "--create"]).await;
    let scopes = ["token", "create", "--scope", "workflows:read"];
    let (_, small) = issued(&terminal.run(&scopes).await);
    for command in ["publish", "unpublish"] {
        let ran = terminal.with_token(&small).run(&["workflow", command, "desk"]).await;
        refused(&ran, 3, "auth.missing_scope");
    }
    let published = terminal.run(&["workflow", "publish", "desk", "--require-login"]).await;
    assert_eq!(published.status, Some(0), "{}", published.err);
    assert_eq!(published.out.lines().count(), 1, "{}", published.out);
    assert!(published.err.contains("Signed-in users"), "{}", published.err);
    let record = terminal.json_of(&["workflow", "show", "desk", "--output", "json"]).await;
    assert_eq!(
        (&record["is_public"], &record["require_login"], &record["share_url"]),
        (&true.into(), &true.into(), &published.out.trim_end().into())
    );
    // Options that are not given stay unchanged.
    let again = terminal.output_of(&["workflow", "publish", "desk", "--output", "json"]).await;
    assert_eq!(json_of(&again)["workflow"]["require_login"], true);
    terminal.output_of(&["workflow", "publish", "desk", "--require-login=false"]).await;
    let closed = terminal.json_of(&["workflow", "unpublish", "desk", "--output", "json"]).await;
    assert_eq!((&closed["is_public"], &closed["require_login"]), (&false.into(), &false.into()));
    let refusal = terminal.run(&["workflow", "publish", "nothing", "--require-login"]).await;
    refused(&refusal, 1, "workflow.not_found");
    let trail = terminal.output_of(&["audit"]).await;
    for action in ["workflow.published", "workflow.unpublished"] {
        assert!(trail.contains(&format!("  success  {action}")), "{trail}");
    }
}
