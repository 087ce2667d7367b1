//! `callboard run`.

use std::time::Duration;

use integration_tests::{TestService, graphs, until};
use serde_json::{Value, json};
use wire::{RunRecord, RunState};

use super::proxy::{Fault, Proxy};
use super::slow_echo;
use super::terminal::Terminal;

/// Returns its inputs.
fn mirror() -> Value {
    let set = json!({"name": "keep", "type": "set", "values": {"inputs": "{{ inputs }}"}});
    let mut graph = graphs::chain(&[set], Some(json!("{{ inputs }}")));
    graph["inputs"] = json!({"type": "object", "properties": {"zip": {"type": "string"}}});
    graph["output"] = json!({"given": "{{ inputs }}"});
    graph
}

#[tokio::test]
async fn a_run_is_watched_and_its_output_is_printed() {
    let t = TestService::start().await;
    t.workflow().named("Slow").graph(slow_echo(20)).create().await;
    let terminal = Terminal::for_service(&t);
    let ran = terminal.run(&["run", "slow", "--input", "message=hi there"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.out).unwrap(),
        json!({"say": {"text": "You said: hi there"}})
    );
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines[0], "  say: You said: hi there");
    assert!(lines[1].starts_with("✓ say ") && lines[1].ends_with(" s"), "{}", ran.err);
    assert!(lines[2].starts_with("Done in 0.") && lines[2].ends_with("/trace"), "{}", ran.err);
    let quiet = terminal.run(&["run", "slow", "--input", "message=hi", "--quiet"]).await;
    assert_eq!((quiet.status, quiet.err.as_str()), (Some(0), ""));
    let json = terminal.run(&["run", "slow", "--input", "message=hi", "--output", "json"]).await;
    let record: RunRecord = serde_json::from_str(&json.out).unwrap();
    assert_eq!((record.status, json.err.as_str()), (RunState::Succeeded, ""));
}

#[tokio::test]
async fn inputs_come_from_pairs_and_files() {
    let t = TestService::start().await;
    t.workflow().named("Mirror").graph(mirror()).create().await;
    let terminal = Terminal::for_service(&t);
    let file = terminal.file("inputs.json", json!({"a": 1, "b": [2]}));
    let inputs = async |arguments: &[&str]| {
        let all = [&["run", "mirror", "--quiet"], arguments].concat();
        terminal.json_of(&all).await["given"].clone()
    };
    assert_eq!(inputs(&[]).await, json!({}));
    let pairs = ["--inputs", &file, "--input", "a=two words", "--input", "zip=8010", "--input", "n=8010"];
    assert_eq!(inputs(&pairs).await, json!({"a": "two words", "b": [2], "zip": "8010", "n": 8010}));
    assert_eq!(inputs(&["--version", "1", "--input", "zip=true"]).await, json!({"zip": "true"}));
    let piped = terminal.type_in(&["run", "mirror", "--quiet", "--inputs", "-"], "{\"c\": null}").await;
    assert_eq!(serde_json::from_str::<Value>(&piped.out).unwrap()["given"], json!({"c": null}));
    let list = terminal.file("list.json", "[1]");
    for (arguments, message) in [
        (["run", "mirror", "--input", "a"], "write it as key=value"),
        (["run", "mirror", "--inputs", &list], "list.json must hold a JSON object"),
        (["run", "mirror", "--inputs", "no.json"], "no.json cannot be read"),
    ] {
        let ran = terminal.run(&arguments).await;
        assert!(ran.status == Some(2) && ran.err.contains(message), "{}", ran.err);
    }
    let wrong = terminal.file("wrong.json", json!({"zip": 5}));
    let wrong = terminal.run(&["run", "mirror", "--inputs", &wrong]).await;
    assert!(
        wrong.status == Some(1) && wrong.err.contains("(run.inputs_invalid)\n  /inputs/zip: "),
        "{}",
        wrong.err
    );
}

