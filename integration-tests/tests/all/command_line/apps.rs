//! `callboard app …`.

use integration_tests::{JSON, TestService};
use serde_json::Value;

use super::terminal::Terminal;

#[tokio::test]
async fn an_app_is_created_listed_shown_changed_and_deleted() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let none = terminal.run(&["app", "list"]).await;
    assert!(none.err.starts_with("No apps found."), "{}", none.err);
    let made = terminal.output_of(&["app", "create", "desk"]).await;
    let url = format!("url      http://desk.apps.localhost:{}\n", t.address().port());
    assert!(made.starts_with("app      desk\nname     desk\n") && made.contains(&url), "{made}");
    let changed =
        terminal.output_of(&["app", "update", "desk", "--name", "The desk", "--access", "public"]).await;
    assert!(changed.contains("name     The desk\n") && changed.contains("access   public\n"), "{changed}");
    let shown = terminal.json_of(&["app", "show", "desk", "--output", "json"]).await;
    assert_eq!((&shown["alias"], &shown["name"]), (&"desk".into(), &"The desk".into()));
    let listed = terminal.output_of(&["app", "list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("ALIAS  ACCESS") && lines[1].ends_with("The desk"),
        "{listed}"
    );
    let nothing = terminal.run(&["app", "update", "desk"]).await;
    assert_eq!(nothing.status, Some(2), "{}", nothing.err);
    let bad = terminal.run(&["app", "create", "Desk"]).await;
    assert!(bad.status == Some(1) && bad.err.contains("write 'desk'"), "{}", bad.err);
    let unsure = terminal.run(&["app", "delete", "desk"]).await;
    assert_eq!(unsure.status, Some(2), "{}", unsure.err);
    let deleted = terminal.run(&["app", "delete", "desk", "--yes"]).await;
    assert_eq!(deleted.status, Some(0), "{}", deleted.err);
    let conflict = terminal.run(&["app", "create", "desk"]).await;
    assert!(
        conflict.status == Some(1) && conflict.err.contains("(alias_taken)\nChoose another alias"),
        "{}",
        conflict.err
    );
}

#[tokio::test]
async fn a_folder_is_deployed_and_its_problems_are_printed() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["app", "create", "desk"]).await;
    let none = terminal.run(&["app", "deployments", "desk"]).await;
    assert!(none.err.starts_with("No deployments found."), "{}", none.err);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>Hi</p>\n<img src=\"https://example.org/a.png\">")
        .unwrap();
    std::fs::write(folder.path().join("app.js"), "let a = 1;\n".repeat(20_000)).unwrap();
    let deployed = terminal.run(&["app", "deploy", "desk", path]).await;
    assert_eq!(deployed.status, Some(0), "{}", deployed.err);
    assert!(
        deployed.out.contains("files      2\n") && deployed.out.contains("size       214.8 KiB ("),
        "{}",
        deployed.out
    );
    assert!(deployed.err.contains("note: index.html:2  external_url"), "{}", deployed.err);
    let listed = terminal.output_of(&["app", "deployments", "desk"]).await;
    assert!(listed.starts_with("CREATED") && listed.lines().count() == 2, "{listed}");
    let json = terminal.output_of(&["app", "deploy", "desk", path, "--output", "json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["file_count"], 2);
    std::fs::write(folder.path().join("index.html"), "<p>\n<a onclick=\"b()\">").unwrap();
    let refused = terminal.run(&["app", "deploy", "desk", path]).await;
    assert_eq!(refused.status, Some(1), "{}", refused.err);
    for part in ["(inline_event_handler)", "index.html:2: ", "addEventListener"] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    let refused = terminal.run(&["app", "deploy", "desk", path, "--output", "json"]).await;
    let body: Value = serde_json::from_str(refused.err.trim()).unwrap();
    assert_eq!(body["detail"]["findings"][0]["line"], 2);
    let checked = terminal.run(&["app", "check", path]).await;
    assert!(
        checked.status == Some(1) && checked.out.contains("index.html:2  inline_event_handler"),
        "{}",
        checked.out
    );
    for name in ["a", "b"] {
        std::os::unix::fs::symlink("index.html", folder.path().join(name)).unwrap();
    }
    let checked = terminal.run(&["app", "check", path]).await;
    assert_eq!((checked.status, checked.err.as_str()), (Some(1), ""));
    assert!(
        checked.out.contains("\na  symlink\n") && checked.out.contains("\nb  symlink\n"),
        "{}",
        checked.out
    );
    let refused = terminal.run(&["app", "deploy", "desk", path]).await;
    assert_eq!(refused.status, Some(1), "{}", refused.err);
    assert!(refused.err.contains("(symlink)") && refused.err.contains("\n  b: "), "{}", refused.err);
    let missing = terminal.run(&["app", "deploy", "desk", "/nowhere"]).await;
    assert!(missing.status == Some(2) && missing.err.contains("cannot be read"), "{}", missing.err);
}

#[tokio::test]
async fn bindings_and_collections_of_an_app_are_listed_created_and_deleted() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["app", "create", "desk"]).await;
    for list in ["bindings", "collections"] {
        let none = terminal.run(&["app", list, "desk"]).await;
        assert!(none.err.contains(&format!("No {list} found.")), "{}", none.err);
    }
    let binding = r#"{"workflow": "sort", "version": 2, "access_mode": "anonymous"}"#;
    assert_eq!(t.send("PUT", "/api/apps/desk/bindings/ask", &[JSON], binding).await.status, 201);
    let listed = terminal.output_of(&["app", "bindings", "desk"]).await;
    assert!(listed.lines().nth(1).is_some_and(|line| line.starts_with("ask   sort      2")), "{listed}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.json");
    std::fs::write(&file, r#"{"kind": "user", "capabilities": {"anonymous": [], "member": ["read"]}}"#)
        .unwrap();
    let file = file.to_str().unwrap();
    let made = terminal.output_of(&["app", "collections", "desk", "create", "notes", file]).await;
    assert!(made.starts_with("Created collection notes"), "{made}");
    let listed = terminal.output_of(&["app", "collections", "desk"]).await;
    assert!(listed.contains("notes  user  -          read"), "{listed}");
    let named = folder.path().join("named.json");
    std::fs::write(
        &named,
        r#"{"name": "likes", "kind": "user", "capabilities": {"anonymous": [], "member": []}}"#,
    )
    .unwrap();
    let named = ["app", "collections", "desk", "create", "notes", named.to_str().unwrap()];
    let named = terminal.run(&named).await;
    assert!(named.status == Some(2) && named.err.contains("has the name \"likes\""), "{}", named.err);
    let conflict = terminal.run(&["app", "collections", "desk", "create", "notes", file]).await;
    assert!(conflict.status == Some(1) && conflict.err.contains("(collection_taken)"), "{}", conflict.err);
    assert_eq!(terminal.run(&["app", "collections", "desk", "delete", "notes"]).await.status, Some(2));
    assert_eq!(
        terminal.run(&["app", "collections", "desk", "delete", "notes", "--yes"]).await.status,
        Some(0)
    );
}

