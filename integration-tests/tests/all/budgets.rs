//! Daily budgets for a chat's models: per session and per workflow, in tokens and in money.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{
    Answer, AnswerExt, Endpoint, JSON, TestService, Workflow, chat, events, graphs, until,
};
use serde_json::{Value, json};

use crate::questions::PendingQuestion;

/// Tokens that the endpoint reports per call.
const CALL: u64 = 7;

/// Calls a priced model once per message.
fn model_graph() -> Value {
    let nodes = [
        json!({"name": "said", "type": "llm", "model": "openai/gpt-4.1-mini", "user": "hi", "max_tokens": 5, "stream": true}),
    ];
    graphs::chain(&nodes, None)
}

async fn limited_workflow(t: &TestService, graph: Value, limits: Value) -> Workflow {
    let settings = json!({"chat": {"limits": limits}});
    t.workflow().graph(graph).published().settings(settings).create().await
}

async fn limit(t: &TestService, workflow: &Workflow, limits: Value) -> Answer {
    t.configure(workflow, &json!({"chat": {"limits": limits}})).await
}

/// A single instance: another one learns the usage within a second, but not the reservations.
async fn single_instance(model: &Endpoint) -> TestService {
    model.builder().alone().start().await
}

/// Sends a message with a visitor's cookie; returns the response and its cookie.
async fn say(t: &TestService, workflow: &Workflow, cookie: Option<&str>) -> (Answer, Option<String>) {
    let mut headers = vec![JSON];
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    let answer = t.send("POST", "/api/chat", &headers, chat::create(workflow, "hi").to_string()).await;
    let cookie = answer.header("set-cookie").map(|cookie| cookie.split(';').next().unwrap().to_owned());
    (answer, cookie)
}

/// The code of the error that ends the stream; `None` for a complete reply.
fn failure(answer: &Answer) -> Option<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let last = events(&answer.text()).pop().unwrap();
    assert!(last["type"] != "error" || last["allow_retry"] == false, "{last}");
    last["error_code"].as_str().map(str::to_owned)
}

async fn usage(t: &TestService, workflow: &Workflow) -> Value {
    t.get(&workflow.path("/chat/usage")).await.value()["data"].clone()
}

#[tokio::test]
async fn token_limits_apply_per_session() {
    let model = Endpoint::quick().await;
    let t = single_instance(&model).await;
    let workflow = limited_workflow(&t, model_graph(), json!({"session_tokens_per_day": 2 * CALL + 3})).await;
    let (first, cookie) = say(&t, &workflow, None).await;
    assert_eq!(failure(&first), None);
    let cookie = cookie.unwrap();
    assert_eq!(failure(&say(&t, &workflow, Some(&cookie)).await.0), None);
    // A third call could exceed the limit, which is not reached.
    let (third, _) = say(&t, &workflow, Some(&cookie)).await;
    assert_eq!(failure(&third).as_deref(), Some("chat.budget.session"));
    assert!(third.text().contains("The limit for today is reached."), "{}", third.text());
    assert_eq!(model.asked(), 2, "the call that would exceed it was not made");
    let (other, _) = say(&t, &workflow, None).await;
    assert_eq!(failure(&other), None, "another visitor is not limited");
    // The limit is reached: no turn starts.
    assert_eq!(limit(&t, &workflow, json!({"session_tokens_per_day": 2 * CALL})).await.status, 200);
    let (refused, _) = say(&t, &workflow, Some(&cookie)).await;
    assert_eq!(refused.refusal(), "429 chat.budget.session");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "4", "a rejected message is not stored");
    // Without limits, messages get replies again.
    assert_eq!(limit(&t, &workflow, json!(null)).await.status, 200);
    assert_eq!(failure(&say(&t, &workflow, Some(&cookie)).await.0), None);
    let used = usage(&t, &workflow).await;
    let expected = json!({"sessions": 2, "turns": 5, "calls": 4, "input_tokens": 12, "output_tokens": 16});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(used[0][name], *value, "{used}");
    }
    assert!(used[0]["usd"].as_f64().unwrap() > 0.0, "{used}");
}

