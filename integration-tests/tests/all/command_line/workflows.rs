//! `callboard workflow …`.

use integration_tests::{AnswerExt, JSON, TestService, graphs};
use serde_json::json;

use super::json_of;
use super::terminal::Terminal;

const BROKEN: &str = r#"{
  "format": "graph/1",
  "nodes": [
    {
      "name": "say",
      "type": "replay",
      "text": "hi"
    }
  ],
  "edges": [
    { "from": "START", "to": "say" },
    { "from": "sya", "to": "END" }
  ]
}
"#;

#[tokio::test]
async fn a_workflow_is_created_saved_and_published() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let nothing = terminal.run(&["workflow", "list"]).await;
    assert_eq!((nothing.status, nothing.out.as_str()), (Some(0), ""));
    assert!(nothing.err.contains("No workflows found."));
    let made =
        ["workflow", "create", "Order desk", "--description", "Knows orders.", "--tag", "a", "--tag", "b"];
    assert_eq!(
        terminal.output_of(&made).await,
        "Created workflow \"Order desk\" with the handle order-desk.\n"
    );
    let shown = terminal.output_of(&["workflow", "show", "order-desk"]).await;
    assert!(shown.starts_with("Order desk\nKnows orders.\nhandle     order-desk\nid         "), "{shown}");
    assert!(shown.ends_with("tags       a, b\nchat       closed\nversions   none\n"), "{shown}");

    let file = terminal.file("graph.json", graphs::reply("hi"));
    let saved = terminal.output_of(&["workflow", "upload", "order-desk", &file, "--notes", "First."]).await;
    assert_eq!(saved, "Saved version 1 of order-desk.\n");
    let again = terminal.output_of(&["workflow", "upload", "order-desk", &file]).await;
    assert_eq!(again, "Nothing changed: version 1 of order-desk is identical.\n");
    let published = terminal.run(&["workflow", "publish", "order-desk"]).await;
    let record = terminal.json_of(&["workflow", "show", "order-desk", "--output", "json"]).await;
    assert_eq!(published.out, format!("{}\n", record["share_url"].as_str().unwrap()));
    assert!(published.err.contains("Visitors with this address may chat:"));
    let list = terminal.output_of(&["workflow", "list"]).await;
    assert_eq!(list, "HANDLE      VERSION  CHAT      NAME\norder-desk  1        open      Order desk\n");

    let login = terminal.run(&["workflow", "publish", "order-desk", "--require-login"]).await;
    assert!(login.err.contains("Signed-in users"), "{}", login.err);
    assert!(terminal.output_of(&["workflow", "list"]).await.contains("  login  "));
    terminal.output_of(&["workflow", "publish", "order-desk", "--require-login=false"]).await;
    assert!(terminal.output_of(&["workflow", "list"]).await.contains("  open  "));
    assert_eq!(
        terminal.output_of(&["workflow", "unpublish", "order-desk"]).await,
        "Closed the chat of \"Order desk\".\n"
    );
    let shown = terminal.output_of(&["workflow", "show", "order-desk"]).await;
    assert!(
        shown.contains("chat       closed\nversions   1    20") && shown.contains("  First.\n"),
        "{shown}"
    );
    assert!(shown.trim_end().ends_with("/api/workflows/order-desk/versions/1/diagram.svg"), "{shown}");
}

#[tokio::test]
async fn json_output_is_the_services_response() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let made =
        terminal.json_of(&["workflow", "create", "One", "--handle", "first", "--output", "json"]).await;
    assert_eq!((made["handle"].as_str(), made["name"].as_str()), (Some("first"), Some("One")));
    let file = terminal.file("graph.json", graphs::reply("hi"));
    for new in [true, false] {
        let saved = terminal.json_of(&["workflow", "upload", "first", &file, "--output", "json"]).await;
        assert_eq!((saved["version"].as_i64(), saved["new"].as_bool()), (Some(1), Some(new)));
    }
    let published = terminal.json_of(&["--output", "json", "workflow", "publish", "first"]).await;
    assert!(published["share_url"].as_str().unwrap().ends_with(made["id"].as_str().unwrap()));
    let list = terminal.json_of(&["workflow", "list", "--output", "json"]).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    let closed = terminal.json_of(&["workflow", "unpublish", "first", "--output", "json"]).await;
    assert_eq!(closed["is_public"], false);
    let conflict =
        terminal.run(&["workflow", "create", "Two", "--handle", "first", "--output", "json"]).await;
    assert_eq!((conflict.status, conflict.out.as_str()), (Some(1), ""));
    assert_eq!(json_of(&conflict.err)["detail"]["code"], "workflow.handle_taken");
}

