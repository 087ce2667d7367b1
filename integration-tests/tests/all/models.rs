//! Language models: from an endpoint and built-in, in chats and in runs.

use futures_util::future::join_all;
use integration_tests::{
    AnswerExt, Endpoint, TestService, Workflow, chat, events, graphs, thread_of, until, within,
};
use serde_json::{Value, json};

async fn with(endpoint: &Endpoint) -> TestService {
    endpoint.builder().set("SERVICE_MODEL_API_KEY", "sk-test").start().await
}

fn model_graph(model: &str) -> Value {
    let ask = json!({"name": "answer", "type": "llm", "model": model, "system": "Be brief.", "messages": "{{ messages }}",
                     "stream": true});
    graphs::chain(&[ask], None)
}

/// The joined text of the chat's pieces.
fn streamed_text(body: &str) -> String {
    let piece = |event: &Value| event["update"]["part"]["text"].as_str().map(str::to_owned);
    events(body).iter().filter_map(piece).collect()
}

#[tokio::test]
async fn a_chat_streams_the_endpoints_reply() {
    let endpoint = Endpoint::quick().await;
    let t = with(&endpoint).await;
    let workflow = t.workflow().graph(model_graph("openai/test")).published().create().await;
    let body = t.chat(&chat::create(&workflow, "good morning")).await.text();
    assert_eq!(streamed_text(&body), "You said: good morning");
    let last = events(&body).pop().unwrap();
    assert_eq!(last["type"], "thread.item.done");
    let request = endpoint.requests().await.pop().unwrap();
    assert_eq!(request["messages"][0], json!({"role": "system", "content": "Be brief."}));
    assert_eq!(request["messages"][1]["content"], "good morning");
    assert_eq!((request["model"].as_str(), request["stream"].as_bool()), (Some("test"), Some(true)));
}

