//! `llm`: requests, results, retries, streams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use models::{ModelError, ModelErrorKind, Role};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, reply};
use crate::world::{World, refused, settle};

fn ask(more: Value) -> Value {
    let mut node = json!({"name": "ask", "type": "llm", "model": "test/x", "user": "why?"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn failing(kind: ModelErrorKind, retry_after: Option<u64>) -> Result<(), ModelError> {
    Err(ModelError { kind, message: "not now".into(), retry_after: retry_after.map(Duration::from_secs) })
}

#[tokio::test]
async fn messages_are_sent_as_written() {
    let world = World::new().config("model", json!("test/small")).inputs(json!({"n": 2}));
    let node = ask(json!({
        "model": "{{ config.model }}", "system": "Be {{ 'short' }}.", "messages": "{{ messages }}", "user": "{{ inputs.n }}",
        "temperature": 0.5, "max_tokens": 100, "seed": 7, "response_schema": {"type": "object"},
    }));
    let world = world.answers(&["{}"], Ok(()));
    world.run(&plan(&alone(&node))).await.unwrap();
    let requests = world.model.requests.lock();
    let request = &requests[0];
    let messages: Vec<_> =
        request.messages.iter().map(|message| (message.role, message.content.as_str())).collect();
    assert_eq!(messages, [(Role::System, "Be short."), (Role::User, "hi"), (Role::User, "2")]);
    assert_eq!((request.model.as_str(), request.temperature), ("small", Some(0.5)));
    assert_eq!((request.max_tokens, request.seed), (Some(100), Some(7)));
}

#[tokio::test]
async fn a_result_has_the_text_usage_and_model() {
    let world = World::new().answers(&["be", "cause"], Ok(()));
    let done = world.run(&plan(&alone(&ask(json!({}))))).await.unwrap();
    let unknown = json!({"calls": 1, "input_tokens": null, "output_tokens": null, "cost_usd": null});
    assert_eq!(done, json!({"text": "because", "usage": unknown, "finish_reason": null, "model": null}));
    assert_eq!(world.sink.text(), "", "no text is sent without stream");
}

#[tokio::test]
async fn only_transient_errors_are_retried() {
    for (kind, code, calls) in [
        (ModelErrorKind::RateLimited, ErrorCode::ModelRateLimited, 3),
        (ModelErrorKind::Unavailable, ErrorCode::ModelUnavailable, 3),
        (ModelErrorKind::Rejected, ErrorCode::ModelRejected, 1),
        (ModelErrorKind::NotConfigured, ErrorCode::ModelNotConfigured, 1),
    ] {
        let mut world = World::new();
        for _ in 0..3 {
            world = world.answers(&[], failing(kind, None));
        }
        let error = world.run(&plan(&alone(&ask(json!({}))))).await.unwrap_err();
        assert_eq!(
            (error.code, error.node.as_deref(), error.message.as_str()),
            (code, Some("ask"), "not now")
        );
        assert_eq!((world.model.requests.lock().len(), error.retryable), (calls, calls > 1));
    }
}

#[tokio::test]
async fn a_requested_retry_delay_is_kept_up_to_ten_minutes() {
    for (requested, waited) in [(5, 5), (3_000, 600)] {
        let world = World::new().answers(&[], failing(ModelErrorKind::RateLimited, Some(requested)));
        let run = world.begin(&plan(&alone(&ask(json!({})))));
        settle().await;
        world.clock.advance(Duration::from_millis(waited * 1_000 - 1));
        settle().await;
        assert!(!run.has_ended());
        world.clock.advance(Duration::from_millis(1));
        settle().await;
        assert_eq!(run.end().await.unwrap()["text"], json!("x: why?"));
    }
}

#[tokio::test]
async fn attempts_of_one_visit_carry_one_key() {
    let world = World::new().answers(&[], failing(ModelErrorKind::Unavailable, None));
    world.run(&plan(&alone(&ask(json!({}))))).await.unwrap();
    let requests = world.model.requests.lock();
    let keys: Vec<_> = requests.iter().map(|request| request.idempotency_key.clone().unwrap()).collect();
    assert_eq!(keys, ["run_1-ask-1", "run_1-ask-1"]);
}

#[tokio::test]
async fn an_answer_must_match_its_schema() {
    let schema =
        json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}}});
    let node = || ask(json!({"response_schema": schema, "retry": {"max_attempts": 2}, "repair": 0}));
    let world =
        World::new().answers(&["Well, "], Ok(())).answers(&["```json\n{\"kind\": ", "\"b\"}\n```"], Ok(()));
    let done = world.run(&plan(&alone(&node()))).await.unwrap();
    assert_eq!(done["json"], json!({"kind": "b"}));
    assert_eq!(world.model.requests.lock()[0].response_schema, Some(schema.clone()));
    for answer in ["{\"kind\": \"secret\"}", "{}", "[1]", "no JSON"] {
        let world = World::new().answers(&[answer], Ok(())).answers(&[answer], Ok(()));
        let error = world.run(&plan(&alone(&node()))).await.unwrap_err();
        assert_eq!((error.code, world.model.requests.lock().len()), (ErrorCode::ModelBadAnswer, 2));
        assert!(!error.message.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn an_invalid_answer_is_returned_to_the_model_with_the_problem() {
    let schema =
        json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}}});
    let plan_with = |more: Value| {
        let mut node = ask(json!({"response_schema": schema, "retry": {"max_attempts": 1}}));
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan(&alone(&node))
    };
    let world = World::new().answers(&["{\"kind\": \"c\"}"], Ok(())).answers(&["{\"kind\": \"b\"}"], Ok(()));
    let done = world.run(&plan_with(json!({}))).await.unwrap();
    assert_eq!((&done["json"], &done["text"]), (&json!({"kind": "b"}), &json!("{\"kind\": \"b\"}")));
    assert_eq!(world.journal.lines(), ["1 ask.1 succeeded"], "in the same attempt");
    {
        let requests = world.model.requests.lock();
        let shown: Vec<_> =
            requests[1].messages.iter().map(|message| (message.role, message.content.as_str())).collect();
        assert_eq!(shown[..2], [(Role::User, "why?"), (Role::Assistant, "{\"kind\": \"c\"}")]);
        assert!(
            shown[2].1.contains("/kind") && shown[2].1.contains("JSON that fits the schema"),
            "{}",
            shown[2].1
        );
        assert_eq!(requests[1].response_schema, Some(schema.clone()));
        let keys: Vec<_> = requests.iter().map(|request| request.idempotency_key.clone().unwrap()).collect();
        assert_eq!(keys, ["run_1-ask-1", "run_1-ask-1-repair-1"]);
    }
    for (repair, calls) in [(0, 1), (1, 2), (3, 4)] {
        let world = (0..5).fold(World::new(), |world, _| world.answers(&["no"], Ok(())));
        let error = world.run(&plan_with(json!({"repair": repair}))).await.unwrap_err();
        assert_eq!((error.code, world.model.requests.lock().len()), (ErrorCode::ModelBadAnswer, calls));
        assert!(error.message.contains("not JSON"), "{error}");
    }
    // The text of a bad answer is withdrawn.
    let world = World::new().answers(&["bad ", "one"], Ok(())).answers(&["{\"kind\": ", "\"a\"}"], Ok(()));
    world.run(&plan_with(json!({"stream": true}))).await.unwrap();
    assert_eq!(world.sink.text(), "{\"kind\": \"a\"}");
}