#[tokio::test]
async fn graph_problems_are_printed_with_their_line() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["workflow", "create", "One"]).await;
    let file = terminal.file("broken.json", BROKEN);
    let expected =
        "  broken.json:6: /nodes/0/type: unknown node type 'replay'; did you mean 'reply'? (unknown_type)\n";
    let refused = terminal.run(&["workflow", "upload", "one", &file]).await;
    assert_eq!((refused.status, refused.out.as_str()), (Some(1), ""));
    assert!(refused.err.starts_with("error: The graph is not valid. (graph.invalid)\n"), "{}", refused.err);
    assert!(refused.err.contains(expected), "{}", refused.err);
    assert!(refused.err.contains("  broken.json:12: /edges/1/from: "), "{}", refused.err);
    // The same without a service.
    let offline = Terminal::at("http://127.0.0.1:1");
    let file = offline.file("broken.json", BROKEN);
    let checked = offline.run(&["workflow", "check", &file]).await;
    assert_eq!(checked.status, Some(1));
    assert!(checked.err.contains(expected), "{}", checked.err);
    assert_eq!(
        checked.err.lines().skip(1).collect::<Vec<_>>(),
        refused.err.lines().skip(1).collect::<Vec<_>>()
    );
    // Wrapped in an object, and from standard input.
    let wrapped = format!("{{\"notes\": \"n\",\n \"graph\":\n{BROKEN}}}");
    let piped = offline.type_in(&["workflow", "check", "-", "--output", "json"], &wrapped).await;
    assert_eq!((piped.status, json_of(&piped.out)["valid"].as_bool()), (Some(1), Some(false)));
    let piped = offline.type_in(&["workflow", "check", "-"], &wrapped).await;
    assert!(piped.err.contains("  standard input:8: /nodes/0/type: "), "{}", piped.err);
    let good = offline.file("good.json", graphs::reply("hi"));
    assert_eq!(offline.output_of(&["workflow", "check", &good]).await, "good.json: the graph is valid.\n");
    let text = offline.file("text.json", "{\n  \"nodes\": [,]\n}");
    let none = offline.run(&["workflow", "check", &text]).await;
    assert_eq!(
        (none.status, none.err.as_str()),
        (Some(1), "error: text.json:2:13: this is not JSON: expected value\n")
    );
}

#[tokio::test]
async fn config_problems_are_reported_in_the_config_file() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["workflow", "create", "One"]).await;
    let graph = terminal.file("graph.json", graphs::reply("hi"));
    let config =
        terminal.file("config.json", "{\n  \"model\": \"practice/reply\",\n  \"recursion_limit\": 0\n}");
    for arguments in [
        ["workflow", "upload", "one", &graph, "--config", &config],
        ["workflow", "check", &graph, "--service", "--config", &config],
    ] {
        let refused = terminal.run(&arguments).await;
        assert_eq!(refused.status, Some(1));
        assert!(
            refused.err.contains("  config.json:3: /runnable_config/recursion_limit: "),
            "{}",
            refused.err
        );
    }
    let wrapped =
        json!({"graph": graphs::reply("hi"), "runnable_config": {"model": "m"}, "notes": "From the file."});
    let wrapped = terminal.file("wrapped.json", wrapped);
    terminal.output_of(&["workflow", "upload", "one", &wrapped]).await;
    let version = terminal.json_of(&["workflow", "show", "one", "--version", "1", "--output", "json"]).await;
    assert_eq!(
        (&version["runnable_config"]["model"], &version["notes"]),
        (&json!("m"), &json!("From the file."))
    );
    // The output for a version can be saved again.
    let shown = terminal.output_of(&["workflow", "show", "one", "--version", "1"]).await;
    let saved = terminal.type_in(&["workflow", "upload", "one", "-"], &shown).await;
    assert_eq!(saved.out, "Nothing changed: version 1 of one is identical.\n");
    let odd = terminal.file("odd.json", json!({"graph": {}, "config": {}}));
    let odd = terminal.run(&["workflow", "upload", "one", &odd]).await;
    assert!(
        odd.err.contains("odd.json: unknown member `config`; besides `graph`, `runnable_config`"),
        "{}",
        odd.err
    );
}

