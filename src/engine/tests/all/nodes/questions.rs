//! `ask` and `client_tool`: fields, the question and its item, the answer, expiry.

use std::time::Duration;

use chrono::TimeDelta;
use engine::ports::StepOutcome;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, noon, plan};
use crate::world::{World, refused, settle};

/// Overrides members of a JSON object.
fn with(value: &Value, members: &Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    value
}

fn without(value: &Value, member: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(member);
    value
}

fn text(id: &str) -> Value {
    json!({"id": id, "type": "freeform", "question": "Why?"})
}

fn choice() -> Value {
    json!({"id": "ok", "type": "multiple_choice", "question": "Send it back?",
           "options": [{"value": "yes"}, {"value": "no"}]})
}

fn ask(inputs: Value) -> Value {
    json!({"name": "n", "type": "ask", "inputs": inputs})
}

fn tool(members: &Value) -> Value {
    with(&json!({"name": "n", "type": "client_tool", "tool": "get_location"}), members)
}

#[test]
fn bad_questions_are_named_when_they_are_saved() {
    let question = |members: Value| json!([with(&text("a"), &members)]);
    let options = |options: Value| json!([with(&choice(), &json!({"options": options}))]);
    let many = |count: usize| json!((0..count).map(|n| text(&format!("q{n}"))).collect::<Vec<_>>());
    for (inputs, problems) in [
        (json!(null), vec!["/inputs required"]),
        (json!([]), vec!["/inputs schema"]),
        (json!({}), vec!["/inputs schema"]),
        (json!("ok"), vec!["/inputs schema"]),
        (json!("{{ inputs.list }}"), vec![]),
        (json!("{{ nothing }}"), vec!["/inputs unknown_name"]),
        (many(20), vec![]),
        (many(21), vec!["/inputs schema"]),
        (json!([5]), vec!["/inputs/0 schema"]),
        (json!(["{{ inputs.one }}"]), vec![]),
        (json!([without(&text("a"), "id")]), vec!["/inputs/0 schema"]),
        (json!([without(&text("a"), "question")]), vec!["/inputs/0 schema"]),
        (json!([without(&text("a"), "type")]), vec!["/inputs/0 schema"]),
        (question(json!({"id": ""})), vec!["/inputs/0/id schema"]),
        (question(json!({"id": 1})), vec!["/inputs/0/id schema"]),
        (question(json!({"id": "{{ inputs.x }}"})), vec![]),
        (question(json!({"question": ""})), vec!["/inputs/0/question schema"]),
        (question(json!({"question": ["Why?"]})), vec!["/inputs/0/question schema"]),
        (question(json!({"question": "{{ nothing }}"})), vec!["/inputs/0/question unknown_name"]),
        (question(json!({"type": "slider"})), vec!["/inputs/0/type schema"]),
        (question(json!({"type": "{{ inputs.x }}"})), vec![]),
        (question(json!({"description": "One line."})), vec![]),
        (question(json!({"description": 1})), vec!["/inputs/0/description schema"]),
        (question(json!({"options": [{"value": "a"}]})), vec!["/inputs/0 schema"]),
        (question(json!({"multiple": true})), vec!["/inputs/0 schema"]),
        (question(json!({"answer": {"values": [], "skipped": true}})), vec!["/inputs/0 schema"]),
        (json!([choice()]), vec![]),
        (json!([without(&choice(), "options")]), vec!["/inputs/0 schema"]),
        (json!([with(&choice(), &json!({"description": "d"}))]), vec!["/inputs/0 schema"]),
        (json!([with(&choice(), &json!({"multiple": true}))]), vec![]),
        (json!([with(&choice(), &json!({"multiple": "yes"}))]), vec!["/inputs/0/multiple schema"]),
        (json!([with(&choice(), &json!({"multiple": "{{ inputs.x }}"}))]), vec![]),
        (options(json!([])), vec!["/inputs/0/options schema"]),
        (options(json!("yes")), vec!["/inputs/0/options schema"]),
        (options(json!("{{ inputs.x }}")), vec![]),
        (options(json!(vec![json!({"value": "a"}); 50])), vec![]),
        (options(json!(vec![json!({"value": "a"}); 51])), vec!["/inputs/0/options schema"]),
        (options(json!(["yes"])), vec!["/inputs/0/options/0 schema"]),
        (options(json!([{"value": "a"}, {}])), vec!["/inputs/0/options/1 schema"]),
        (options(json!([{"value": ""}])), vec!["/inputs/0/options/0/value schema"]),
        (options(json!([{"value": 1}])), vec!["/inputs/0/options/0/value schema"]),
        (options(json!([{"value": "{{ inputs.x }}"}])), vec![]),
        (options(json!([{"value": "a", "label": "A"}])), vec!["/inputs/0/options/0 schema"]),
        (json!([text("a"), choice(), text("a")]), vec!["/inputs/2/id duplicate"]),
        (json!([text("a"), text("{{ inputs.x }}"), text("{{ inputs.x }}")]), vec![]),
    ] {
        assert_eq!(refused(&ask(inputs.clone())), problems, "{inputs}");
    }
    assert_eq!(refused(&json!({"name": "n", "type": "ask"})), ["/inputs required"]);
}

