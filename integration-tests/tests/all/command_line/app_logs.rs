//! `callboard app logs`.

use integration_tests::TestService;
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::apps::runs::{Published, answers, frozen, slow};

/// An app with one binding that responds and one that stays busy.
async fn app(t: &TestService) -> Published<'_> {
    let form = frozen(t, answers(), json!({})).await;
    let busy = frozen(t, slow(60.0), json!({"limits": {"timeout_seconds": 60}})).await;
    Published::new(t, "notes", &[("form", form), ("busy", busy)]).await
}

/// Starts a run and waits for its end; returns the prefix of its handle.
async fn ended(app: &Published<'_>, key: &str) -> String {
    let handle = app.handle("form", key, &json!({"text": "a"})).await;
    app.ended(&handle).await;
    handle[..12].to_owned()
}

fn parse(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn app_runs_are_printed_newest_last() {
    let t = TestService::start().await;
    let app = app(&t).await;
    let terminal = Terminal::for_service(&t);
    let none = terminal.run(&["app", "logs", "notes"]).await;
    assert_eq!((none.status, none.out.as_str(), none.err.as_str()), (Some(0), "", "No runs found.\n"));
    let none = terminal.run(&["app", "logs", "notes", "--output", "json"]).await;
    assert_eq!((none.status, none.out.as_str(), none.err.as_str()), (Some(0), "", ""));
    let (first, second) = (ended(&app, "1").await, ended(&app, "2").await);
    let busy = app.handle("busy", "3", &json!({})).await;
    app.running(&busy).await;
    let printed = terminal.output_of(&["app", "logs", "notes"]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        lines.len() == 3 && lines[0].contains(&format!("Z  succeeded  {first}  anonymous  form  ")),
        "{printed}"
    );
    assert!(lines[1].contains(&second) && lines[2].contains(&busy[..12]), "{printed}");
    assert!(!printed.contains(&busy[..13]), "{printed}");
    let json = parse(&terminal.output_of(&["app", "logs", "notes", "--output", "json"]).await);
    let prefixes: Vec<&str> = json.iter().map(|run| run["handle_prefix"].as_str().unwrap()).collect();
    assert_eq!(prefixes, [first.as_str(), second.as_str(), &busy[..12]]);
    for (arguments, indices) in [
        (&["--state", "running"][..], &[2][..]),
        (&["--state", "succeeded,failed"], &[0, 1]),
        (&["--binding", "busy"], &[2]),
        (&["--binding", "form", "--limit", "1"], &[1]),
        (&["--state", "timed_out"], &[]),
    ] {
        let command = [&["app", "logs", "notes", "--output", "json"], arguments].concat();
        let found = parse(&terminal.output_of(&command).await);
        let expected: Vec<Value> = indices.iter().map(|indices| json[*indices].clone()).collect();
        assert_eq!(found, expected, "{arguments:?}");
    }
    let listed = terminal.json_of(&["runs", "list", "--trigger", "app", "--json"]).await;
    let triggers: Vec<&str> =
        listed.as_array().unwrap().iter().map(|run| run["trigger"].as_str().unwrap()).collect();
    assert_eq!(triggers, ["app"; 3]);
    let others = terminal.json_of(&["runs", "list", "--trigger", "api,chat", "--json"]).await;
    assert_eq!(others, json!([]));
    let id = json[2]["id"].as_str().unwrap();
    assert_eq!(t.post(&format!("/api/runs/{id}/cancel"), "").await.status, 200);
    let wrong = terminal.run(&["app", "logs", "notes", "--state", "done"]).await;
    assert_eq!(wrong.status, Some(2), "{}", wrong.err);
    let wrong = terminal.run(&["app", "logs", "nothing"]).await;
    assert!(wrong.status == Some(1) && wrong.err.contains("(app_not_found)"), "{}", wrong.err);
    let wrong = Terminal::at("http://127.0.0.1:9").run(&["app", "logs", "notes", "--follow"]).await;
    assert_eq!(wrong.status, Some(4), "{}", wrong.err);
}

#[tokio::test]
async fn runs_are_followed_across_a_service_restart_until_ctrl_c() {
    let mut t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let (first, id) = {
        let app = app(&t).await;
        (ended(&app, "1").await, app.id.clone())
    };
    let mut follow = terminal.start(&["app", "logs", "notes", "--follow", "--output", "json"]);
    let mut failed =
        terminal.start(&["app", "logs", "notes", "--follow", "--state", "cancelled", "--binding", "busy"]);
    follow.until(&first).await;
    let (busy, run) = {
        let app = Published::existing(&t, "notes", id.clone());
        let second = ended(&app, "2").await;
        follow.until(&second).await;
        follow.until(r#""state":"succeeded""#).await;
        let busy = app.handle("busy", "3", &json!({})).await;
        app.running(&busy).await;
        follow.until(&busy[..12]).await;
        follow.until(r#""state":"running""#).await;
        let listed: Value =
            serde_json::from_slice(&t.get("/api/apps/notes/runs?state=running").await.body).unwrap();
        (busy[..12].to_owned(), listed["data"][0]["id"].as_str().unwrap().to_owned())
    };
    t.restart().await;
    let app = Published::existing(&t, "notes", id);
    let third = ended(&app, "4").await;
    follow.until(&third).await;
    // The end of a run that is older than the last line is printed, too.
    assert_eq!(t.post(&format!("/api/runs/{run}/cancel"), "").await.status, 200);
    follow.until(&busy).await;
    follow.until(r#""state":"cancelled""#).await;
    failed.until(&format!("cancelled  {busy}")).await;
    follow.interrupt();
    let ran = follow.end().await;
    assert_eq!(ran.status, Some(130), "{}", ran.err);
    let mut lines = parse(&ran.out);
    lines.retain(|run| run["handle_prefix"] == first.as_str());
    assert_eq!(lines.len(), 1, "{}", ran.out);
    failed.interrupt();
    let ran = failed.end().await;
    assert_eq!((ran.status, ran.out.lines().count()), (Some(130), 1), "{}", ran.out);
}

#[tokio::test]
async fn following_ends_when_its_reader_closes() {
    let t = TestService::start().await;
    let app = app(&t).await;
    let first = ended(&app, "1").await;
    let terminal = Terminal::for_service(&t);
    let mut follow = terminal.start(&["app", "logs", "notes", "--follow"]);
    follow.until(&first).await;
    // Without another run there is nothing to write.
    assert_eq!(follow.without_reader().await.status, Some(141));
}