#[tokio::test]
async fn a_workflow_can_have_a_cost_limit() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let workflow = limited_workflow(&t, model_graph(), json!({"usd_per_day": 0.00001})).await;
    let (first, _) = say(&t, &workflow, None).await;
    assert_eq!(failure(&first).as_deref(), None);
    let (second, _) = say(&t, &workflow, None).await;
    assert_eq!(failure(&second).as_deref(), Some("chat.budget.workflow"), "{}", second.text());
    // Models without a price have no known cost.
    let mut free = model_graph();
    free["nodes"][0]["model"] = json!("openai/unpriced");
    let workflow = limited_workflow(&t, free, json!({"usd_per_day": 0.000_000_001})).await;
    assert_eq!(failure(&say(&t, &workflow, None).await.0), None);
}

#[tokio::test]
async fn concurrent_calls_do_not_exceed_a_limit_together() {
    let model = Endpoint::holding().await;
    let t = single_instance(&model).await;
    // Each call reserves 5 tokens and its input.
    let workflow = limited_workflow(&t, model_graph(), json!({"tokens_per_day": 24})).await;
    let all = join_all((0..10).map(|_| say(&t, &workflow, None)));
    let release = async {
        until("calls are made", async || model.asked() >= 4).await;
        integration_tests::pause(300).await;
        model.release();
    };
    let (answers, ()) = futures_util::join!(all, release);
    let failed = answers.iter().filter(|(answer, _)| failure(answer).is_some()).count();
    assert_eq!((model.asked(), failed), (4, 6), "0 bytes / 4 + 5 tokens each: four fit into 24");
}

#[tokio::test]
async fn usage_survives_a_restart_and_resets_daily() {
    let model = Endpoint::quick().await;
    let mut t = model.builder().manual_clock().start().await;
    let workflow = limited_workflow(&t, model_graph(), json!({"tokens_per_day": CALL})).await;
    let first = t.while_time_passes(say(&t, &workflow, None)).await.0;
    assert_eq!(failure(&first), None);
    t.restart().await;
    assert_eq!(say(&t, &workflow, None).await.0.refusal(), "429 chat.budget.workflow");
    t.advance(Duration::from_secs(86_400));
    let next = t.while_time_passes(say(&t, &workflow, None)).await.0;
    assert_eq!(failure(&next), None);
    assert_eq!(usage(&t, &workflow).await.as_array().unwrap().len(), 2);
    t.advance(Duration::from_secs(40 * 86_400));
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("old days are deleted", async || t.scalar("SELECT count(*) FROM chat_usage").await == "0"),
    )
    .await;
}

#[tokio::test]
async fn agents_failed_turns_and_transcriptions_count() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let agent = json!({"name": "help", "type": "agent", "model": "openai/gpt-4.1-mini", "user": "hi", "max_tokens": 5, "tools": [
        {"type": "node", "name": "add", "description": "Adds.", "parameters": {"type": "object"}, "node": {"type": "set", "values": {"a": 1}}}]});
    let no = json!({"name": "no", "type": "assert", "when": "false", "message": "no"});
    let workflow = limited_workflow(&t, graphs::chain(&[agent, no], None), json!({})).await;
    model.calls("add", &json!({})).await;
    let (answer, _) = say(&t, &workflow, None).await;
    assert!(failure(&answer).is_some());
    let used = usage(&t, &workflow).await;
    assert_eq!(
        (&used[0]["calls"], &used[0]["turns"]),
        (&json!(2), &json!(1)),
        "each call is counted once: {used}"
    );
    let settings = json!({"chat": {"transcription": {"model": "practice/transcribe"}, "limits": {"tokens_per_day": 2 * CALL + 1}}});
    t.configure(&workflow, &settings).await.expect(200);
    let audio = json!({"audio_base64": "cHJhY3RpY2U6aGk=", "mime_type": "audio/webm"});
    let request = chat::ask(&workflow, "input.transcribe", audio);
    assert_eq!(t.chat(&request).await.value(), json!({"text": "hi"}));
    assert_eq!(usage(&t, &workflow).await[0]["calls"], 3);
    until("the sum to be refreshed", async || t.chat(&request).await.refusal() == "429 chat.budget.workflow")
        .await;
}

