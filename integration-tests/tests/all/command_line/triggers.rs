//! `callboard trigger …`.

use integration_tests::{AnswerExt, BOOTSTRAP, JSON, TestService, graphs};

use super::terminal::Terminal;

const SECRET: &str = "canary-0123456789-of-the-webhook";

#[tokio::test]
async fn a_workflow_gets_a_schedule_and_a_webhook() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await.id;
    let none = terminal.run(&["trigger", "show", &workflow]).await;
    assert!(none.status == Some(0) && none.err.starts_with("No triggers found."), "{}", none.err);
    let set = ["trigger", "cron", &workflow, "0 0 1 1 *", "--timezone", "Asia/Tokyo", "--missed", "once"];
    let scheduled = terminal.output_of(&set).await;
    for line in ["schedule   0 0 1 1 * in Asia/Tokyo\n", "-12-31 15:00:00Z\n", "missed     one run"] {
        assert!(scheduled.contains(line), "{scheduled}");
    }
    let wrong = terminal.run(&["trigger", "cron", &workflow, "61 * * * *", "--timezone", "Tokyo"]).await;
    assert!(wrong.status == Some(1) && wrong.err.contains("did you mean 'Asia/Tokyo'?"), "{}", wrong.err);
    assert!(wrong.err.contains("/expression"), "{}", wrong.err);
    let webhook = ["trigger", "webhook", &workflow];
    let plain = terminal.type_in(&webhook, &format!("{SECRET}\n")).await;
    let address = format!("POST {}/api/workflows/{workflow}/triggers/webhook\n", terminal.address());
    assert!(plain.status == Some(0) && plain.out.contains(&address), "{} {}", plain.out, plain.err);
    assert!(plain.out.contains("x-signature: HMAC-SHA-256 of \"<time>.<body>\""), "{}", plain.out);
    let mut command =
        terminal.command(&[&webhook[..], &["--sender", "github", "--from-env", "KEY"]].concat());
    let github = command.env("KEY", SECRET).output().await.unwrap();
    assert!(String::from_utf8_lossy(&github.stdout).contains("delivery   x-github-delivery"));
    let open = [&webhook[..], &["--anybody", "--method", "PUT", "--rate", "5/60"]].concat();
    let open = terminal.output_of(&open).await;
    assert!(open.contains("webhook    PUT ") && open.contains("5 calls in 60 s"), "{open}");
    let shown = terminal.output_of(&["trigger", "show", &workflow]).await;
    assert!(shown.contains("schedule   ") && shown.ends_with(&open), "{shown}");
    // The results of its last runs.
    let path = format!("/api/workflows/{workflow}/triggers/webhook");
    t.send("PUT", &path, &[JSON], "{}".to_owned()).await.expect(202);
    integration_tests::until("the run ends", async || {
        let shown = terminal.output_of(&["trigger", "show", &workflow]).await;
        shown
            .lines()
            .last()
            .is_some_and(|line| line.starts_with("webhook    2") && line.contains("succeeded"))
    })
    .await;
    let listed = terminal.output_of(&["trigger", "list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("WORKFLOW "), "{listed}");
    assert!(
        lines[1].contains("  cron     0 0 1 1 * in Asia/Tokyo  ") && lines[2].contains("  webhook  PUT"),
        "{listed}"
    );
    let json = terminal.output_of(&["trigger", "list", "--json"]).await;
    assert!(json.contains(&workflow) && json.contains("\"expression\": \"0 0 1 1 *\""), "{json}");
    let json = terminal.output_of(&["trigger", "show", &workflow, "--output", "json"]).await;
    assert!(json.contains("\"runs\": [\n"), "{json}");
    assert!(json.contains("\"next_fire_at\"") && json.contains("\"allow_unsigned\": true"), "{json}");
    for (arguments, status, says) in [
        (&["trigger", "webhook", &workflow][..], 2, "no secret"),
        (&["trigger", "webhook", &workflow, "--rate", "5"], 2, "such as 60/60"),
        (&["trigger", "webhook", &workflow, "--anybody", "--sender", "slack"], 2, "cannot be used with"),
        (
            &["trigger", "webhook", &workflow, "--secret-header", "X-T", "--from-env", "SHORT"],
            1,
            "16 to 1024",
        ),
        (&["trigger", "show", "nobody"], 1, "workflow.not_found"),
        (&["trigger", "remove", &workflow, "both"], 2, "invalid value"),
    ] {
        let mut command = terminal.command(arguments);
        let ran = command.env("SHORT", "short").output().await.unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(status) && err.contains(says), "{arguments:?}: {err}");
        assert!(!err.contains("canary"), "{err}");
    }
    for trigger in ["cron", "webhook"] {
        let remove = ["trigger", "remove", &workflow, trigger];
        assert!(terminal.output_of(&remove).await.starts_with("Removed the "));
        assert!(terminal.run(&remove).await.err.contains("(trigger.not_found)"));
    }
}
