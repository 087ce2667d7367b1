//! `callboard runs`.

use integration_tests::{TestService, graphs};
use serde_json::json;

use super::terminal::Terminal;
use crate::waiting_runs::{becomes, begin};

#[tokio::test]
async fn runs_are_listed_shown_traced_watched_and_cancelled() {
    let t = TestService::start().await;
    let question = json!({"name": "ok", "type": "wait_for_input", "message": "Refund 40?"});
    let question = t.workflow().named("Asking").graph(graphs::chain(&[question], None)).create().await;
    let failing = json!({"name": "no", "type": "assert", "when": "false", "message": "never"});
    let failing = t.workflow().named("Failing").graph(graphs::chain(&[failing], None)).create().await;
    let terminal = Terminal::for_service(&t);
    assert_eq!(terminal.run(&["runs", "list"]).await.err.trim(), "No runs found.");
    let failed = begin(&t, &failing, "?wait=60", json!({})).await;
    let waiting = begin(&t, &question, "?wait=60", json!({"order": 7})).await;
    let (failed, id) = (failed["id"].as_str().unwrap(), waiting["id"].as_str().unwrap());

    let listed = terminal.output_of(&["runs", "list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines.len() == 3, "{listed}");
    assert!(lines[1].starts_with(id) && lines[1].contains("waiting for an answer"), "{listed}");
    assert!(lines[2].contains("failing") && lines[2].contains("never"), "{listed}");
    let only =
        terminal.output_of(&["runs", "list", "--status", "failed,cancelled", "--workflow", "failing"]).await;
    assert!(only.contains(failed) && !only.contains(id), "{only}");
    let json = terminal.json_of(&["runs", "list", "--waits", "--output", "json"]).await;
    assert_eq!(json[0]["id"], id);

    let shown = terminal.output_of(&["runs", "show", id]).await;
    assert!(shown.contains("status     waiting") && shown.contains("Refund 40?"), "{shown}");
    let shown = terminal.output_of(&["runs", "show", failed]).await;
    assert!(shown.contains("error      no: never"), "{shown}");
    let traced = terminal.output_of(&["runs", "trace", failed]).await;
    let step = traced.lines().last().unwrap();
    assert!(step.starts_with("1 ") && step.contains("failed") && step.contains(" ms"), "{traced}");

    let values = terminal.output_of(&["runs", "trace", failed, "--node", "no"]).await;
    assert!(
        values.starts_with("visit 1, attempt 1: failed\ninput: ") && values.contains("never"),
        "{values}"
    );
    let unknown = terminal.run(&["runs", "trace", failed, "--node", "now"]).await;
    assert!(unknown.status == Some(1) && unknown.err.contains("did you mean 'no'?"), "{}", unknown.err);

    let cancelled = terminal.output_of(&["runs", "cancel", id]).await;
    assert_eq!(cancelled.trim(), format!("Cancelled run {id}."));
    becomes(&t, &waiting, "cancelled").await;
    let traced = terminal.output_of(&["runs", "trace", id]).await;
    assert!(traced.lines().last().unwrap().contains("interrupted"), "{traced}");
    let ended = terminal.output_of(&["runs", "cancel", failed]).await;
    assert_eq!(ended.trim(), format!("Run {failed} had already ended: failed."));
    let watched = terminal.run(&["runs", "watch", failed]).await;
    assert!(watched.status == Some(1) && watched.err.contains("never"), "{}", watched.err);
    for command in ["show", "trace", "watch", "cancel"] {
        let unknown_run = terminal.run(&["runs", command, "nothing"]).await;
        assert!(
            unknown_run.status == Some(1) && unknown_run.err.contains("run.not_found"),
            "{command}: {}",
            unknown_run.err
        );
    }
}

#[tokio::test]
async fn unique_id_prefixes_are_accepted() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let failing = json!({"name": "no", "type": "assert", "when": "inputs.good", "message": "never"});
    let workflow = t.workflow().named("Failing").graph(graphs::chain(&[failing], None)).create().await;
    let failed = begin(&t, &workflow, "?wait=60", json!({"good": false})).await;
    let other = begin(&t, &workflow, "?wait=60", json!({"good": true})).await;
    let (failed, other) = (failed["id"].as_str().unwrap(), other["id"].as_str().unwrap());
    let beginning = &failed[..23];
    for command in ["show", "trace"] {
        let shown = terminal.output_of(&["runs", command, beginning]).await;
        assert!(shown.contains(failed) && shown.contains("never"), "{command}: {shown}");
    }
    let shown = terminal.json_of(&["runs", "show", &other[..23], "--json"]).await;
    assert_eq!(shown["id"], other);
    let listed = terminal.json_of(&["--json", "runs", "list", "--workflow", &workflow.id[..18]]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let repeated = ["rerun", beginning, "--input", "good=true", "--quiet", "--json"];
    let repeated = terminal.json_of(&repeated).await;
    assert_eq!((&repeated["origin_run_id"], &repeated["inputs"]), (&json!(failed), &json!({"good": true})));
    let shown = terminal.json_of(&["workflow", "show", &workflow.id[..18], "--json"]).await;
    assert_eq!(shown["id"], workflow.id);
    let run = ["run", &workflow.id[..18], "--input", "good=true", "--quiet", "--json"];
    assert_eq!(terminal.json_of(&run).await["workflow_id"], workflow.id);
    let several = terminal.run(&["runs", "show", &failed[..4]]).await;
    assert!(several.status == Some(2) && several.err.contains("several ids begin with"), "{}", several.err);
    let none = terminal.run(&["runs", "show", "ffff"]).await;
    assert!(none.status == Some(1) && none.err.contains("run.not_found"), "{}", none.err);
}
