//! The binary as a terminal user sees it.

use std::io::BufRead;
use std::process::{Command, Stdio};

use client::{Client, Part};
use rustix::process::Signal;
use serde_json::json;
use wire::{AppRecord, CreateApp, CreateVersion, CreateWorkflow, PublishRequest};

use crate::support::{Running, callboard, folder, run, text};

/// Checks that the embedded database has stopped with the service and removed its pid file.
fn assert_no_database(folder: &tempfile::TempDir) {
    assert!(!folder.path().join("data/postgres/postmaster.pid").exists(), "a database was left running");
}

#[test]
fn all_configuration_problems_are_reported_with_status_1() {
    for command in [["serve"].as_slice(), &["demo", "--exit"]] {
        let output =
            run(command, &[("SERVICE_PORT", "eighty"), ("SERVICE_LOG", "loud"), ("SERVICE_HOST", "[")]);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
        let errors = text(&output.stderr);
        assert!(errors.starts_with("error: 3 problems in the configuration:\n  SERVICE_HOST: "), "{errors}");
        assert_eq!(errors.lines().count(), 4, "{errors}");
    }
    let errors = text(&run(&["serve"], &[("SERVICE_LOG", "loud")]).stderr);
    assert!(errors.starts_with("error: SERVICE_LOG: \"loud\" is not a log filter; write "), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn an_invalid_configuration_is_shown_without_passwords() {
    let dsn = "host=db.example user=u password=hunter2";
    let good = run(&["config", "show"], &[("SERVICE_POSTGRES_DSN", dsn)]);
    let shown = text(&good.stdout);
    assert!(
        good.status.success() && shown.contains(" environment  host=db.example user=u password=********\n"),
        "{shown}"
    );
    for output in ["human", "json"] {
        let variables = [("SERVICE_POSTGRES_DSN", "postgres://u:hunter2@db:x/y"), ("SERVICE_LOG", "loud")];
        let bad = run(&["config", "show", "--output", output], &variables);
        let (shown, errors) = (text(&bad.stdout), text(&bad.stderr));
        assert_eq!(bad.status.code(), Some(1));
        assert!(
            shown.contains("is not a log filter")
                && errors.starts_with("error: 2 problems in the configuration:"),
            "{errors}"
        );
        assert!(!shown.contains("hunter2") && !errors.contains("hunter2"), "{shown}{errors}");
    }
}

#[test]
fn a_missing_or_wrong_command_prints_help() {
    let none = run(&[], &[]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("callboard demo"), "{}", text(&none.stderr));
    assert_eq!(run(&["srve"], &[]).status.code(), Some(2));
}

#[test]
fn completion_scripts_are_printed_for_each_shell() {
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef callboard"), ("fish", "complete -c callboard")]
    {
        let output = run(&["completions", shell], &[]);
        let script = text(&output.stdout);
        assert!(
            output.status.success() && script.contains(sign) && script.contains("rollback"),
            "{shell}: {script}"
        );
    }
    // The shell can load the generated script.
    let folder = folder();
    let file = folder.path().join("completions.bash");
    std::fs::write(&file, run(&["completions", "bash"], &[]).stdout).unwrap();
    let script = "source \"$0\"; COMP_WORDS=(callboard workf); COMP_CWORD=1
                 _callboard callboard workf callboard; echo \"${COMPREPLY[@]}\"";
    let completed = Command::new("bash").args(["-c", script]).arg(&file).output().unwrap();
    assert_eq!(text(&completed.stdout), "workflow\n", "{}", text(&completed.stderr));
    assert_eq!(run(&["completions", "tcsh"], &[]).status.code(), Some(2));
}

#[test]
fn a_closed_reader_ends_a_command_quietly() {
    let folder = folder();
    for arguments in
        [["config", "show"].as_slice(), &["config", "show", "--output", "json"], &["demo", "--exit"]]
    {
        let mut running = Running::start(callboard(&folder, arguments, &[]));
        // The pipe buffers at most 64 kB, and the demo has more to print after its first line.
        let mut line = String::new();
        running.output.take().unwrap().read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let (status, log) = running.end();
        assert!(
            status == Some(141) || arguments[0] == "config" && status == Some(0),
            "{arguments:?}: {status:?}"
        );
        assert_eq!(log, "", "{arguments:?}");
    }
    assert_no_database(&folder);
}

#[test]
fn a_full_disk_at_standard_output_is_reported() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = callboard(&folder(), &["config", "show"], &[]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: cannot write to standard output: "));
}

#[test]
fn the_log_reports_the_shutdown_but_not_the_http_server_threads() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["serve"], &[]));
    assert!(running.line("listening on ").starts_with("listening on http://127.0.0.1:"));
    let (status, log) = running.stop();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.trim_end().ends_with(" stopped"), "{log}");
    assert!(!log.contains("actix"), "{log}");
    assert_no_database(&folder);
}

#[test]
fn a_closed_log_reader_does_not_stop_the_service() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["serve"], &[]));
    drop(running.log.take());
    running.line("listening on ");
    let (status, _) = running.stop();
    assert_eq!(status, Some(0));
    assert_no_database(&folder);
}

