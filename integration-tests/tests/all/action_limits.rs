//! Limits that sync actions count towards: budgets, stream permits, session requests.

use futures_util::join;
use integration_tests::{Answer, AnswerExt, Builder, Endpoint, TestService, chat, events, until};
use serde_json::{Value, json};

use crate::actions::Card;
use crate::questions::run_at;

/// Tokens that the endpoint reports for each call.
const CALL: u64 = 7;
const RUNS: &str = "SELECT count(*) FROM runs";

/// Sends a card; the action `ask` calls a model and writes its reply on the card.
fn graph() -> Value {
    let card = |text: &str| json!({"type": "Card", "children": [{"type": "Text", "id": "n", "value": text}]});
    json!({"format": "graph/1",
    "nodes": [
        {"name": "first", "type": "widget", "key": "card", "widget": card("new")},
        {"name": "said", "type": "llm", "model": "openai/x", "user": "hi", "max_tokens": 5},
        {"name": "changed", "type": "widget", "key": "{{ inputs.action.key }}", "widget": card("{{ results.said.text }}")},
    ],
    "edges": [
        {"from": "START", "cases": [{"when": "inputs.action and inputs.action.type == 'ask'", "to": "said"}], "else": "first"},
        {"from": "said", "to": "changed"},
        {"from": ["first", "changed"], "to": "END"},
    ]})
}

impl Card {
    async fn act(&self, t: &TestService) -> Answer {
        self.sync(t, json!({"type": "ask"})).await
    }

    async fn limit(&self, t: &TestService, limits: Value) {
        t.configure(&self.workflow, &json!({"chat": {"limits": limits}})).await.expect(200);
    }

    async fn usage(&self, t: &TestService) -> Value {
        t.get(&self.workflow.path("/chat/usage")).await.value()["data"][0].clone()
    }
}

/// A single instance, because each instance counts its own permits.
fn single_instance(model: &Endpoint) -> Builder {
    model.builder().alone()
}

#[tokio::test]
async fn model_calls_of_sync_actions_count_and_exhausted_limits_reject_actions() {
    let model = Endpoint::quick().await;
    let t = single_instance(&model).start().await;
    let card = Card::start_with(&t, graph()).await;
    let acted = card.act(&t).await;
    let text = acted.value()["updated_item"]["widget"]["children"][0]["value"].clone();
    assert_eq!(text, "You said: hi", "{}", acted.text());
    // The counted turn is the first message's turn.
    let used = card.usage(&t).await;
    for (name, value) in [("turns", 1), ("calls", 1), ("input_tokens", 3), ("output_tokens", 4)] {
        assert_eq!(used[name], value, "{used}");
    }
    for (limit, refusal) in [
        ("session_tokens_per_day", "429 chat.budget.session"),
        ("tokens_per_day", "429 chat.budget.workflow"),
    ] {
        card.limit(&t, json!({limit: CALL})).await;
        let refused = card.act(&t).await;
        assert_eq!(refused.refusal(), refusal);
        assert!(refused.header("retry-after").is_some(), "{limit}");
        card.limit(&t, json!(null)).await;
    }
    assert_eq!((model.asked(), t.scalar(RUNS).await.as_str()), (1, "2"), "no run has started");
    // The limit is not reached, but a call could exceed it: the run fails before the call.
    card.limit(&t, json!({"tokens_per_day": CALL + 3})).await;
    assert_eq!(card.act(&t).await.refusal(), "502 chat.action_failed");
    assert_eq!(run_at(&t, 2).await["error"]["code"], "chat.budget.workflow");
    assert_eq!(model.asked(), 1);
    card.limit(&t, json!(null)).await;
    assert_eq!(card.act(&t).await.status, 200, "without limits");
    assert_eq!(card.usage(&t).await["calls"], 2);
}

#[tokio::test]
async fn sync_actions_are_rejected_when_streams_hold_all_session_permits() {
    let model = Endpoint::holding().await;
    let t = single_instance(&model).set("SERVICE_CHAT_MAX_STREAMS", "1").start().await;
    let card = Card::start_with(&t, graph()).await;
    let turn = t.open_chat(&card.request("threads.custom_action", json!({"type": "ask"}))).await;
    until("the turn asks its model", async || model.asked() == 1).await;
    let refused = card.act(&t).await;
    assert_eq!(refused.refusal(), "429 chat.rate_limited.streams");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(t.scalar(RUNS).await, "2", "no run has started");
    t.stop_turn(turn.header("x-chat-stream-id").unwrap()).await;
    turn.whole().await;
    model.release();
    until("the permit is free", async || card.act(&t).await.status == 200).await;
}

#[tokio::test]
async fn a_sync_action_holds_a_stream_permit_until_it_ends() {
    let model = Endpoint::holding().await;
    let t = single_instance(&model).set("SERVICE_CHAT_MAX_STREAMS", "1").start().await;
    let card = Card::start_with(&t, graph()).await;
    let others = async {
        until("the action asks its model", async || model.asked() == 1).await;
        for kind in ["threads.sync_custom_action", "threads.custom_action"] {
            let refused = t.chat(&card.request(kind, json!({"type": "ask"}))).await;
            assert_eq!(refused.refusal(), "429 chat.rate_limited.streams", "{kind}");
        }
        assert_eq!(t.scalar(RUNS).await, "2", "no other run has started");
        model.release();
    };
    let (acted, ()) = join!(card.act(&t), others);
    assert_eq!(acted.status, 200, "{}", acted.text());
    until("the permit is free", async || card.act(&t).await.status == 200).await;
}

#[tokio::test]
async fn sync_actions_count_towards_the_session_rate_limit() {
    let t = TestService::builder().manual_clock().set("SERVICE_CHAT_RATE_LIMIT_SESSION", "2").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let began = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
    let params = json!({"thread_id": began[0]["thread"]["id"], "action": {"type": "ask"}});
    let action = chat::ask(&workflow, "threads.sync_custom_action", params);
    for _ in 0..2 {
        assert_eq!(t.chat(&action).await.refusal(), "422 chat.action_unhandled");
    }
    assert_eq!(t.chat(&action).await.refusal(), "429 chat.rate_limited.session");
}
