//! Agent tools that the page runs: fields, keys, other tools in the same turn, the model's view.

use engine::ports::StepOutcome;
use serde_json::{Value, json};

use super::agent::{agent, calls, messages_of, says, scripted};
use crate::ports::{alone, plan};
use crate::world::{refused, settle};

fn client(members: &Value) -> Value {
    let mut tool =
        json!({"type": "client", "name": "where", "description": "Where the user is.", "parameters": {}});
    tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    tool
}

fn double() -> Value {
    json!({"type": "node", "name": "double", "description": "Doubles a number.", "parameters": {},
           "node": {"type": "transform", "expression": "args.n * 2"}})
}

#[test]
fn bad_fields_are_named_when_they_are_saved() {
    for (members, problems) in [
        (json!({}), vec![]),
        (json!({"expires_seconds": 5}), vec![]),
        (json!({"name": null}), vec!["/tools/0/name required"]),
        (json!({"name": "no name"}), vec!["/tools/0/name name"]),
        (json!({"description": null}), vec!["/tools/0/description required"]),
        (json!({"parameters": null}), vec!["/tools/0/parameters required"]),
        (json!({"parameters": {"type": "x"}}), vec!["/tools/0/parameters schema"]),
        (json!({"expires_seconds": 0}), vec!["/tools/0/expires_seconds range"]),
        (json!({"expires_seconds": 31_536_001}), vec!["/tools/0/expires_seconds range"]),
        (json!({"expires_seconds": "{{ args.s }}"}), vec!["/tools/0/expires_seconds range"]),
        (json!({"key": "k"}), vec!["/tools/0/key unknown_field"]),
        (json!({"tool": "other"}), vec!["/tools/0/tool unknown_field"]),
        (json!({"arguments": {}}), vec!["/tools/0/arguments unknown_field"]),
    ] {
        assert_eq!(refused(&agent(json!({"tools": [client(&members)]}))), problems, "{members}");
    }
}

/// A client tool call's key is `<node>.<tool>`.
#[test]
fn nodes_and_tools_may_have_names_of_maximum_length() {
    let mut node = agent(json!({"tools": [client(&json!({"name": "t".repeat(64)}))]}));
    node["name"] = json!("n".repeat(64));
    assert_eq!(refused(&node), [""; 0]);
}

#[tokio::test]
async fn other_tools_of_the_same_answer_run_before_the_turn_ends() {
    let called = [("c1", "where", json!({})), ("c2", "double", json!({"n": 2})), ("c3", "where", json!({}))];
    let (world, model) = scripted(vec![calls("", &called), says("Paris it is.")]);
    let world = world.in_a_chat();
    let run = world.begin(&plan(&alone(&agent(json!({"tools": [double(), client(&json!({}))]})))));
    settle().await;
    assert!(world.activity.idle().is_some(), "the calls alone are open: {:?}", world.journal.lines());
    let mut asking: Vec<String> = world.activity.asking().into_iter().map(|step| step.node).collect();
    asking.sort_unstable();
    assert_eq!(asking, ["ask[0].where[0]", "ask[0].where[2]"]);
    assert!(world.journal.lines().contains(&"1 ask[0].double[1].1 succeeded".to_owned()));
    let keys: Vec<String> =
        world.journal.rows.lock().iter().filter_map(|row| Some(row.question.as_ref()?.key.clone())).collect();
    assert_eq!(keys, ["ask.where", "ask.where"]);
    world.answers.give("ask[0].where[0].1~1", json!("é".repeat(40_000)));
    world.answers.give("ask[0].where[2].1~1", json!({"city": "Paris"}));
    assert_eq!(run.end().await.unwrap()["text"], "Paris it is.");
    let rows = world.journal.rows.lock().clone();
    let row = rows.iter().rfind(|row| row.node == "ask[0].where[2]").unwrap();
    let StepOutcome::Succeeded { result, .. } = &row.outcome else { panic!("{row:?}") };
    assert_eq!(result, r#"{"output":{"city":"Paris"}}"#);
    // The model receives the outputs in call order, each cut to 64 KiB.
    let requests = model.requests.lock();
    let received: Vec<&str> =
        messages_of(&requests[1]).into_iter().skip(2).map(|(_, content)| content).collect();
    assert!(received[0].len() < 66_000 && received[0].ends_with("(cut off: 80000 bytes)"));
    assert_eq!(received[1..], ["4", r#"{"city":"Paris"}"#]);
}