#[test]
fn bad_calls_are_named_when_they_are_saved() {
    for (members, problems) in [
        (json!({"tool": null}), vec!["/tool required"]),
        (json!({"tool": 1}), vec!["/tool type"]),
        (json!({"tool": ""}), vec!["/tool length"]),
        (json!({"tool": "é".repeat(64)}), vec![]),
        (json!({"tool": "t".repeat(65)}), vec!["/tool length"]),
        (json!({"tool": "{{ inputs.x }}"}), vec![]),
        (json!({"tool": "{{ nothing }}"}), vec!["/tool unknown_name"]),
        (json!({"arguments": null}), vec![]),
        (json!({"arguments": {}}), vec![]),
        (json!({"arguments": []}), vec!["/arguments type"]),
        (json!({"arguments": 1}), vec!["/arguments type"]),
        (json!({"arguments": "x"}), vec!["/arguments type"]),
        (json!({"arguments": "{{ inputs.x }}"}), vec![]),
        (json!({"arguments": {"a": ["{{ nothing }}"]}}), vec!["/arguments/a/0 unknown_name"]),
        (json!({"params": {}}), vec!["/params unknown_field"]),
        (json!({"inputs": []}), vec!["/inputs unknown_field"]),
    ] {
        assert_eq!(refused(&tool(&members)), problems, "{members}");
    }
}

#[test]
fn nodes_and_tools_have_the_same_limits_for_key_and_expiry() {
    for node in [ask(json!([text("a")])), tool(&json!({}))] {
        for (members, problems) in [
            (json!({"key": null}), vec![]),
            (json!({"key": "a.b:c-d_1"}), vec![]),
            (json!({"key": "{{ inputs.x }}"}), vec![]),
            (json!({"key": 1}), vec!["/key type"]),
            (json!({"key": ""}), vec!["/key pattern"]),
            (json!({"key": "a b"}), vec!["/key pattern"]),
            (json!({"key": "{{ nothing }}"}), vec!["/key unknown_name"]),
            (json!({"expires_seconds": 1}), vec![]),
            (json!({"expires_seconds": 31_536_000}), vec![]),
            (json!({"expires_seconds": 0.5}), vec!["/expires_seconds range"]),
            (json!({"expires_seconds": 31_536_001}), vec!["/expires_seconds range"]),
            (json!({"expires_seconds": "5"}), vec!["/expires_seconds range"]),
            (json!({"expires_seconds": "{{ inputs.x }}"}), vec!["/expires_seconds range"]),
            (json!({"message": "Well?"}), vec!["/message unknown_field"]),
            (json!({"audience": ["role:admin"]}), vec!["/audience unknown_field"]),
        ] {
            assert_eq!(refused(&with(&node, &members)), problems, "{node} {members}");
        }
    }
}

/// Values that a template makes invalid, each with the pointer in the error message.
fn wrong_values() -> Vec<(Value, &'static str)> {
    let question = |members: Value| ask(json!([with(&choice(), &members)]));
    vec![
        (ask(json!("{{ inputs.none }}")), "/inputs: "),
        (ask(json!("{{ inputs.many }}")), "/inputs: "),
        (ask(json!("{{ inputs.empty }}")), "/inputs: "),
        (ask(json!("{{ inputs.extra }}")), "/inputs/0: "),
        (ask(json!(["{{ inputs.empty }}"])), "/inputs/0: "),
        (ask(json!([text("a"), text("{{ inputs.a }}")])), "/inputs/1/id: "),
        (question(json!({"id": "{{ inputs.empty }}"})), "/inputs/0/id: "),
        (question(json!({"question": "{{ inputs.empty }}"})), "/inputs/0/question: "),
        (question(json!({"type": "{{ inputs.empty }}"})), "/inputs/0/type: "),
        (question(json!({"options": "{{ inputs.none }}"})), "/inputs/0/options: "),
        (question(json!({"options": [{"value": "{{ inputs.empty }}"}]})), "/inputs/0/options/0/value: "),
        (question(json!({"multiple": "{{ inputs.empty }}"})), "/inputs/0/multiple: "),
        (tool(&json!({"tool": "{{ inputs.empty }}"})), "/tool: "),
        (tool(&json!({"tool": "{{ inputs.a * 65 }}"})), "/tool: "),
        (tool(&json!({"arguments": "{{ inputs.none }}"})), "/arguments: "),
        (tool(&json!({"arguments": "{{ inputs.empty }}"})), "/arguments: "),
    ]
}

/// Returns the error of a node that asks nothing.
async fn failure(node: &Value) -> engine::RunError {
    let many: Vec<Value> = (0..21).map(|n| text(&format!("q{n}"))).collect();
    let extra = [with(&text("a"), &json!({"more": 1}))];
    let inputs = json!({"none": [], "empty": "", "a": "a", "many": many, "extra": extra, "spaced": "a b"});
    let world = World::new().in_a_chat().inputs(inputs);
    let error = world.run(&plan(&alone(node))).await.unwrap_err();
    assert!(world.journal.rows.lock().iter().all(|row| row.question.is_none()), "{node}");
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("n")), "{node}: {error}");
    error
}