#[tokio::test]
async fn a_stream_is_forwarded_live_and_undone_if_it_fails() {
    let world = World::new()
        .answers(&["half ", "of it"], failing(ModelErrorKind::Unavailable, None))
        .answers(&["all ", "of it"], Ok(()));
    let nodes = json!([reply("first", "1 "), ask(json!({"stream": true})), reply("last", " 3")]);
    let graph = plan(&graph(nodes, json!([["START", "first"], ["first", "ask"], ["ask", "last"]])));
    let run = world.begin(&graph);
    let mut seen = Vec::new();
    for _ in 0..60 {
        settle().await;
        if seen.last() != Some(&world.sink.text()) {
            seen.push(world.sink.text());
        }
        world.clock.advance(Duration::from_millis(250));
    }
    assert!(run.has_ended());
    assert_eq!(seen, ["1 ", "1 half ", "1 ", "1 all ", "1 all of it 3"]);
}

#[tokio::test]
async fn a_permanently_failed_stream_leaves_no_text() {
    let world = World::new().answers(&["half"], failing(ModelErrorKind::Rejected, None));
    let node = ask(json!({"stream": true, "on_error": "continue"}));
    let edges = json!([["START", "ask"], ["ask", "sorry"]]);
    world.run(&plan(&graph(json!([node, reply("sorry", "Sorry.")]), edges))).await.unwrap();
    assert_eq!(world.sink.text(), "Sorry.");
}