#[tokio::test]
async fn limits_are_validated_and_usage_requires_read_access() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    for (limits, place) in [
        (json!({"tokens_per_day": 0}), "/chat/limits/tokens_per_day range"),
        (json!({"session_tokens_per_day": 1.5}), "/chat/limits/session_tokens_per_day range"),
        (json!({"usd_per_day": -1}), "/chat/limits/usd_per_day range"),
        (json!({"session_usd_per_day": "1"}), "/chat/limits/session_usd_per_day range"),
        (json!({"tokens": 1}), "/chat/limits/tokens unknown_field"),
        (json!([]), "/chat/limits type"),
    ] {
        assert_eq!(limit(&t, &workflow, limits.clone()).await.problems(), [place], "{limits}");
    }
    assert_eq!(usage(&t, &workflow).await, json!([]));
    // A workflow without models is never limited, and stores no limit data.
    assert_eq!(limit(&t, &workflow, json!({"tokens_per_day": 1})).await.status, 200);
    assert_eq!(failure(&say(&t, &workflow, None).await.0), None);
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE options IS NOT NULL").await, "0");
    let bad = t.get(&workflow.path("/chat/usage?from=yesterday")).await;
    assert_eq!(bad.problems().len(), 1, "{}", bad.text());
}

#[tokio::test]
async fn a_continued_turn_does_not_count_its_calls_again() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let ask = json!({"name": "sure", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Sure?"}]});
    let mut graph = model_graph();
    graph["nodes"].as_array_mut().unwrap().push(ask);
    graph["nodes"].as_array_mut().unwrap().push(json!({"name": "end", "type": "reply", "text": "Done."}));
    let graph = graphs::chain(graph["nodes"].as_array().unwrap(), None);
    let question = PendingQuestion::start(&t, graph).await;
    let input = json!({"answers": {"q": {"values": ["yes"]}}});
    let answered = t.chat(&question.submission(input)).await;
    assert!(answered.text().contains("Done."), "{}", answered.text());
    let used = usage(&t, &question.workflow).await;
    assert_eq!((model.asked(), &used[0]["calls"], &used[0]["turns"]), (1, &json!(1), &json!(2)), "{used}");
}

#[tokio::test]
async fn stopped_and_interrupted_turns_count_with_their_calls() {
    let model = Endpoint::holding().await;
    let mut t = model.service().await;
    let mut graph = model_graph();
    let slow = json!({"name": "slow", "type": "reply", "text": "one two three", "pieces": "words", "pause_ms": 2_000});
    graph["nodes"].as_array_mut().unwrap().push(slow);
    let graph = graphs::chain(graph["nodes"].as_array().unwrap(), None);
    let workflow = limited_workflow(&t, graph, json!({})).await;
    let stopped = t.open_chat(&chat::create(&workflow, "hi")).await;
    until("the call is made", async || model.asked() == 1).await;
    t.stop_turn(stopped.header("x-chat-stream-id").unwrap()).await;
    until("the turn is counted", async || usage(&t, &workflow).await[0]["turns"] == 1).await;
    assert_eq!(usage(&t, &workflow).await[0]["calls"], 1, "an abandoned call is counted");
    let interrupted = t.open_chat(&chat::create(&workflow, "hi")).await;
    until("the call is made", async || model.asked() == 2).await;
    model.release();
    until("its step is stored", async || usage(&t, &workflow).await[0]["calls"] == 2).await;
    drop(interrupted);
    t.restart().await;
    until("the turn is counted", async || usage(&t, &workflow).await[0]["turns"] == 2).await;
    assert_eq!(usage(&t, &workflow).await[0]["calls"], 2);
}

#[tokio::test]
async fn a_cost_limit_with_an_unpriced_model_causes_a_warning() {
    let t = TestService::start().await;
    let mut graph = model_graph();
    graph["nodes"][0]["model"] = json!("openai/unpriced");
    let workflow = limited_workflow(&t, graph, json!({"usd_per_day": 1.0})).await;
    let readiness = async |workflow: &Workflow| t.get(&workflow.path("")).await.value()["readiness"].clone();
    let report = readiness(&workflow).await;
    assert_eq!(report["ready"], true, "{report}");
    assert!(report["warnings"][0].as_str().unwrap().contains("openai/unpriced"), "{report}");
    assert_eq!(limit(&t, &workflow, json!({"tokens_per_day": 100})).await.status, 200);
    assert_eq!(readiness(&workflow).await, json!(null), "a limit in tokens counts every model");
    let priced = limited_workflow(&t, model_graph(), json!({"usd_per_day": 1.0})).await;
    assert_eq!(readiness(&priced).await, json!(null));
}