#[tokio::test]
async fn an_upload_creates_the_workflow_on_request() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let good = terminal.file("good.json", graphs::reply("hi"));
    let broken = terminal.file("broken.json", BROKEN);
    let missing = terminal.run(&["workflow", "upload", "order-desk", &good]).await;
    assert_eq!(missing.status, Some(1));
    assert!(
        missing.err.contains("(workflow.not_found)") && missing.err.contains("--create creates it"),
        "{}",
        missing.err
    );
    let refused = terminal.run(&["workflow", "upload", "order-desk", &broken, "--create"]).await;
    assert_eq!(refused.status, Some(1));
    assert!(
        refused.err.contains("broken.json:6: ") && refused.err.contains("nothing was created"),
        "{}",
        refused.err
    );
    t.assert_no_rows("workflows").await;
    let handle = terminal.run(&["workflow", "upload", "Order desk", &good, "--create"]).await;
    assert_eq!(handle.status, Some(2));
    assert!(handle.err.contains("for example `order-desk`"), "{}", handle.err);
    let made = terminal.output_of(&["workflow", "upload", "order-desk", &good, "--create"]).await;
    assert_eq!(made, "Created workflow \"Order desk\".\nSaved version 1 of order-desk.\n");
    let again = terminal.output_of(&["workflow", "upload", "order-desk", &good, "--create"]).await;
    assert_eq!(again, "Nothing changed: version 1 of order-desk is identical.\n");
}

#[tokio::test]
async fn an_upload_keeps_the_config_and_reverts() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let config = terminal.file("config.json", json!({"prompts": {"answer": {"text": "Be kind."}}}));
    let upload = async |text: &str, more: &[&str]| {
        let file = terminal.file("graph.json", graphs::reply(text));
        terminal.output_of(&[&["workflow", "upload", "desk", &file][..], more].concat()).await
    };
    upload("good", &["--create", "--config", &config]).await;
    let config_note = |from: u32| {
        format!("Kept the prompts and settings of version {from}; --config FILE replaces them.\n")
    };
    assert_eq!(upload("bad", &[]).await, format!("Saved version 2 of desk.\n{}", config_note(1)));
    assert_eq!(upload("good", &[]).await, format!("Saved version 3 of desk.\n{}", config_note(2)));
    let shown = terminal.json_of(&["workflow", "show", "desk", "--version", "3", "--output", "json"]).await;
    assert_eq!(shown["runnable_config"]["prompts"]["answer"]["text"], "Be kind.");
    let same = "Nothing changed: version 3 of desk is identical.\n";
    assert_eq!(upload("good", &[]).await, format!("{same}{}", config_note(3)));
    terminal.output_of(&["workflow", "rollback", "desk"]).await;
    let again = upload("good", &[]).await;
    assert_eq!(again, format!("{same}{}Version 3 is live again.\n", config_note(3)));
    terminal.output_of(&["workflow", "rollout", "set", "desk", "--canary", "2", "--percent", "10"]).await;
    let canary = upload("new", &[]).await;
    let why = "Not live yet: version 4 waits until the canary has ended; version 3 stays live. \
               `callboard workflow live desk 4` changes that.\n";
    assert_eq!(canary, format!("Saved version 4 of desk.\n{}{why}", config_note(3)));
}

#[tokio::test]
async fn two_versions_are_compared() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    for text in ["hi", "hello"] {
        let file = terminal.file("graph.json", graphs::reply(text));
        terminal.output_of(&["workflow", "upload", "one", &file, "--create"]).await;
    }
    assert_eq!(
        terminal.output_of(&["workflow", "diff", "one", "1", "2"]).await,
        "say.text\n  - \"hi\"\n  + \"hello\"\n"
    );
    let same = terminal.run(&["workflow", "diff", "one", "2", "2"]).await;
    assert_eq!((same.status, same.err.as_str()), (Some(0), "Versions 2 and 2 are the same.\n"));
    let missing = terminal.run(&["workflow", "diff", "one", "1", "3"]).await;
    assert!(missing.status == Some(1) && missing.err.contains("(version.not_found)"), "{}", missing.err);
}