#[tokio::test]
async fn a_dropped_run_drops_its_call() {
    let world = World::new().answers(&["a", "b"], Ok(()));
    let run = world.begin(&plan(&alone(&ask(json!({"stream": true})))));
    settle().await;
    assert_eq!(world.model.open.load(Ordering::SeqCst), 1);
    run.drop_it();
    settle().await;
    assert_eq!(world.model.open.load(Ordering::SeqCst), 0);
    assert!(world.journal.lines().is_empty(), "its outcome is not known");
}

#[tokio::test]
async fn a_slow_call_is_dropped_and_retried() {
    let world = World::new().answers(&["a", "b", "c"], Ok(())).answers(&["quick"], Ok(()));
    let node = ask(json!({"timeout_seconds": 1.5, "retry": {"max_attempts": 2}}));
    assert_eq!(world.run(&plan(&alone(&node))).await.unwrap()["text"], json!("quick"));
    assert_eq!(world.model.open.load(Ordering::SeqCst), 0);
    assert_eq!(world.journal.lines(), ["1 ask.1 failed", "1 ask.1 succeeded"]);
}

#[tokio::test]
async fn an_invalid_history_fails_the_node() {
    for (messages, text) in [
        (json!({}), "a list, not an object"),
        (json!(["hi"]), "one is a string"),
        (json!([{"role": "robot", "content": ""}]), "'robot' is not a role"),
    ] {
        let world = World::new().inputs(json!({"m": messages}));
        let error = world.run(&plan(&alone(&ask(json!({"messages": "{{ inputs.m }}"}))))).await.unwrap_err();
        assert!(error.message.contains(text), "{error}");
        assert!(world.model.requests.lock().is_empty());
    }
}

#[tokio::test]
async fn a_missing_provider_is_named() {
    let world = World::new();
    let error = world.run(&plan(&alone(&ask(json!({"model": "nobody/x"}))))).await.unwrap_err();
    assert_eq!((error.code, error.message.contains("test/<model>")), (ErrorCode::ModelNotConfigured, true));
}

#[test]
fn llm_fields_have_limits() {
    for (more, problem) in [
        (json!({"model": null}), "/model required"),
        (json!({"model": "gpt-4"}), "/model model"),
        (json!({"model": "/x"}), "/model model"),
        (json!({"model": 5}), "/model type"),
        (json!({"user": null}), "/user required"),
        (json!({"user": 5}), "/user type"),
        (json!({"system": "{{ x }}"}), "/system unknown_name"),
        (json!({"messages": "{{"}), "/messages template"),
        (json!({"stream": "yes"}), "/stream type"),
        (json!({"temperature": 2.1}), "/temperature range"),
        (json!({"max_tokens": 0}), "/max_tokens range"),
        (json!({"seed": -1}), "/seed range"),
        (json!({"response_schema": {"type": "thing"}}), "/response_schema schema"),
        (json!({"tools": []}), "/tools unknown_field"),
        (json!({"repair": 4}), "/repair range"),
        (json!({"credential": "x"}), "/credential unknown_field"),
        (json!({"prompt": "x"}), "/prompt unknown_field"),
        (json!({"cache_seconds": 5}), "/cache_seconds not_pure"),
    ] {
        assert_eq!(refused(&ask(more.clone())), [problem], "{more}");
    }
}
