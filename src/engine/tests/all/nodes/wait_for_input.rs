//! `wait_for_input`: fields, the question, its answer, its expiry; and idle runs.

use std::time::Duration;

use chrono::TimeDelta;
use engine::ports::StepOutcome;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, delay, graph, noon, plan, template};
use crate::world::{World, recorded, refused, settle};

fn asking(more: Value) -> Value {
    let mut node = json!({"name": "w", "type": "wait_for_input"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn a_question_is_stored_and_its_answer_resumes_the_run() {
    let schema = json!({"type": "boolean"});
    let node =
        asking(json!({"key": "ok-{{ inputs.n }}", "message": "Refund {{ inputs.n }}?", "schema": schema,
                             "audience": ["role:admin", "ada@example.com"], "expires_seconds": 60}));
    let world = World::new().inputs(json!({"n": 7}));
    let run = world.begin(&plan(&alone(&node)));
    settle().await;
    let rows = world.journal.rows.lock().clone();
    let question = rows[0].question.clone().unwrap();
    assert_eq!(rows[0].outcome, StepOutcome::Started);
    assert_eq!((question.key.as_str(), question.message.as_deref()), ("ok-7", Some("Refund 7?")));
    assert_eq!(question.schema, Some(schema));
    assert_eq!(question.audience, ["role:admin", "ada@example.com"]);
    assert_eq!(question.expires_at, Some(noon() + TimeDelta::seconds(60)));
    let idle = world.activity.idle().expect("none of it is running");
    assert_eq!(idle.until, question.expires_at);
    world.answers.give("w.1~1", json!(true));
    let expected = json!({"value": true, "answered_by": "ada@example.com",
                          "answered_at": "2027-01-15T08:00:00.000000Z"});
    assert_eq!(run.end().await, Ok(expected));
    assert_eq!(world.activity.idle(), None);
}

#[tokio::test]
async fn an_unanswered_question_times_out_in_a_later_life_too() {
    let graph = alone(&asking(json!({"expires_seconds": 60})));
    let world = World::new();
    let run = world.begin(&plan(&graph));
    settle().await;
    world.clock.advance(Duration::from_secs(59));
    settle().await;
    assert!(!run.has_ended());
    run.drop_it();
    let rows = recorded(&world.journal.rows.lock());
    let again = World::new().recorded(rows);
    again.clock.advance(Duration::from_secs(59));
    let run = again.begin(&plan(&graph));
    settle().await;
    assert!(!run.has_ended());
    again.clock.advance(Duration::from_secs(1));
    settle().await;
    assert_eq!(run.end().await.unwrap_err().code, ErrorCode::NodeInputExpired);
}

#[tokio::test]
async fn an_answer_between_two_lives_is_read_at_once() {
    let graph = alone(&asking(json!({})));
    let world = World::new();
    let run = world.begin(&plan(&graph));
    settle().await;
    assert_eq!(world.journal.rows.lock()[0].question.as_ref().unwrap().key, "w", "the node's name");
    assert_eq!(world.activity.idle().unwrap().until, None);
    run.drop_it();
    let again = World::new().recorded(recorded(&world.journal.rows.lock()));
    again.answers.give("w.1~1", json!({"any": "thing"}));
    assert_eq!(again.run(&plan(&graph)).await.unwrap()["value"], json!({"any": "thing"}));
    let questions = again.journal.rows.lock().iter().filter(|row| row.question.is_some()).count();
    assert_eq!(questions, 0, "the question is sent once");
}

#[test]
fn invalid_fields_are_reported() {
    for (field, wrong, expected) in [
        ("key", json!(""), "/key pattern"),
        ("key", json!("a b"), "/key pattern"),
        ("key", json!("k".repeat(130)), "/key pattern"),
        ("key", json!("{{ nothing }}"), "/key unknown_name"),
        ("message", json!(1), "/message type"),
        ("schema", json!({"type": "nothing"}), "/schema schema"),
        ("audience", json!([]), "/audience type"),
        ("audience", json!("role:admin"), "/audience type"),
        ("audience", json!(["role:boss"]), "/audience/0 choice"),
        ("audience", json!(["ada@example.com", "@"]), "/audience/1 choice"),
        ("expires_seconds", json!(0), "/expires_seconds range"),
        ("expires_seconds", json!(1e9), "/expires_seconds range"),
        ("until", json!(1), "/until unknown_field"),
    ] {
        assert_eq!(refused(&asking(json!({field: wrong}))), [expected], "{field} {wrong}");
    }
}

#[tokio::test]
async fn an_invalid_rendered_key_fails_the_node() {
    let world = World::new().inputs(json!({"n": "a b"}));
    let error = world.run(&plan(&alone(&asking(json!({"key": "{{ inputs.n }}"}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeFailed);
    assert!(error.message.contains("'a b'"), "{}", error.message);
}

#[tokio::test]
async fn a_run_is_idle_only_while_everything_in_it_waits() {
    let asks = json!({"name": "m", "type": "llm", "model": "test/x", "user": "?"});
    let nodes = json!([delay("d", 30), asking(json!({})), asks, template("t", "done")]);
    let edges = json!([["START", "d"], ["START", "w"], ["START", "m"], {"from": ["d", "w", "m"], "to": "t"}]);
    let world = World::new().answers(&["a"], Ok(()));
    let run = world.begin(&plan(&graph(nodes, edges)));
    settle().await;
    assert_eq!(world.activity.idle(), None, "the model is at work");
    world.clock.advance(Duration::from_secs(1));
    settle().await;
    assert_eq!(world.activity.idle().unwrap().until, Some(noon() + TimeDelta::seconds(30)));
    world.clock.advance(Duration::from_secs(29));
    settle().await;
    assert_eq!(world.activity.idle().unwrap().until, None, "only a question is open");
    world.answers.give("w.1~1", json!(1));
    run.end().await.unwrap();
}

#[tokio::test]
async fn nested_waits_are_idle_and_container_limits_count() {
    let body = json!({"type": "delay", "seconds": "{{ item }}", "timeout_seconds": 50});
    let each = json!({"name": "e", "type": "for_each", "items": [40, 60], "body": body, "concurrency": 1});
    let mut nested = json!({"name": "s", "type": "sub_workflow", "workflow": "inner", "inputs": {}});
    nested["timeout_seconds"] = json!(45);
    let world = World::new().workflow("inner", &graph(json!([each]), json!([["START", "e"], ["e", "END"]])));
    let run = world.begin(&plan(&alone(&nested)));
    settle().await;
    assert_eq!(world.activity.idle().unwrap().until, Some(noon() + TimeDelta::seconds(40)));
    world.clock.advance(Duration::from_secs(40));
    settle().await;
    // The second item would have 50 s, but its container has 5 s.
    assert_eq!(world.activity.idle().unwrap().until, Some(noon() + TimeDelta::seconds(45)));
    run.drop_it();
    let rows = recorded(&world.journal.rows.lock());
    let again = World { workflows: world.workflows.clone(), ..World::new() }.recorded(rows);
    again.clock.advance(Duration::from_secs(44));
    let run = again.begin(&plan(&alone(&nested)));
    settle().await;
    assert!(!run.has_ended());
    again.clock.advance(Duration::from_secs(1));
    settle().await;
    assert_eq!(run.end().await.unwrap_err().code, ErrorCode::NodeTimeout, "counted from its first start");
}

#[tokio::test]
async fn the_wait_between_two_attempts_is_idle() {
    let busy = models::ModelError {
        kind: models::ModelErrorKind::RateLimited,
        message: "later".into(),
        retry_after: Some(Duration::from_secs(300)),
    };
    let world = World::new().answers(&[], Err(busy)).answers(&["b"], Ok(()));
    let run =
        world.begin(&plan(&alone(&json!({"name": "m", "type": "llm", "model": "test/x", "user": "?"}))));
    settle().await;
    assert_eq!(world.activity.idle().unwrap().until, Some(noon() + TimeDelta::seconds(300)));
    world.clock.advance(Duration::from_secs(300));
    settle().await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(run.end().await.unwrap()["text"], "b");
}
