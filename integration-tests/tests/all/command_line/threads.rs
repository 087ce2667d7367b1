//! `callboard thread` and `callboard visitor`.

use integration_tests::TestService;
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::visitors::published;

fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn threads_are_listed_shown_and_changed_and_visitors_exported_and_erased() {
    let t = TestService::start().await;
    let workflow = published(&t).await;
    let terminal = Terminal::for_service(&t);
    let chat_of = workflow.handle.as_str();
    assert_eq!(terminal.run(&["thread", "list", chat_of]).await.err.trim(), "No threads found.");
    let client = t.visitor();
    let thread = client.say(&workflow.id, "hello ask").await.unwrap().thread_id;
    let other = t.visitor().say(&workflow.id, "another").await.unwrap().thread_id;

    let listed = terminal.output_of(&["thread", "list", chat_of]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines.len() == 3, "{listed}");
    assert!(lines[1].starts_with(&other) && lines[2].contains(" active "), "{listed}");
    let json = terminal.json_of(&["thread", "list", chat_of, "--output", "json"]).await;
    let visitor = json[1]["visitor"].as_str().unwrap();
    assert!(lines[2].starts_with(&thread) && lines[2].contains(visitor), "{listed}");
    let only = terminal.output_of(&["thread", "list", chat_of, "--visitor", visitor, "--limit", "1"]).await;
    assert!(only.contains(&thread) && !only.contains(&other), "{only}");

    let shown = terminal.output_of(&["thread", "show", chat_of, &thread]).await;
    for text in [" visitor\n  hello ask\n", " assistant\n  You said hello ask.\n", "Sure, hello ask?"] {
        assert!(shown.contains(text), "{shown}");
    }
    assert!(!shown.contains("about hello"), "hidden context: {shown}");

    let wrong = terminal.run(&["thread", "change", chat_of, &thread]).await;
    assert_eq!(wrong.status, Some(2), "{}", wrong.err);
    let changed = [
        "thread",
        "change",
        chat_of,
        &thread,
        "--status",
        "locked",
        "--reason",
        "We look into it.",
        "--title",
        "Order 7",
    ];
    assert_eq!(terminal.output_of(&changed).await.trim(), format!("Thread {thread} \"Order 7\" is locked."));
    let locked = terminal.output_of(&["thread", "list", chat_of, "--status", "locked"]).await;
    assert!(locked.contains(&thread) && !locked.contains(&other), "{locked}");
    for unknown in ["thr_00", "nothing"] {
        let missing = terminal.run(&["thread", "show", chat_of, unknown]).await;
        assert!(missing.status == Some(1) && missing.err.contains("thread.not_found"), "{}", missing.err);
    }

    let exported = terminal.run(&["visitor", "export", chat_of, visitor]).await;
    let types: Vec<Value> = values(&exported.out).iter().map(|line| line["type"].clone()).collect();
    assert_eq!((&types[0], types.last().unwrap()), (&json!("visitor"), &json!("end")));
    assert!(exported.err.contains("1 threads, 3 items, 0 attachments"), "{}", exported.err);
    let path = terminal.path("visitor.ndjson");
    let out = path.to_str().unwrap();
    let export_to_file = ["visitor", "export", chat_of, visitor, "--out", out];
    assert_eq!(terminal.output_of(&export_to_file).await, "");
    assert_eq!(values(&std::fs::read_to_string(&path).unwrap()).len(), types.len());
    let again = terminal.run(&export_to_file).await;
    assert!(again.status == Some(1) && again.err.contains("cannot be written"), "{}", again.err);

    let unsure = terminal.run(&["visitor", "erase", chat_of, visitor]).await;
    assert!(unsure.status == Some(2) && unsure.err.contains("--yes"), "{}", unsure.err);
    let erased = terminal.output_of(&["visitor", "erase", chat_of, visitor, "--yes"]).await;
    assert_eq!(erased.trim(), format!("Erased the data of {visitor}: 1 threads."));
    let left = terminal.output_of(&["thread", "list", chat_of]).await;
    assert!(left.contains(&other) && !left.contains(&thread), "{left}");
    let unknown = terminal.run(&["visitor", "export", chat_of, "unknown"]).await;
    assert!(unknown.status == Some(1) && unknown.err.contains("chat.visitor_not_found"), "{}", unknown.err);
}