#[tokio::test]
async fn a_deployment_is_published_and_an_earlier_release_restored() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["app", "create", "desk"]).await;
    let none = terminal.run(&["app", "publish", "desk"]).await;
    assert!(none.status == Some(1) && none.err.contains("has no deployment"), "{}", none.err);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>Hi</p>").unwrap();
    std::fs::write(folder.path().join("a.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let unasked = terminal.run(&["app", "deploy", "desk", path, "--publish"]).await;
    assert!(
        unasked.status == Some(1)
            && unasked
                .err
                .contains("(permission_ack_required)\n`callboard app deploy <app> FOLDER --publish"),
        "{}",
        unasked.err
    );
    assert!(
        unasked.err.contains("The deployment was not published, and is deleted again."),
        "{}",
        unasked.err
    );
    let none = terminal.run(&["app", "deployments", "desk"]).await;
    assert!(none.err.starts_with("No deployments found."), "{}{}", none.out, none.err);
    terminal.output_of(&["app", "deploy", "desk", path]).await;
    let shown = terminal.output_of(&["app", "permissions", "desk"]).await;
    let first = "The app has no release: every permission is new.\n+ /bindings none\n+ /collections none\n+ /frame_ancestors none\n+ /wasm true\n";
    assert!(shown.contains("acknowledged no\n") && shown.ends_with(first), "{shown}");
    let unsure = terminal.run(&["app", "acknowledge", "desk"]).await;
    assert!(unsure.status == Some(2) && unsure.err.starts_with(first), "{}", unsure.err);
    assert!(unsure.err.contains("standard input is not a terminal") && unsure.err.contains("add --yes"));
    let unsure = terminal.run(&["app", "deploy", "desk", path, "--publish", "--acknowledge"]).await;
    assert!(unsure.status == Some(2) && unsure.err.contains("add --yes"), "{}", unsure.err);
    let deployments = terminal.output_of(&["app", "deployments", "desk"]).await;
    assert_eq!(deployments.lines().count(), 2, "the rejected deployment is not stored: {deployments}");
    let sure = terminal.run(&["app", "deploy", "desk", path, "--publish", "--acknowledge", "--yes"]).await;
    assert!(
        sure.status == Some(0) && sure.out.contains("Published release 1 of desk ("),
        "{}{}",
        sure.out,
        sure.err
    );
    let shown = terminal.output_of(&["app", "permissions", "desk"]).await;
    assert!(shown.ends_with("No permission differs from the active release.\n"), "{shown}");
    let published = terminal.output_of(&["app", "publish", "desk"]).await;
    assert!(published.starts_with("Published release 2 of desk ("), "{published}");
    assert!(published.contains("\nIt opens at http://desk.apps.localhost:"), "{published}");
    let back = terminal.output_of(&["app", "rollback", "desk", "1"]).await;
    assert!(back.starts_with("Published release 3 of desk ("), "{back}");
    let missing = terminal.run(&["app", "rollback", "desk", "9"]).await;
    assert!(
        missing.status == Some(1) && missing.err.contains("has no release 9; `callboard app releases desk`"),
        "{}",
        missing.err
    );
    let listed = terminal.output_of(&["app", "releases", "desk"]).await;
    assert!(listed.starts_with("NUMBER") && listed.lines().count() == 4, "{listed}");
    let shown = terminal.output_of(&["app", "show", "desk"]).await;
    assert!(shown.contains("release  3\n"), "{shown}");
    assert_eq!(terminal.run(&["app", "deploy", "desk", path, "--acknowledge"]).await.status, Some(2));
}

#[tokio::test]
async fn every_app_command_prints_json() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>Hi</p>").unwrap();
    let collection = folder.path().join("notes.json");
    std::fs::write(&collection, r#"{"kind": "user", "capabilities": {"anonymous": [], "member": []}}"#)
        .unwrap();
    let (path, collection) = (folder.path().to_str().unwrap(), collection.to_str().unwrap());
    let json = async |arguments: &[&str]| -> Value {
        let all = [&["app"], arguments, &["--output", "json"]].concat();
        let printed = terminal.output_of(&all).await;
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {printed}"))
    };
    for list in [&["list"][..], &["list", "--workspace", "default"]] {
        assert_eq!(json(list).await, serde_json::json!([]));
    }
    assert_eq!(json(&["create", "desk"]).await["alias"], "desk");
    for list in ["deployments", "releases", "bindings", "collections"] {
        assert_eq!(json(&[list, "desk"]).await, serde_json::json!([]), "{list}");
    }
    assert_eq!(json(&["check", path]).await["valid"], true);
    assert_eq!(json(&["update", "desk", "--name", "Desk"]).await["name"], "Desk");
    let deployed = json(&["deploy", "desk", path]).await;
    let permissions = json(&["permissions", "desk"]).await;
    assert_eq!(permissions["acknowledged"], false);
    let unsure = terminal.run(&["app", "acknowledge", "desk", "--output", "json"]).await;
    assert_eq!((unsure.status, unsure.out.as_str()), (Some(2), ""), "{}", unsure.err);
    let acknowledged = json(&["acknowledge", "desk", "--yes"]).await;
    assert_eq!(acknowledged["permission_revision"], permissions["permission_revision"]);
    assert!(acknowledged["acknowledged_at"].is_string(), "{acknowledged}");
    assert_eq!(json(&["acknowledge", "desk"]).await, acknowledged, "the first acknowledgement is kept");
    let release = json(&["publish", "desk"]).await;
    assert_eq!((&release["number"], &release["deployment_id"]), (&1.into(), &deployed["id"]));
    assert_eq!(json(&["rollback", "desk", "1"]).await["source_release_id"], release["id"]);
    let arguments = ["deploy", "desk", path, "--publish", "--acknowledge", "--yes"];
    assert_eq!(json(&arguments).await["number"], 3);
    assert_eq!(json(&["releases", "desk"]).await[0]["number"], 3);
    assert_eq!(json(&["deployments", "desk"]).await[1]["id"], deployed["id"]);
    assert_eq!(json(&["show", "desk"]).await["active_release"]["number"], 3);
    assert_eq!(json(&["list"]).await[0]["alias"], "desk");
    let made = json(&["collections", "desk", "create", "notes", collection]).await;
    assert_eq!(json(&["collections", "desk"]).await[0], made);
    let deleted = ["app", "collections", "desk", "delete", "notes", "--yes", "--output", "json"];
    assert_eq!(terminal.output_of(&deleted).await, "");
    let refused = terminal.run(&deleted).await;
    let refused: Value = serde_json::from_str(refused.err.trim()).unwrap();
    assert_eq!(refused["detail"]["code"], "collection_not_found");
    assert_eq!(terminal.output_of(&["app", "delete", "desk", "--yes", "--output", "json"]).await, "");
}