#[test]
fn a_closed_terminal_stops_the_service_gracefully_except_under_nohup() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["serve"], &[]));
    running.line("listening on ");
    running.signal(Signal::HUP);
    assert_eq!(running.end().0, Some(0));
    assert_no_database(&folder);
    let plain = callboard(&folder, &["serve"], &[]);
    let mut nohup = Command::new("nohup");
    nohup.arg(plain.get_program()).args(plain.get_args()).current_dir(folder.path()).stdin(Stdio::null());
    nohup.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut running = Running::start(nohup);
    running.line("listening on ");
    running.signal(Signal::HUP);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(running.child.try_wait().unwrap().is_none(), "the service outlives its terminal");
    assert_eq!(running.stop().0, Some(0));
    assert_no_database(&folder);
}

#[test]
fn an_interrupted_start_leaves_no_database_running() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["demo"], &[]));
    running.line("Starting Callboard");
    let (status, log) = running.stop();
    assert_eq!((status, log.as_str()), (Some(0), ""));
    let pid = folder.path().join("data/postgres/postmaster.pid");
    // It received the stop signal, but the service did not wait.
    for _ in 0..200 {
        if !pid.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a database was left running");
}

#[test]
fn the_demo_creates_its_workflows_once_and_keeps_those_of_users() {
    let folder = folder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = |work: &dyn Fn(Client)| {
        let mut running = Running::start(callboard(&folder, &["serve"], &[]));
        let line = running.line("listening on ");
        work(Client::new(line.trim_start_matches("listening on ")).unwrap());
        assert_eq!(running.stop().0, Some(0));
    };
    served(&|client| {
        let own = CreateWorkflow {
            name: "Echo".to_owned(),
            handle: Some("echo".to_owned()),
            description: None,
            tags: Vec::new(),
        };
        runtime.block_on(client.create_workflow(&own)).unwrap();
        let own = CreateApp { alias: "ask".to_owned(), name: "Ask".to_owned(), access: None };
        runtime.block_on(client.create_app(&own)).unwrap();
    });
    for _ in 0..2 {
        let output = callboard(&folder, &["demo", "--exit"], &[]).output().unwrap();
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{printed}{}", text(&output.stderr));
        assert!(printed.contains("✓ Published 4 example workflows ("), "{printed}");
        assert!(printed.contains("✓ Published an example app ("), "{printed}");
        assert!(
            printed.contains("\nThe old harbour of Lund was built in 1873. In 2019 divers found"),
            "{printed}"
        );
        let mut scores = printed.lines().filter(|line| line.starts_with("✓ The new prompt scores "));
        assert!(scores.any(|line| line.contains(" calls of a model (")), "{printed}");
        assert_eq!(text(&output.stderr), "… Reading 2 pieces …\n");
    }
    served(&|client| {
        let workflows = runtime.block_on(client.workflows()).unwrap();
        let mut seen: Vec<_> =
            workflows.iter().map(|one| (one.handle.as_str(), one.latest_version, one.is_public)).collect();
        seen.sort_unstable();
        let ours = ["count", "echo", "summary", "support"].map(|name| format!("callboard-demo-{name}"));
        let mut expected: Vec<_> = ours.iter().map(|handle| (handle.as_str(), Some(1), true)).collect();
        // The workflows of the training and the app are not published.
        expected.push(("callboard-demo-sorting", Some(1), false));
        expected.push(("callboard-demo-tea-shop", Some(1), false));
        expected.push(("echo", None, false));
        expected.sort_unstable();
        assert_eq!(seen, expected);
        let part = Part { limit: None, cursor: None };
        let apps = runtime.block_on(client.apps(&part)).unwrap().data;
        let releases = |app: &AppRecord| app.active_release.as_ref().map(|active| active.number);
        let seen: Vec<_> = apps.iter().map(|app| (app.alias.as_str(), releases(app))).collect();
        assert_eq!(seen, [("callboard-demo-ask", Some(1)), ("ask", None)]);
    });
}