/// The notices of a new turn.
async fn notices_of_turn(t: &TestService, workflow: &Workflow) -> Vec<String> {
    let body = t.chat(&chat::create(workflow, "hi")).await.text();
    let notices = events(&body).into_iter().filter(|event| event["type"] == "notice");
    notices.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn readers_are_notified_of_declined_and_empty_replies() {
    let endpoint = Endpoint::quick().await;
    let t = with(&endpoint).await;
    let workflow = t.workflow().graph(model_graph("openai/test")).published().create().await;
    let notices = async || notices_of_turn(&t, &workflow).await;
    endpoint.declines("I cannot help with that.").await;
    assert_eq!(notices().await, ["The model declined to answer."]);
    endpoint.says("").await;
    assert_eq!(notices().await, ["The model returned an empty answer."]);
    endpoint.says("Hello.").await;
    assert_eq!(notices().await, [""; 0]);
}

#[tokio::test]
async fn readers_are_notified_of_missing_answers_that_a_reply_would_show() {
    let endpoint = Endpoint::quick().await;
    let t = with(&endpoint).await;
    let nodes = [
        json!({"name": "answer", "type": "llm", "model": "openai/test", "messages": "{{ messages }}"}),
        json!({"name": "said", "type": "reply",
               "text": "{{ results.answer.text if results.answer.finish_reason != 'content_filter' else '' }}"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    endpoint.declines("I cannot help with that.").await;
    assert_eq!(notices_of_turn(&t, &workflow).await, ["The model declined to answer."]);
    endpoint.says(" ").await;
    assert_eq!(notices_of_turn(&t, &workflow).await, ["The model returned an empty answer."]);
    endpoint.says("Hello.").await;
    assert_eq!(notices_of_turn(&t, &workflow).await, [""; 0]);
}

#[tokio::test]
async fn a_thread_is_sent_in_the_models_message_format() {
    let endpoint = Endpoint::quick().await;
    let t = with(&endpoint).await;
    let workflow = t.workflow().graph(model_graph("openai/test")).published().create().await;
    let first = t.chat(&chat::create(&workflow, "one")).await.text();
    let thread = thread_of(&first);
    t.chat(&chat::add(&workflow, &thread, "two")).await;
    let messages = endpoint.requests().await.pop().unwrap()["messages"].clone();
    let sent: Vec<(&str, &str)> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        sent,
        [("system", "Be brief."), ("user", "one"), ("assistant", "You said: one"), ("user", "two")]
    );
}

#[tokio::test]
async fn a_stop_reaches_the_call_in_progress() {
    let endpoint = Endpoint::holding().await;
    let t = with(&endpoint).await;
    let workflow = t.workflow().graph(model_graph("openai/test")).published().create().await;
    let answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    until("the endpoint to be called", async || endpoint.asked() == 1).await;
    assert_eq!(t.stop_turn(&stream).await.value()["status"], "stopped");
    until("the connection is closed", async || endpoint.gone() == 1).await;
    assert_eq!(endpoint.asked(), 1, "a stopped call is not repeated");
}

#[tokio::test]
async fn a_call_interrupted_by_a_shutdown_is_repeated_with_the_same_key() {
    let endpoint = Endpoint::holding().await;
    let mut t = with(&endpoint).await;
    let ask = json!({"name": "answer", "type": "llm", "model": "openai/test", "user": "{{ inputs.q }}"});
    let workflow =
        t.workflow().graph(graphs::chain(&[ask], Some(json!("{{ results.answer.text }}")))).create().await;
    let run = t.post(&workflow.path("/runs"), r#"{"inputs":{"q":"why"}}"#).await;
    let run = format!("/api/runs/{}", run.value()["id"].as_str().unwrap());
    until("the endpoint to be called", async || endpoint.asked() == 1).await;
    t.restart().await;
    until("the endpoint to be called again", async || endpoint.asked() == 2).await;
    endpoint.release();
    until("the run ends", async || t.get(&run).await.value()["status"] == "succeeded").await;
    assert_eq!(t.get(&run).await.value()["output"], "You said: why");
    let keys = endpoint.keys().await;
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[tokio::test]
async fn a_thousand_runs_wait_on_a_slow_model_with_four_connections() {
    const RUNS: usize = 1_000;
    let endpoint = Endpoint::holding().await;
    let t = endpoint
        .builder()
        .set("SERVICE_DATABASE_POOL", "4")
        .set("SERVICE_DATABASE_WRITERS", "1")
        .start()
        .await;
    let before = json!({"name": "ready", "type": "template", "template": "{{ inputs.n }}"});
    let ask = json!({"name": "answer", "type": "llm", "model": "openai/test", "user": "{{ results.ready.text }}",
                     "timeout_seconds": 170});
    let output = json!("{{ results.answer.text }}");
    let workflow = t.workflow().graph(graphs::chain(&[before, ask], Some(output))).create().await;
    let path = workflow.path("/runs");
    for batch in 0..RUNS / 50 {
        let starts = (0..50).map(|n| {
            let body = json!({"inputs": {"n": batch * 50 + n}}).to_string();
            let path = &path;
            let t = &t;
            async move { t.post(path, &body).await.status }
        });
        assert!(join_all(starts).await.iter().all(|status| *status == 202));
    }
    within("all of them ask the model", async {
        while endpoint.asked() < RUNS {
            integration_tests::pause(50).await;
        }
    })
    .await;
    // All requests wait, without blocking the service.
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND pid <> pg_backend_pid() AND state IS NOT NULL";
    let open: usize = t.scalar(connections).await.parse().unwrap();
    assert!(open <= 4 + 1, "{open} connections, the test's own included");
    t.assert_healthy().await;
    let echo = t.workflow().echo().published().create().await;
    let answer = within("a chat in addition", t.chat(&chat::create(&echo, "hi"))).await;
    assert!(answer.text().contains("thread.item.done"));
    endpoint.release();
    let done = "SELECT count(*) FROM runs WHERE status = 'succeeded' AND trigger = 'api'";
    t.until_scalar("every run ends", done, &RUNS.to_string()).await;
    let wrong = "SELECT count(*) FROM runs WHERE trigger = 'api' AND output <> \
                 '\"You said: ' || (inputs::json ->> 'n') || '\"'";
    assert_eq!(t.scalar(wrong).await, "0");
    assert_eq!(endpoint.asked(), RUNS, "each call was made once");
}

#[tokio::test]
async fn unconfigured_models_fail_clearly_and_the_practice_model_works() {
    let t = TestService::start().await;
    let ask = |model: &str| {
        let ask = json!({"name": "answer", "type": "llm", "model": model, "user": "hello"});
        graphs::chain(&[ask], Some(json!("{{ results.answer.text }}")))
    };
    let run = async |model: &str| {
        let workflow = t.workflow().graph(ask(model)).create().await;
        t.post(&workflow.path("/runs?wait=20"), "").await.value()
    };
    let failed = run("openai/gpt-4.1-mini").await;
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["node"]),
        (&json!("model.not_configured"), &json!("answer"))
    );
    assert!(failed["error"]["message"].as_str().unwrap().contains("SERVICE_MODEL_BASE_URL"));
    assert_eq!(run("{{ 'nobody' }}/model").await["error"]["code"], "model.not_configured");
    // An unknown model in a graph is rejected when the version is saved.
    let workflow = t.workflow().without_version().create().await;
    let version = json!({"graph": ask("nobody/model")}).to_string();
    let refused = t.post(&workflow.path("/versions"), &version).await.expect(422);
    assert_eq!(refused.value()["detail"]["errors"][0]["code"], "unknown_provider");
    let done = run("practice/assistant").await;
    assert_eq!(done["status"], "succeeded", "{done}");
    assert!(!done["output"].as_str().unwrap().is_empty());
    assert_eq!(
        run("practice/assistant").await["output"],
        done["output"],
        "the same request, the same answer"
    );
}
