//! `callboard app …`.

use integration_tests::TestService;
use serde_json::Value;

use super::terminal::Terminal;

#[tokio::test]
async fn an_app_is_created_listed_shown_changed_and_deleted() {
    let t = TestService::start().await;
    let terminal = Terminal::of(&t);
    let none = terminal.run(&["app", "list"]).await;
    assert!(none.err.starts_with("No apps found."), "{}", none.err);
    let made = terminal.does(&["app", "create", "desk"]).await;
    let url = format!("url      http://desk.apps.localhost:{}\n", t.address().port());
    assert!(made.starts_with("app      desk\nname     desk\n") && made.contains(&url), "{made}");
    let changed =
        terminal.does(&["app", "update", "desk", "--name", "The desk", "--access", "members"]).await;
    assert!(changed.contains("name     The desk\n") && changed.contains("access   members\n"), "{changed}");
    let shown: Value =
        serde_json::from_str(&terminal.does(&["app", "show", "desk", "--output", "json"]).await).unwrap();
    assert_eq!((&shown["alias"], &shown["name"]), (&"desk".into(), &"The desk".into()));
    let listed = terminal.does(&["app", "list"]).await;
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
    let taken = terminal.run(&["app", "create", "desk"]).await;
    assert!(taken.status == Some(1) && taken.err.contains("(alias_taken)"), "{}", taken.err);
}
