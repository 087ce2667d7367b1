//! Thread titles that a model writes.

use integration_tests::{
    Answer, AnswerExt, Endpoint, TestService, Workflow, chat, events, graphs, thread_of, until,
};
use serde_json::{Value, json};

/// A turn that takes long enough for a title, unless the message says otherwise.
fn slow() -> Value {
    let slow = json!({"name": "slow", "type": "reply", "text": "one two three four five six", "pieces": "words", "pause_ms": 150});
    json!({"format": "graph/1", "nodes": [slow, {"name": "quick", "type": "reply", "text": "Quick."}],
      "edges": [{"from": "START", "cases": [{"when": "'quick' in inputs.message", "to": "quick"}], "else": "slow"},
        {"from": "slow", "to": "END"}, {"from": "quick", "to": "END"}]})
}

async fn titled_by(t: &TestService, title: Value, graph: Value) -> Workflow {
    t.workflow().graph(graph).published().settings(json!({"chat": {"title": title}})).create().await
}

async fn settings(t: &TestService, workflow: &Workflow, chat: Value) -> Answer {
    t.configure(workflow, &json!({"chat": chat})).await
}

/// The titles in a stream, in order.
fn titles(answer: &Answer) -> Vec<Value> {
    let of = |event: &Value| event["thread"].get("title").cloned();
    events(&answer.text()).iter().filter_map(of).collect()
}

async fn stored(t: &TestService) -> String {
    t.scalar("SELECT title FROM threads ORDER BY created_at DESC LIMIT 1").await
}

#[tokio::test]
async fn a_model_writes_the_title_while_the_first_turn_executes() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let workflow = titled_by(&t, json!({"model": "openai/gpt-4.1-mini", "prompt": "Name it."}), slow()).await;
    model.says("\"Refund of order 7\"").await;
    let answer = t.chat(&chat::create(&workflow, "where is my money for order 7?")).await;
    assert_eq!(titles(&answer), ["where is my money for order 7?", "Refund of order 7"], "{}", answer.text());
    assert_eq!(stored(&t).await, "Refund of order 7");
    let request = &model.requests().await[0];
    assert_eq!(request["messages"][0]["content"], "Name it.");
    assert_eq!(request["messages"][1]["content"], "where is my money for order 7?");
    let thread = thread_of(&answer.text());
    t.chat(&chat::add(&workflow, &thread, "more")).await;
    assert_eq!(model.asked(), 1, "once for each thread");
    let used = t.get(&workflow.path("/chat/usage")).await.value();
    assert_eq!(used["data"][0]["calls"], 1, "{used}");
}

#[tokio::test]
async fn a_title_generated_after_the_turn_is_stored() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let workflow = titled_by(&t, json!({"model": "openai/gpt-4.1-mini"}), slow()).await;
    let answer = t.chat(&chat::create(&workflow, "quick one")).await;
    assert_eq!(titles(&answer), ["quick one"]);
    model.release();
    until("the title is stored", async || stored(&t).await != "quick one").await;
}

#[tokio::test]
async fn a_title_set_by_the_visitor_is_not_overwritten() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let workflow = titled_by(&t, json!({"model": "openai/gpt-4.1-mini"}), slow()).await;
    let answer = t.chat(&chat::create(&workflow, "quick one")).await;
    let thread = events(&answer.text())[0]["thread"]["id"].clone();
    until("the model is asked", async || model.asked() == 1).await;
    let renamed = chat::ask(&workflow, "threads.update", json!({"thread_id": thread, "title": "Mine"}));
    assert_eq!(t.chat(&renamed).await.status, 200);
    model.release();
    t.until_scalar("the call is counted", "SELECT count(*) FROM chat_usage WHERE calls = 1", "1").await;
    integration_tests::pause(300).await;
    assert_eq!(stored(&t).await, "Mine");
}

#[tokio::test]
async fn the_title_keeps_the_first_words_if_the_model_fails() {
    let t = TestService::start().await;
    let words = titled_by(&t, json!("words"), slow()).await;
    t.chat(&chat::create(&words, "quick words")).await;
    assert_eq!(stored(&t).await, "quick words");
    // No server listens there.
    let broken =
        titled_by(&t, json!({"model": "openai/x", "base_url": "http://127.0.0.1:9/v1"}), slow()).await;
    let answer = t.chat(&chat::create(&broken, "no model")).await;
    assert_eq!((titles(&answer).len(), stored(&t).await.as_str()), (1, "no model"));
}

#[tokio::test]
async fn a_spent_budget_refuses_the_message_before_a_title_is_generated() {
    let model = Endpoint::quick().await;
    let t = model.service().await;
    let node = json!({"name": "said", "type": "llm", "model": "openai/x", "user": "hi", "max_tokens": 1, "stream": true});
    let spent = titled_by(&t, json!({"model": "openai/x"}), graphs::chain(&[node], None)).await;
    assert_eq!(settings(&t, &spent, json!({"limits": {"tokens_per_day": 1}})).await.status, 200);
    t.execute(&format!(
        "INSERT INTO chat_usage SELECT now()::date, '{}', 'visitor:x', '{}', 1, 1, 5, 5, 0",
        spent.id,
        uuid::Uuid::nil()
    ))
    .await;
    assert_eq!(t.chat(&chat::create(&spent, "hello")).await.refusal(), "429 chat.budget.workflow");
    assert_eq!(model.asked(), 0);
}

#[tokio::test]
async fn title_settings_are_validated() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().create().await;
    for (title, problem) in [
        (json!("letters"), "/chat/title choice"),
        (json!(5), "/chat/title choice"),
        (json!({}), "/chat/title/model required"),
        (json!({"model": "none/x"}), "/chat/title/model unknown"),
        (json!({"model": "openai/"}), "/chat/title/model unknown"),
        (json!({"model": "practice/assistant", "credential": "key"}), "/chat/title/credential conflict"),
        (json!({"model": "openai/x", "base_url": "ftp://x"}), "/chat/title/base_url url"),
        (json!({"model": "openai/x", "more": 1}), "/chat/title/more unknown_field"),
    ] {
        let refused = settings(&t, &workflow, json!({"title": title})).await;
        assert_eq!(refused.problems(), [problem], "{title}");
    }
    let set = settings(&t, &workflow, json!({"title": {"model": "practice/assistant"}})).await.value();
    assert_eq!(set["chat"]["title"], json!({"model": "practice/assistant"}));
    let back = settings(&t, &workflow, json!({"title": null})).await.value();
    assert_eq!(back["chat"]["title"], "words");
}
