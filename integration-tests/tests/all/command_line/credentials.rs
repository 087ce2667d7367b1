//! `callboard credential …` and `callboard vault rotate`.

use integration_tests::{BOOTSTRAP, TestService};

use super::terminal::Terminal;

const KEYS: &str = r#"{"active": "a", "keys": {"a": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}"#;
const SECRET: &str = "sk-canary-0123456789-x4";

#[tokio::test]
async fn secrets_are_read_from_stdin_or_the_environment_and_never_printed() {
    let t = TestService::builder().with_bootstrap_token().set("SERVICE_VAULT_KEYS", KEYS).start().await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    let none = terminal.run(&["credential", "list"]).await;
    assert!(none.status == Some(0) && none.err.starts_with("No credentials found."), "{}", none.err);
    let create = ["credential", "create", "stripe", "--provider", "stripe"];
    let made = terminal.type_in(&create, &format!("{SECRET}\n")).await;
    assert_eq!(
        (made.status, made.out.as_str()),
        (Some(0), "Created credential stripe (sk-…x4). Use [[stripe]] in graphs.\n"),
        "{}",
        made.err
    );
    let again = terminal.type_in(&create, SECRET).await;
    assert!(again.status == Some(1) && again.err.contains("(credential.name_taken)"), "{}", again.err);
    let mut command = terminal.command(&["credential", "rotate", "stripe", "--from-env", "NEW_KEY"]);
    let rotated = command.env("NEW_KEY", "canary-short").output().await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&rotated.stdout),
        "Updated credential stripe (…). Use [[stripe]] in graphs.\n"
    );
    let listed = terminal.output_of(&["credential", "list"]).await;
    assert!(listed.contains("stripe  …") && !listed.contains("canary"), "{listed}");
    for (arguments, status, says) in [
        (&["credential", "create", "x", "--from-env", "NOT_THERE"][..], 2, "NOT_THERE"),
        (&["credential", "create", "x"], 2, "no secret"),
        (&["credential", "create", "x", SECRET], 2, "unexpected argument"),
        (&["credential", "create", "2x", "--from-env", "HOME"], 1, "/name"),
        (&["credential", "rotate", "strpe", "--from-env", "HOME"], 1, "did you mean 'stripe'?"),
        (&["credential", "delete", "stripe"], 2, "--yes"),
    ] {
        let ran = terminal.run(arguments).await;
        assert!(
            ran.status == Some(status) && ran.err.contains(says),
            "{arguments:?}: {:?} {}",
            ran.status,
            ran.err
        );
    }
    let turned = terminal.output_of(&["vault", "rotate"]).await;
    assert_eq!(turned, "Everything is encrypted with the key a now; 0 secrets and keys were re-encrypted.\n");
    assert_eq!(
        terminal.output_of(&["credential", "delete", "stripe", "--yes"]).await,
        "Deleted credential stripe.\n"
    );
    assert_eq!(terminal.output_of(&["credential", "list", "--output", "json"]).await, "[]\n");
}