#[tokio::test]
async fn a_workflow_is_renamed_described_rolled_back_and_archived() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["workflow", "create", "Order desk"]).await;
    for (text, next) in [
        ("{{ inputs.order }}", "Next: callboard run order-desk --input order=\"some order\", or "),
        ("two", ""),
    ] {
        let file = terminal.file("graph.json", graphs::reply(text));
        let saved = terminal.run(&["workflow", "upload", "order-desk", &file]).await;
        assert!(saved.status == Some(0) && saved.err.contains(next), "{}", saved.err);
    }
    let unknown = terminal.run(&["workflow", "show", "oder-desk"]).await;
    assert!(
        unknown.err.contains("The workflow 'oder-desk' was not found; did you mean 'order-desk'?"),
        "{}",
        unknown.err
    );
    let renamed = terminal.output_of(&["workflow", "rename", "order-desk", "Desk", "--handle", "desk"]).await;
    assert_eq!(renamed, "Renamed workflow desk to \"Desk\"\n");
    let described = terminal.output_of(&["workflow", "describe", "desk", "Knows orders."]).await;
    assert_eq!(described, "Updated the description of workflow desk\n");
    assert!(terminal.output_of(&["workflow", "show", "desk"]).await.starts_with("Desk\nKnows orders.\n"));
    terminal.output_of(&["workflow", "describe", "desk", ""]).await;
    assert!(terminal.output_of(&["workflow", "show", "desk"]).await.starts_with("Desk\nhandle "));

    assert_eq!(terminal.output_of(&["workflow", "rollback", "desk"]).await, "Version 1 of desk is live.\n");
    let record = terminal.json_of(&["workflow", "show", "desk", "--output", "json"]).await;
    assert_eq!((&record["live_version"], &record["latest_version"]), (&json!(1), &json!(2)));
    let none = terminal.run(&["workflow", "rollback", "desk"]).await;
    assert!(none.status == Some(1) && none.err.contains("no version before the live one"), "{}", none.err);
    let missing = terminal.run(&["workflow", "rollback", "desk", "--to", "9"]).await;
    assert!(missing.status != Some(0) && missing.err.contains("version.not_found"), "{}", missing.err);
    assert_eq!(
        terminal.output_of(&["workflow", "rollback", "desk", "--to", "2"]).await,
        "Version 2 of desk is live.\n"
    );

    assert_eq!(terminal.output_of(&["workflow", "live", "desk", "1"]).await, "Version 1 of desk is live.\n");
    let set =
        ["workflow", "rollout", "set", "desk", "--canary", "2", "--percent", "10", "--promote-after", "9"];
    let set = terminal.output_of(&set).await;
    assert!(
        set.starts_with("live       version 1\ngate       none\ncanary     version 2, 10 % of new threads\n"),
        "{set}"
    );
    let shown = terminal.json_of(&["workflow", "rollout", "show", "desk", "--output", "json"]).await;
    assert_eq!(
        (&shown["canary"]["promote_after_turns"], &shown["counts"]["live"]["turns"]),
        (&json!(9), &json!(0))
    );
    terminal.output_of(&["workflow", "rollout", "set", "desk", "--canary", "2", "--percent", "20"]).await;
    let shown = terminal.json_of(&["workflow", "rollout", "show", "desk", "--output", "json"]).await;
    assert_eq!(
        (&shown["canary"]["promote_after_turns"], &shown["canary"]["percent"]),
        (&json!(9), &json!(20)),
        "another share keeps the rest"
    );
    let promoted = terminal.output_of(&["workflow", "rollout", "promote", "desk"]).await;
    assert!(
        promoted.contains("live       version 2\n") && promoted.contains("version 2 was promoted"),
        "{promoted}"
    );
    let gate = terminal.file("gate.json", json!({"dataset": "none", "evaluators": [{"id": "a", "entrypoint": "builtin:exact_match"}], "threshold": 1}));
    let refused = terminal.run(&["workflow", "rollout", "set", "desk", "--gate", &gate]).await;
    assert!(refused.status != Some(0) && refused.err.contains("none"), "{}", refused.err);
    let wrong = terminal.file("wrong.json", json!({"x": 1}));
    let refused = terminal.run(&["workflow", "rollout", "set", "desk", "--gate", &wrong]).await;
    assert!(refused.err.contains("does not hold a gate"), "{}", refused.err);

    assert_eq!(
        terminal.output_of(&["workflow", "archive", "desk", "--yes"]).await,
        "Archived workflow desk\n"
    );
    let refused = terminal.run(&["workflow", "rename", "desk", "Other"]).await;
    assert!(refused.err.contains("workflow.archived"), "{}", refused.err);
    assert_eq!(terminal.output_of(&["workflow", "restore", "desk"]).await, "Restored workflow desk\n");
    terminal.output_of(&["workflow", "rename", "desk", "Other"]).await;
}