#[tokio::test]
async fn invalid_rendered_values_fail_the_node() {
    for (node, pointer) in wrong_values() {
        let error = failure(&node).await;
        assert!(error.message.starts_with(pointer), "{node}: {error}");
    }
}

#[tokio::test]
async fn an_invalid_rendered_key_has_a_pointer_too() {
    for node in [ask(json!([text("a")])), tool(&json!({}))] {
        let error = failure(&with(&node, &json!({"key": "{{ inputs.spaced }}"}))).await;
        assert!(error.message.starts_with("/key: "), "{error}");
    }
}

/// Both nodes with templates in all texts, their items, messages, answers and results.
fn filled() -> [(Value, Value, &'static str, Value, Value); 2] {
    let inputs = json!([
        {"id": "ok", "type": "multiple_choice", "question": "Send {{ inputs.n }} back?", "options": "{{ inputs.options }}"},
        {"id": "why-{{ inputs.n }}", "type": "freeform", "question": "Why?", "description": "d{{ inputs.n }}"}]);
    let item = json!({"type": "structured_input", "status": "pending", "inputs": [
        {"id": "ok", "type": "multiple_choice", "question": "Send 7 back?", "options": [{"value": "yes"}], "multiple": false},
        {"id": "why-7", "type": "freeform", "question": "Why?", "description": "d7"}]});
    let answer = json!({"status": "answered", "answers": {"ok": {"values": ["yes"], "skipped": false}}});
    let by = json!({"answered_by": "ada@example.com", "answered_at": "2027-01-15T08:00:00.000000Z"});
    let arguments = json!({"n": "{{ inputs.n }}", "none": null});
    let called = json!({"type": "client_tool_call", "status": "pending", "call_id": "", "name": "find_7",
                        "arguments": {"n": 7, "none": null}});
    let output = json!({"found": [null]});
    [
        (ask(inputs), item, "Send 7 back?", answer.clone(), with(&answer, &by)),
        (
            tool(&json!({"tool": "find_{{ inputs.n }}", "arguments": arguments})),
            called,
            "The tool `find_7` of the page",
            output.clone(),
            json!({"output": output}),
        ),
    ]
}

#[tokio::test]
async fn a_rendered_item_asks_and_its_answer_is_the_result() {
    for (node, item, message, answer, result) in filled() {
        let node = with(&node, &json!({"key": "ok-{{ inputs.n }}", "expires_seconds": 60}));
        let expires_at = noon() + TimeDelta::seconds(60);
        for in_a_chat in [true, false] {
            let world = World::new().inputs(json!({"n": 7, "options": [{"value": "yes"}]}));
            let world = if in_a_chat { world.in_a_chat() } else { world };
            let run = world.begin(&plan(&alone(&node)));
            settle().await;
            let rows = world.journal.rows.lock().clone();
            assert_eq!((rows.len(), &rows[0].outcome), (1, &StepOutcome::Started));
            let question = rows[0].question.clone().unwrap();
            assert_eq!((question.key.as_str(), question.message.as_deref()), ("ok-7", Some(message)));
            assert_eq!((question.audience.len(), question.expires_at), (0, Some(expires_at)));
            assert_eq!(serde_json::to_value(question.item.unwrap()).unwrap(), item);
            // In a chat the turn ends with the item, however soon it expires; elsewhere the run waits.
            let asking: Vec<String> = world.activity.asking().into_iter().map(|step| step.node).collect();
            let idle = world.activity.idle().unwrap();
            match in_a_chat {
                true => assert_eq!((asking, idle.until), (vec!["n".to_owned()], None)),
                false => assert_eq!((asking, idle.until), (Vec::new(), Some(expires_at))),
            }
            world.answers.give("n.1~1", answer.clone());
            assert_eq!(run.end().await.unwrap(), result, "in a chat: {in_a_chat}");
        }
    }
}

#[tokio::test]
async fn an_unanswered_question_expires_despite_timeout_and_retry() {
    let limits = json!({"expires_seconds": 60, "timeout_seconds": 1, "retry": {"max_attempts": 3}});
    for node in [ask(json!([text("a")])), tool(&json!({}))] {
        let graph = plan(&alone(&with(&node, &limits)));
        for world in [World::new(), World::new().in_a_chat()] {
            let run = world.begin(&graph);
            settle().await;
            world.clock.advance(Duration::from_secs(59));
            settle().await;
            assert!(!run.has_ended(), "{node}");
            world.clock.advance(Duration::from_secs(1));
            settle().await;
            assert_eq!(run.end().await.unwrap_err().code, ErrorCode::NodeInputExpired, "{node}");
            assert_eq!(world.journal.lines(), ["1 n.1 started", "1 n.1 failed"], "{node}");
        }
    }
}
