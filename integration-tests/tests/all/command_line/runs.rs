//! `callboard runs`.

use integration_tests::{TestService, graphs};
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::waiting_runs::{becomes, begin};

#[tokio::test]
async fn runs_are_listed_shown_traced_watched_and_cancelled() {
    let t = TestService::start().await;
    let asking = json!({"name": "ok", "type": "wait_for_input", "message": "Refund 40?"});
    let asking = t.workflow().named("Asking").graph(graphs::chain(&[asking], None)).create().await;
    let failing = json!({"name": "no", "type": "assert", "when": "false", "message": "never"});
    let failing = t.workflow().named("Failing").graph(graphs::chain(&[failing], None)).create().await;
    let terminal = Terminal::of(&t);
    assert_eq!(terminal.run(&["runs", "list"]).await.err.trim(), "No runs found.");
    let failed = begin(&t, &failing, "?wait=60", json!({})).await;
    let waiting = begin(&t, &asking, "?wait=60", json!({"order": 7})).await;
    let (failed, id) = (failed["id"].as_str().unwrap(), waiting["id"].as_str().unwrap());

    let listed = terminal.does(&["runs", "list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines.len() == 3, "{listed}");
    assert!(lines[1].starts_with(id) && lines[1].contains("waiting for an answer"), "{listed}");
    assert!(lines[2].contains("failing") && lines[2].contains("never"), "{listed}");
    let only =
        terminal.does(&["runs", "list", "--status", "failed,cancelled", "--workflow", "failing"]).await;
    assert!(only.contains(failed) && !only.contains(id), "{only}");
    let json: Value =
        serde_json::from_str(&terminal.does(&["runs", "list", "--waits", "--output", "json"]).await).unwrap();
    assert_eq!(json[0]["id"], id);

    let shown = terminal.does(&["runs", "show", id]).await;
    assert!(shown.contains("status     waiting") && shown.contains("Refund 40?"), "{shown}");
    let shown = terminal.does(&["runs", "show", failed]).await;
    assert!(shown.contains("error      no: never"), "{shown}");
    let traced = terminal.does(&["runs", "trace", failed]).await;
    let step = traced.lines().last().unwrap();
    assert!(step.starts_with("1 ") && step.contains("failed") && step.contains(" ms"), "{traced}");

    let values = terminal.does(&["runs", "trace", failed, "--node", "no"]).await;
    assert!(
        values.starts_with("visit 1, attempt 1: failed\ninput: ") && values.contains("never"),
        "{values}"
    );
    let unknown = terminal.run(&["runs", "trace", failed, "--node", "now"]).await;
    assert!(unknown.status == Some(1) && unknown.err.contains("did you mean 'no'?"), "{}", unknown.err);

    let cancelled = terminal.does(&["runs", "cancel", id]).await;
    assert_eq!(cancelled.trim(), format!("Cancelled run {id}."));
    becomes(&t, &waiting, "cancelled").await;
    let traced = terminal.does(&["runs", "trace", id]).await;
    assert!(traced.lines().last().unwrap().contains("interrupted"), "{traced}");
    let ended = terminal.does(&["runs", "cancel", failed]).await;
    assert_eq!(ended.trim(), format!("Run {failed} had already ended: failed."));
    let watched = terminal.run(&["runs", "watch", failed]).await;
    assert!(watched.status == Some(1) && watched.err.contains("never"), "{}", watched.err);
    for command in ["show", "trace", "watch", "cancel"] {
        let gone = terminal.run(&["runs", command, "nothing"]).await;
        assert!(gone.status == Some(1) && gone.err.contains("run.not_found"), "{command}: {}", gone.err);
    }
}