#[tokio::test]
async fn a_failed_run_has_status_1_and_its_code() {
    let t = TestService::start().await;
    let fail = json!({"name": "check", "type": "assert", "when": "false", "message": "It cannot be."});
    t.workflow().named("Fails").graph(graphs::chain(&[fail], None)).create().await;
    t.workflow().named("Slow").graph(graphs::delayed(60.0, "never")).create().await;
    let terminal = Terminal::for_service(&t);
    let failed = terminal.run(&["run", "fails"]).await;
    assert_eq!((failed.status, failed.out.as_str()), (Some(1), ""));
    assert!(failed.err.starts_with("✗ check "), "{}", failed.err);
    assert!(
        failed
            .err
            .contains("\nerror: The run failed in check: It cannot be. (node.failed)\nEvery step: http"),
        "{}",
        failed.err
    );
    let json = terminal.run(&["run", "fails", "--output", "json"]).await;
    let record: RunRecord = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.status, record.status), (Some(1), RunState::Failed));
    let late = terminal.run(&["run", "slow", "--timeout", "0.2"]).await;
    assert!(late.status == Some(1) && late.err.contains("(run.timeout)"), "{}", late.err);
    let missing = terminal.run(&["run", "fails", "--version", "7"]).await;
    assert!(missing.status == Some(1) && missing.err.contains("(version.not_found)"), "{}", missing.err);
}

#[tokio::test]
async fn ctrl_c_cancels_a_run() {
    let t = TestService::start().await;
    t.workflow().named("Slow").graph(graphs::delayed(60.0, "never")).create().await;
    for output in ["human", "json"] {
        let running = Terminal::for_service(&t).start(&["run", "slow", "--output", output]);
        let unfinished = "SELECT count(*) FROM runs WHERE status IN ('running', 'waiting')";
        t.until_scalar("the run to start", unfinished, "1").await;
        running.interrupt();
        let ran = running.end().await;
        assert_eq!(ran.status, Some(130), "{}", ran.err);
        if output == "human" {
            assert!(
                ran.err.contains("Cancelling …\n") && ran.err.contains("\nCancelled. Steps so far"),
                "{}",
                ran.err
            );
        } else {
            let record: RunRecord = serde_json::from_str(&ran.out).unwrap();
            assert_eq!((record.status, ran.err.as_str()), (RunState::Cancelled, ""));
        }
    }
    let cancelled = "SELECT string_agg(status || ' ' || (cancel_requested_at IS NOT NULL), ', ') FROM runs";
    assert_eq!(t.scalar(cancelled).await, "cancelled true, cancelled true");
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_a_run_and_prints_how_to_watch_it() {
    let t = TestService::with_manual_clock().await;
    t.workflow().named("Slow").graph(graphs::delayed(60.0, "done")).create().await;
    let proxy = Proxy::to(t.address(), Fault::Swallows("/cancel ")).await;
    let running = Terminal::at(&proxy.base()).start(&["run", "slow"]);
    until("the run to start", async || {
        t.scalar("SELECT count(*) FROM runs WHERE status IN ('running', 'waiting')").await == "1"
    })
    .await;
    running.interrupt();
    until("the cancellation is on its way", async || proxy.broken() == 1).await;
    running.interrupt();
    let ran = running.end().await;
    let id = t.scalar("SELECT id FROM runs").await;
    assert_eq!(ran.status, Some(130), "{}", ran.err);
    let expected = format!("Cancelling …\nThe run continues: {}/api/runs/{id}\n", proxy.base());
    assert_eq!(ran.err, expected);
    let ended = until("the run to end", async || t.scalar("SELECT status FROM runs").await == "succeeded");
    t.while_time_passes_in(Duration::from_secs(1), ended).await;
}

#[tokio::test]
async fn a_run_survives_broken_connections_and_starts_once() {
    let t = TestService::start().await;
    t.workflow().named("Slow").graph(slow_echo(40)).create().await;
    let lost = Proxy::to(t.address(), Fault::FirstAnswerTo("POST /api/workflows/slow/runs ")).await;
    let ran = Terminal::at(&lost.base()).run(&["run", "slow", "--input", "message=hi"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert_eq!((lost.broken(), t.scalar("SELECT count(*) FROM runs").await.as_str()), (1, "1"));
    let cut = Proxy::to(t.address(), Fault::StreamsAfter(1_200)).await;
    let message = (1..=30).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    let ran = Terminal::at(&cut.base()).run(&["run", "slow", "--input", &format!("message={message}")]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert!(ran.err.starts_with(&format!("  say: You said: {message}\n✓ say ")), "{}", ran.err);
    assert!(cut.broken() >= 1, "only {} connections broke", cut.broken());
}
