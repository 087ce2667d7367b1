//! `demo --practice`: every workflow of `examples/` with its simulated services, as its texts promise.

use std::io::BufRead as _;
use std::time::Duration;

use client::{Client, RunOptions, RunsFilter};
use kernel::{Clock as _, SystemClock};
use serde_json::{Value, json};
use wire::{CreateRun, RunRecord, RunState};

use crate::support::{Running, callboard, folder};

/// Handle, message, and a text that the answer must contain.
const ANSWERS: [(&str, &str, &str); 25] = [
    ("support-desk", "I want a refund for order 10017. My mail is ana@example.com", "42.5"),
    ("support-desk", "I want a refund for order 10018. My mail is ana@example.com", "do not allow"),
    ("support-desk", "I want to talk to a human.", "colleague writes back"),
    ("support-desk", "When are you open?", "from 9 to 18"),
    ("support-desk", "What can you do?", "look up orders"),
    ("support-desk", "How much is shipping?", "4 euros"),
    ("support-desk", "My parcel is broken", "number of the order"),
    ("support-desk", "Are you open on Sundays?", "closed"),
    ("support-desk", "How can I pay?", "by card"),
    ("support-desk", "How long does delivery take?", "four days"),
    ("support-desk", "How do I return a tea?", "within 30 days"),
    ("support-desk", "How long do refunds take?", "five days"),
    ("support-desk", "What is the capital of France?", "I do not know that"),
    ("ask", "How many days of leave are there?", "thirty days"),
    ("ask", "Are planes paid?", "planes and flights are not"),
    ("ask", "What is the capital of France?", "do not say that"),
    ("ask", "Are trains paid?", "Trains are paid"),
    ("ask", "Who knows about pay?", "Mia"),
    ("ask", "When is the salary paid?", "25th"),
    ("ask", "May I work from home?", "two days a week"),
    ("ask", "How much may a hotel cost?", "120 euros"),
    ("ask", "What are the working hours?", "38 a week"),
    ("ask", "I am ill. What do I do?", "before nine"),
    ("ask", "What can you do?", "answer questions from documents"),
    ("ask", "Which documents have you read?", "The handbook"),
];

async fn run(client: &Client, handle: &str, inputs: Value) -> RunRecord {
    let request = CreateRun { inputs: Some(inputs), ..CreateRun::default() };
    let wait = RunOptions { wait: Some(Duration::from_secs(60)), idempotency_key: None };
    client.begin_run(handle, &request, &wait).await.unwrap().run
}

#[test]
fn every_example_runs_offline_with_one_flag() {
    let folder = folder();
    let mut running = Running::start(callboard(
        &folder,
        &["demo", "--practice"],
        &[("SERVICE_CHAT_RATE_LIMIT_IP", "0"), ("SERVICE_LOG", "off")],
    ));
    let mut printed = running.until_serving();
    let home = printed.lines().find(|line| line.starts_with("http://")).unwrap();
    let base = home.strip_suffix('/').unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(base).unwrap();
        for (handle, question, fits) in ANSWERS {
            let id = client.workflow(handle).await.unwrap().id;
            let turn = client.say(&id, question).await.unwrap();
            assert!(turn.text.contains(fits), "{handle}: {question} -> {}", turn.text);
        }
        for handle in ["support-desk", "ask"] {
            for prompt in client.workflow(handle).await.unwrap().chat.start_prompts {
                let text = prompt["prompt"].as_str().unwrap();
                assert!(
                    ANSWERS.iter().any(|(of, question, _)| (*of, *question) == (handle, text)),
                    "{text} has no row"
                );
            }
        }
        let report = run(&client, "nightly-report", json!({})).await;
        assert_eq!(
            (report.status, &report.output["numbers"]["revenue"]),
            (RunState::Succeeded, &json!(40.5))
        );
        let text = include_str!("../../../../examples/invoice-extraction/sample.txt");
        let invoice = run(&client, "invoice", json!({"text": text})).await;
        assert_eq!((&invoice.output["sound"], &invoice.output["tries"]), (&json!(true), &json!(1)));
        // As in the printed command.
        assert!(printed.contains("X-Token: practice-ci-0123456789"), "{printed}");
        let headers = [("content-type", "application/json"), ("x-token", "practice-ci-0123456789")];
        let body = json!({"service": "shop", "version": "1.8.2", "by": "Ana"}).to_string();
        let called =
            client.send("POST", "/api/workflows/deploy/triggers/webhook", &headers, body).await.unwrap();
        assert_eq!(called.status, 202, "{}", called.text());
        let clock = SystemClock::new();
        let waits = RunsFilter { waits: Some(true), ..RunsFilter::default() };
        let asking = async {
            loop {
                let found = client.runs_of_workspace(&waits, &client::Part::default()).await.unwrap().data;
                if let Some(run) = found.into_iter().next() {
                    return run.id;
                }
                clock.sleep(Duration::from_millis(20)).await;
            }
        };
        let waiting =
            kernel::timeout(&clock, Duration::from_secs(60), asking).await.expect("no run asks for input");
        client.answer_run(&waiting, "release", &json!({"approved": true})).await.unwrap();
    });
    // Requests to the simulated services are printed.
    let shown = [
        "[simulated] The shop pays 42.5 back for order 10017.",
        "[simulated] Slack, #support: A customer waits",
        "[simulated] Slack, #releases: Ana wants to release shop 1.8.2.",
        "Subject: 3 orders, 40.5 in all",
        "[simulated] The deployer receives: {",
    ];
    let output = running.output.as_mut().unwrap();
    while !shown.iter().all(|line| printed.contains(line)) {
        assert!(output.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    assert_eq!(running.stop().0, Some(0));
    // A second start in the same folder works.
    let again = callboard(&folder, &["demo", "--practice", "--exit"], &[]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}
