//! `kill -9` around the answer to a question: it is stored with the turn that continues, or not at all.

use std::time::Duration;

use client::{ChatOptions, Client};
use integration_tests::{WorkflowBuilder, until};
use kernel::{SystemClock, SystemRandom};
use serde_json::{Map, json};
use store::testing::TestDatabase;
use wire::chat::{ChatOperation, ChatRequest, InputSubmission, SubmissionStatus, UserMessageInput};

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, random_number};

/// Kills, each at a different answer.
const KILLS: usize = 12;
/// Maximum milliseconds between sending an answer and the kill.
const LATEST: u64 = 120;

#[tokio::test]
async fn an_answer_around_a_kill_continues_its_turn_once_or_is_not_stored() {
    let database = TestDatabase::create().await;
    database.execute(super::SLOW_DISK).await.unwrap();
    let folder = folder("questions");
    let mut service = Service::new(&folder, Some(database.dsn()));
    service.set("SERVICE_CHAT_DISCONNECT_GRACE", "forever".to_owned());
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let nodes = [
        json!({"name": "checking", "type": "reply", "text": "Checking. "}),
        json!({"name": "confirm", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Well?"}]}),
        json!({"name": "slow", "type": "reply", "text": "a b c d e f", "pieces": "words", "pause_ms": 10}),
        json!({"name": "said", "type": "reply", "text": "Done: {{ results.confirm.answers.q['values'] | join }}.", "new_message": true}),
    ];
    let graph = integration_tests::graphs::chain(&nodes, None);
    // A new client, without the old connections.
    let fresh = || Client::builder(&service.base()).build().unwrap();
    let client = fresh();
    let workflow = WorkflowBuilder::new(client.clone()).graph(graph).published().create().await.id;
    let asks = "SELECT count(*) FROM question_items";
    for number in 0..KILLS {
        let input = UserMessageInput::text(format!("m{number}"));
        let request = ChatRequest { operation: ChatOperation::CreateThread { input }, metadata: Map::new() };
        let mut turn = client.follow(&workflow, &request, &ChatOptions::default()).await.unwrap();
        let mut question = None;
        while let Some(event) = turn.next().await.unwrap() {
            let event = serde_json::to_value(&event.event).unwrap();
            question =
                event.get("item").filter(|item| item["type"] == "structured_input").cloned().or(question);
        }
        let question = question.expect("the question to be sent");
        assert_eq!(database.scalar(asks).await, (number + 1).to_string());
        let text = |name: &str| question[name].as_str().unwrap().to_owned();
        let answer = json!({"values": [format!("v{number}")], "skipped": false});
        let answers = [("q".to_owned(), serde_json::from_value(answer).unwrap())].into();
        let input = InputSubmission { status: SubmissionStatus::Answered, answers };
        let operation =
            ChatOperation::AddStructuredInput { thread_id: text("thread_id"), item_id: text("id"), input };
        let request = ChatRequest { operation, metadata: Map::new() };
        let options = ChatOptions::default();
        let sending = client.follow(&workflow, &request, &options);
        let moment = Duration::from_millis(random_number(&SystemRandom::new()) % LATEST);
        // The client's result does not matter here: the answer is stored or not.
        let heard = kernel::timeout(&SystemClock::new(), moment, async { sending.await.map(drop) }).await;
        service.kill();
        drop(heard);
        oracle.measure_start(false, || service.start());
        let stored = format!("SELECT count(*) FROM run_questions WHERE answer LIKE '%\"v{number}\"%'");
        let runs = format!("SELECT count(*) FROM runs WHERE inputs::json->>'message' = 'm{number}'");
        let continued = database.scalar(&stored).await;
        assert_eq!(database.scalar(&runs).await, if continued == "1" { "2" } else { "1" }, "{number}");
        if continued == "0" {
            let mut turn = client.follow(&workflow, &request, &ChatOptions::default()).await.unwrap();
            while turn.next().await.unwrap().is_some() {}
        }
        let done = format!("SELECT count(*) FROM thread_items WHERE content LIKE '%Done: v{number}.%'");
        until("the turn continues", async || database.scalar(&done).await == "1").await;
        let open = format!(
            "SELECT count(*) FROM runs WHERE inputs::json->>'message' = 'm{number}' AND finished_at IS NULL"
        );
        until("the turn to end", async || database.scalar(&open).await == "0").await;
        assert_eq!(database.scalar(&runs).await, "2", "{number}");
        let reply_count = format!(
            "SELECT string_agg(i.content::json->>'type', ' ' ORDER BY i.id) FROM thread_items i WHERE i.thread_id =
                 (SELECT thread_id FROM runs WHERE inputs::json->>'message' = 'm{number}' LIMIT 1)"
        );
        let expected = "user_message assistant_message structured_input assistant_message assistant_message";
        assert_eq!(database.scalar(&reply_count).await, expected, "{number}");
    }
    service.stop();
}