#[test]
fn the_demo_prints_each_address_on_a_line_and_keeps_serving() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["demo"], &[]));
    let printed = running.until_serving();
    let home = printed.lines().find(|line| line.starts_with("http://")).unwrap();
    let base = home.strip_suffix('/').unwrap();
    assert!(
        printed.contains(&format!("callboard chat callboard-demo-summary --api-url {base}")),
        "{printed}"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let published = runtime.block_on(Client::new(base).unwrap().workflows()).unwrap();
    let published = published.iter().filter(|one| one.is_public);
    let mut expected: Vec<_> = published.map(|one| format!("chat {base}/chat/{}", one.id)).collect();
    let mut chats: Vec<_> = printed.lines().filter(|line| line.starts_with("chat ")).collect();
    expected.sort_unstable();
    chats.sort_unstable();
    assert_eq!((chats.len(), chats), (4, expected.iter().map(String::as_str).collect()));
    let port = base.strip_prefix("http://localhost:").unwrap();
    assert!(printed.contains(&format!("\napp http://ask.apps.localhost:{port}\n")), "{printed}");
    runtime.block_on(async {
        let client = Client::new(&format!("http://127.0.0.1:{port}")).unwrap();
        let host = format!("ask.apps.localhost:{port}");
        let page =
            client.send("GET", "/", &[("host", host.as_str()), ("accept", "text/html")], "").await.unwrap();
        assert!(page.status == 200 && page.text().contains("Tea shop"), "{} {}", page.status, page.text());
        // The sign-in leads to the addresses that the demo prints.
        let login =
            client.send("GET", "/__service/auth/login", &[("host", host.as_str())], "").await.unwrap();
        let to = login.headers["location"].to_str().unwrap();
        assert!(login.status == 303 && to.starts_with(&format!("{base}/authorize?")), "{to}");
        assert!(to.contains(&format!("redirect_uri=http%3A%2F%2Fask.apps.localhost%3A{port}%2F")), "{to}");
        let authorize = client.send("GET", to.strip_prefix(base).unwrap(), &[], "").await.unwrap();
        assert_eq!(authorize.status, 303, "{}", authorize.text());
        assert!(authorize.headers["location"].to_str().unwrap().contains("login?return_to="));
    });
    assert_eq!(running.stop().0, Some(0));
    assert_no_database(&folder);
}

#[test]
fn the_node_catalogue_is_listed_and_described_without_a_service() {
    let list = run(&["node", "list"], &[]);
    let listed = text(&list.stdout);
    assert!(
        list.status.success() && listed.starts_with("TYPE             GROUP   SUMMARY\nset "),
        "{listed}"
    );
    assert!(
        listed.lines().any(|line| line.starts_with("llm              models  Calls a language model;")),
        "{listed}"
    );
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QUICKSTART.md");
    let page = std::fs::read_to_string(page).unwrap();
    let shown =
        page.split("callboard node list\n```\n\n```text\n").nth(1).unwrap().split("\n…\n```").next().unwrap();
    for line in shown.lines() {
        assert!(
            listed.lines().any(|row| row == line),
            "the quickstart shows another row than this list:\n{line}\n\n{listed}"
        );
    }
    let json: Vec<wire::NodeTypeRecord> =
        serde_json::from_slice(&run(&["node", "list", "--json"], &[]).stdout).unwrap();
    assert!(json.iter().any(|kind| kind.name == "reply" && kind.group == "chat"));

    let shown = text(&run(&["node", "show", "llm"], &[]).stdout);
    assert!(shown.starts_with("llm (models)\nCalls a language model;"), "{shown}");
    assert!(
        shown.contains("\n  model                required   string. `<provider>/<model>`; a template.\n"),
        "{shown}"
    );
    assert!(shown.contains("\nExample\n{\n  \"name\": \"answer\",\n  \"type\": \"llm\",\n"), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 120), "{shown}");
    let json: wire::NodeTypeRecord =
        serde_json::from_slice(&run(&["node", "show", "llm", "--json"], &[]).stdout).unwrap();
    assert_eq!((json.name.as_str(), json.effect.as_str()), ("llm", "model"));

    let slip = run(&["node", "show", "replay"], &[]);
    assert_eq!((slip.status.code(), text(&slip.stdout).as_str()), (Some(1), ""));
    assert_eq!(text(&slip.stderr), "error: unknown node type 'replay'; did you mean 'reply'?\n");
    assert_eq!(run(&["node", "show"], &[]).status.code(), Some(2));
}

#[test]
fn a_failed_run_is_logged_without_its_message() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["serve"], &[]));
    let line = running.line("listening on ");
    let client = Client::new(line.trim_start_matches("listening on ")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let name = "Failing".to_owned();
        let new = CreateWorkflow { name, handle: None, description: None, tags: Vec::new() };
        let workflow = client.create_workflow(&new).await.unwrap();
        let graph = json!({
            "format": "graph/1",
            "nodes": [{"name": "stock", "type": "assert", "when": "false", "message": "{{ inputs.message }}"}],
            "edges": [{"from": "START", "to": "stock"}, {"from": "stock", "to": "END"}],
        });
        let version = CreateVersion { graph, runnable_config: None, metadata: None, notes: None };
        client.save_version(&workflow.id, &version).await.unwrap();
        client.publish(&workflow.id, &PublishRequest::default()).await.unwrap();
        let turn = client.say(&workflow.id, "hunter2").await.unwrap();
        assert_eq!(turn.error.unwrap().code.as_deref(), Some("node.failed"));
    });
    let (status, log) = running.stop();
    assert_eq!(status, Some(0));
    let entry = log.lines().find(|line| line.contains("run failed")).unwrap_or_else(|| panic!("{log}"));
    assert!(entry.contains("WARN"), "{entry}");
    assert!(
        entry.contains("node.failed") && entry.contains("stock") && entry.contains("/api/runs/"),
        "{entry}"
    );
    assert!(!log.contains("hunter2"), "{log}");
}
