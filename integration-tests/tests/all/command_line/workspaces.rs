//! `callboard workspace …`, and commands that work in one of several workspaces.

use integration_tests::{BOOTSTRAP, MailServer, TestService, graphs};
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::auth::support::sign_in;

#[tokio::test]
async fn members_are_invited_changed_and_removed() {
    let mail = MailServer::start().await;
    let t = TestService::builder().with_bootstrap_token().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    let made = terminal.output_of(&["workspace", "create", "support", "--name", "Support"]).await;
    assert_eq!(made, "Created workspace support \"Support\".\n");
    let no_members = terminal.run(&["workspace", "members", "support"]).await;
    assert_eq!((no_members.status, no_members.out.as_str()), (Some(0), ""));
    assert!(no_members.err.starts_with("support has no members yet."), "{}", no_members.err);
    let invite = ["workspace", "invite", "support", "bob@example.org", "--role", "editor"];
    let invited = terminal.output_of(&invite).await;
    assert!(
        invited.starts_with("Invited bob@example.org to support as editor: signing in at http://"),
        "{invited}"
    );
    assert_eq!(mail.mail(1).await.to, ["bob@example.org"]);
    let other = terminal.run(&["workspace", "invite", "support", "bob@example.org"]).await;
    assert!(other.err.contains("(workspace.member_has_other_role)"), "{}", other.err);
    assert!(other.err.contains("`callboard workspace role`"), "{}", other.err);
    sign_in(&t, &mail, "bob@example.org").await;
    let changed = terminal.output_of(&["workspace", "role", "support", "Bob@example.org", "admin"]).await;
    assert_eq!(changed, "Changed the role of bob@example.org in support: admin.\n");
    let listed = terminal.output_of(&["workspace", "members", "support"]).await;
    let cells: Vec<&str> = listed.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(cells[..3], ["bob@example.org", "admin", "active"]);
    let near = terminal.run(&["workspace", "remove", "support", "bob@exmaple.org"]).await;
    assert!(near.err.contains("did you mean bob@example.org?"), "{}", near.err);
    let removed = terminal.output_of(&["workspace", "remove", "support", cells[3]]).await;
    assert!(removed.ends_with(" from support.\n"), "{removed}");
    let removed_member = terminal.run(&["workspace", "remove", "support", "bob@example.org"]).await;
    assert_eq!(removed_member.status, Some(1));
    assert!(
        removed_member.err.contains("bob@example.org does not belong to support"),
        "{}",
        removed_member.err
    );

    terminal.output_of(&["workspace", "rename", "support", "Help desk"]).await;
    let listed = terminal.output_of(&["--output", "json", "workspace", "list"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["slug"], &listed[0]["name"]), (&json!("support"), &json!("Help desk")));
    let set = terminal.output_of(&["workspace", "set", "support", "--training-calls", "drop"]).await;
    assert_eq!(
        set,
        "Changed workspace support \"Help desk\". Replies of models are erased after the end of their training.\n"
    );
    let shown = terminal.output_of(&["workspace", "show", "support"]).await;
    assert!(shown.ends_with("\nReplies of models are erased after the end of their training.\n"), "{shown}");
    let unconfirmed = terminal.run(&["workspace", "delete", "support"]).await;
    assert_eq!(unconfirmed.status, Some(2));
    assert!(unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
    terminal.output_of(&["workspace", "delete", "support", "--yes"]).await;
    let shown = terminal.run(&["workspace", "members", "support"]).await;
    assert!(
        shown.err.contains("(workspace.not_found)") && shown.err.contains("workspace list"),
        "{}",
        shown.err
    );
}

#[tokio::test]
async fn members_of_several_workspaces_must_choose_one() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let token = root.token(&["workflows:read", "workflows:write"], &["default", "other"]).await;
    let terminal = Terminal::for_service(&t).with_token(&token);
    let refused = terminal.run(&["workflow", "create", "Desk"]).await;
    assert!(refused.err.contains("(workspace.required)"), "{}", refused.err);
    assert!(refused.err.contains("--workspace"), "{}", refused.err);
    terminal.output_of(&["workflow", "create", "Desk", "--workspace", "other"]).await;
    let listed = terminal.output_of(&["workflow", "list", "--workspace", "other"]).await;
    assert!(listed.contains("Desk"), "{listed}");
    let listed = terminal.run(&["workflow", "list", "--workspace", "default"]).await;
    assert!(!listed.out.contains("Desk"), "{}", listed.out);
    // The profile may set the workspace for all commands.
    let url = t.client().base();
    terminal.file(
        "config/callboard/config.toml",
        format!("[default]\napi_url = \"{url}\"\nworkspace = \"other\"\n"),
    );
    assert!(terminal.output_of(&["workflow", "list"]).await.contains("Desk"));
    let there = terminal.run(&["workflow", "list", "--workspace", "default"]).await;
    assert!(!there.out.contains("Desk"), "the flag wins: {}", there.out);
}

/// Several workspaces may use the same handle; the chat uses the given workspace.
#[tokio::test]
async fn a_chat_uses_the_workflow_of_the_given_workspace() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    assert_eq!(t.root().post("/api/workspaces", &json!({"slug": "shop"})).await.status, 201);
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    for slug in ["default", "shop"] {
        let graph = terminal.file(&format!("{slug}.json"), graphs::reply(&format!("from {slug}")));
        terminal.output_of(&["workflow", "upload", "desk", &graph, "--create", "--workspace", slug]).await;
        terminal.output_of(&["workflow", "publish", "desk", "--workspace", slug]).await;
    }
    for (more, reply) in [
        (vec![], "from default"),
        (vec!["--workspace", "default"], "from default"),
        (vec!["--workspace", "shop"], "from shop"),
    ] {
        let arguments: Vec<&str> = ["chat", "desk", "hi"].into_iter().chain(more).collect();
        assert!(terminal.output_of(&arguments).await.contains(reply), "{arguments:?}");
    }
    let nowhere = terminal.run(&["chat", "desk", "hi", "--workspace", "nowhere"]).await;
    assert_eq!(nowhere.status, Some(3), "{}", nowhere.err);
}