/// `archive` lists the users of a workflow, and asks for confirmation.
#[tokio::test]
async fn archiving_lists_the_users_of_a_workflow_and_asks() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let file = terminal.file("graph.json", graphs::reply("hi"));
    terminal.output_of(&["workflow", "upload", "refund", &file, "--create"]).await;
    let calls = json!({"name": "call", "type": "sub_workflow", "workflow": "refund"});
    let file = terminal.file("calls.json", graphs::chain(&[calls], None));
    terminal.output_of(&["workflow", "upload", "desk", &file, "--create"]).await;
    terminal.output_of(&["workflow", "publish", "refund"]).await;
    terminal.output_of(&["trigger", "cron", "refund", "0 0 1 1 *"]).await;
    terminal.output_of(&["app", "create", "shop"]).await;
    let binding = json!({"workflow": "refund", "version": 1, "access_mode": "anonymous"}).to_string();
    t.send("PUT", "/api/apps/shop/bindings/ask", &[JSON], binding).await.expect(201);
    let unconfirmed = terminal.run(&["workflow", "archive", "refund"]).await;
    assert_eq!(unconfirmed.status, Some(2), "{}", unconfirmed.err);
    let uses = "Its chat is published and will close.\nIts trigger cron will start no runs.\n\
                The app shop runs it as ask.\nThe workflow desk runs it.\n";
    assert!(
        unconfirmed.err.starts_with(uses) && unconfirmed.err.contains("add --yes"),
        "{}",
        unconfirmed.err
    );
    assert_eq!(terminal.json_of(&["workflow", "show", "refund", "--json"]).await["is_archived"], false);
    let mut typed = terminal.start_at_a_terminal("workflow archive refund");
    typed.until("Archive workflow refund? [y/N]").await;
    typed.press("y\n").await;
    typed.until("Archived workflow refund").await;
    let record = terminal.json_of(&["workflow", "restore", "refund", "--json"]).await;
    assert_eq!((&record["is_archived"], &record["is_public"]), (&json!(false), &json!(false)));
    terminal.output_of(&["run", "desk", "--input", "message=x", "--quiet"]).await;
}

#[tokio::test]
async fn chat_settings_have_a_command() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    terminal.output_of(&["workflow", "create", "Desk"]).await;
    let shown = terminal.json_of(&["workflow", "chat", "desk"]).await;
    assert_eq!((&shown["busy"], &shown["retention_days"]), (&json!("enqueue"), &json!(null)));
    let file = terminal.file("chat.json", json!({"uploads": false, "retention_days": 7}));
    let set = [
        "workflow",
        "chat",
        "desk",
        "--file",
        &file,
        "--set",
        "busy=interrupt",
        "--set",
        "retention_days=30",
    ];
    let set = terminal.json_of(&set).await;
    let record = t.get("/api/workflows/desk").await.value();
    assert_eq!(set, record["chat"]);
    assert_eq!(
        (&set["busy"], &set["retention_days"], &set["uploads"]),
        (&json!("interrupt"), &json!(30), &json!(false))
    );
    for (pair, says) in [
        ("bussy=x", "unknown field `bussy`"),
        ("busy", "name=value"),
        ("retention_days=-1", "cannot be read"),
    ] {
        let wrong = terminal.run(&["workflow", "chat", "desk", "--set", pair]).await;
        assert!(wrong.status == Some(2) && wrong.err.contains(says), "{}", wrong.err);
    }
}
