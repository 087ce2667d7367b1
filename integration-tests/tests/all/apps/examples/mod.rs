//! The apps in `examples/apps`: checked, deployed with their workflows, and published.

mod chromium;

use std::path::PathBuf;
use std::process::Output;

use integration_tests::{AnswerExt, TestService, Workflow};
use serde_json::{Value, json};

fn example(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/apps").join(path)
}

/// Runs `callboard <arguments>` as a user types it.
async fn callboard(t: &TestService, arguments: &[&str]) -> Output {
    let binary = std::env::var("CALLBOARD_BIN").expect("CALLBOARD_BIN is not set: run `cargo xtask test`");
    let mut command = tokio::process::Command::new(binary);
    command.args(arguments).env("SERVICE_API_URL", format!("http://{}", t.address()));
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("SERVICE_SERVICE_TOKEN");
    command.output().await.unwrap()
}

/// Like [`callboard`], for a command that succeeds and prints JSON.
async fn printed_json(t: &TestService, arguments: &[&str]) -> Value {
    let all = [arguments, &["--output", "json"]].concat();
    let Output { status, stdout, stderr } = callboard(t, &all).await;
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// The workflow for `ask`, with the built-in model.
async fn ask(t: &TestService) -> Workflow {
    ask_with(t, "practice/assistant").await
}

async fn ask_with(t: &TestService, model: &str) -> Workflow {
    let graph =
        serde_json::from_str(&std::fs::read_to_string(example("ask/workflow.json")).unwrap()).unwrap();
    t.workflow().named("Tea shop").graph(graph).config(json!({"model": model})).create().await
}

#[tokio::test]
async fn both_apps_pass_the_check_without_notes() {
    let t = TestService::start().await;
    for app in ["ask/app", "board/app"] {
        let path = example(app).display().to_string();
        let report = printed_json(&t, &["app", "check", &path]).await;
        assert_eq!(
            (&report["valid"], &report["report"]),
            (&json!(true), &json!({"dropped": [], "notes": []})),
            "{app}"
        );
    }
}

#[tokio::test]
async fn both_apps_are_published_with_their_declarations() {
    let t = TestService::start().await;
    let workflow = ask(&t).await;
    for (alias, bindings, collections) in
        [("ask", vec!["ask"], vec!["favourites"]), ("board", vec![], vec!["cards", "pins"])]
    {
        let app = t.app(alias).create().await;
        let path = example(alias).join("app").display().to_string();
        let deployed = printed_json(&t, &["app", "deploy", alias, &path]).await;
        let release = app.publish(&t, deployed["id"].as_str().unwrap()).await;
        let names = |member: &str| release[member].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            (names("bindings"), names("collections")),
            (owned(&bindings), owned(&collections)),
            "{alias}"
        );
        if alias == "ask" {
            let frozen = &release["bindings"]["ask"];
            assert_eq!((&frozen["workflow_id"], &frozen["version"]), (&json!(workflow.id), &json!(1)));
            assert_eq!(frozen["output_projection"], json!({"fields": ["answer", "topic"]}));
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn the_ask_workflow_answers_from_its_facts() {
    let t = TestService::start().await;
    let workflow = ask(&t).await;
    for (question, answer, topic) in [
        (
            "How long do I brew green tea?",
            "Green tea is brewed with water of 70 degrees, for two minutes.",
            "Brewing",
        ),
        (
            "Are you open on Saturdays?",
            "The shop is open from 9 to 18 on weekdays, and on Saturdays until 13.",
            "Opening hours",
        ),
        ("What does shipping cost?", "Shipping costs 4 euros, and is free from 40 euros on.", "Delivery"),
        (
            "Which tea has no caffeine?",
            "Herbal tea is brewed with boiling water, for eight minutes, and has no caffeine.",
            "Our teas",
        ),
        ("Where are you?", "The shop is in Lund, at Harbour Street 7.", "Our teas"),
    ] {
        let path = workflow.path("/runs?wait=30");
        let done = t.post(&path, &json!({"inputs": {"question": question}}).to_string()).await.value();
        assert_eq!(done["output"], json!({"answer": answer, "topic": topic}), "{question}: {done:#}");
    }
}
