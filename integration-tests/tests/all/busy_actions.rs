//! Actions and retries during a turn in their thread: they are rejected, or interrupt it.

use integration_tests::{AnswerExt, Endpoint, RawAnswer, TestService, Workflow, chat, events, until};
use serde_json::{Value, json};

use crate::again::retry_request;

/// Calls a model for the message `slow`; responds to actions and other messages at once.
fn graph() -> Value {
    let case = |when: &str, to: &str| json!({"when": when, "to": to});
    json!({"format": "graph/1", "nodes": [
        {"name": "slow", "type": "llm", "model": "openai/x", "user": "hi", "stream": true},
        {"name": "acted", "type": "reply", "text": "Acted."},
        {"name": "plain", "type": "reply", "text": "Answered {{ inputs.message }}."}],
      "edges": [
        {"from": "START", "cases": [case("inputs.action and inputs.action.type == 'press'", "acted"),
            case("inputs.message == 'slow'", "slow")], "else": "plain"},
        {"from": ["slow", "acted", "plain"], "to": "END"}]})
}

/// A thread with an answered message and a running turn.
struct ExecutingTurn {
    workflow: Workflow,
    thread: String,
    message: String,
    turn: RawAnswer,
}

impl ExecutingTurn {
    async fn start(t: &TestService, model: &Endpoint, busy: &str) -> Self {
        let workflow = t.workflow().graph(graph()).published().create().await;
        let changed = t.configure(&workflow, &json!({"chat": {"busy": busy}})).await;
        assert_eq!((changed.status, &changed.value()["chat"]["busy"]), (200, &json!(busy)));
        let began = events(&t.chat(&chat::create(&workflow, "one")).await.text());
        let message = began.iter().find(|event| event["item"]["type"] == "user_message").unwrap();
        let text = |name: &str| message["item"][name].as_str().unwrap().to_owned();
        let (thread, message, asked_before) = (text("thread_id"), text("id"), model.asked());
        let turn = t.open_chat(&chat::add(&workflow, &thread, "slow")).await;
        until("the turn to call its model", async || model.asked() > asked_before).await;
        Self { workflow, thread, message, turn }
    }

    /// An action and a retry, with their expected replies.
    fn requests(&self) -> [(Value, &'static str); 2] {
        let action = self.action("threads.custom_action");
        [(action, "Acted."), (retry_request(&self.workflow, &self.thread, &self.message), "Answered one.")]
    }

    fn action(&self, kind: &str) -> Value {
        chat::ask(&self.workflow, kind, json!({"thread_id": self.thread, "action": {"type": "press"}}))
    }

    async fn statuses(&self, t: &TestService) -> String {
        let runs = "SELECT string_agg(status, ' ' ORDER BY id) FROM runs WHERE workflow_id";
        t.scalar(&format!("{runs} = '{}'", self.workflow.id)).await
    }
}

#[tokio::test]
async fn a_busy_thread_may_reject_actions_and_retries() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let mut busy = ExecutingTurn::start(&t, &model, "reject").await;
    for (request, _) in busy.requests() {
        assert_eq!(t.chat(&request).await.refusal(), "409 chat.turn_running", "{request}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2", "no other run has started");
    let sync = t.chat(&busy.action("threads.sync_custom_action")).await;
    assert_eq!((sync.status, sync.value()), (200, json!({})), "sync actions are outside the thread order");
    model.release();
    assert!(busy.turn.rest().await.contains("You said: hi"), "the turn ends as usual");
    for (request, expected) in busy.requests() {
        let answered = t.chat(&request).await;
        assert!(answered.text().contains(expected), "{request}: {}", answered.text());
    }
}

#[tokio::test]
async fn actions_and_retries_may_interrupt_a_turn() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    for place in 0..2 {
        let mut busy = ExecutingTurn::start(&t, &model, "interrupt").await;
        let [action, retry] = busy.requests();
        let (request, expected) = if place == 0 { action } else { retry };
        // The model never responds: without the interruption, the turn would not end.
        let answered = t.chat(&request).await;
        assert!(answered.text().contains(expected), "{request}: {}", answered.text());
        let interrupted = busy.turn.rest().await;
        assert!(!interrupted.contains("You said"), "{interrupted}");
        assert_eq!(busy.statuses(&t).await, "succeeded cancelled succeeded", "{request}");
        until("the call is cancelled", async || model.gone() == place + 1).await;
    }
}
