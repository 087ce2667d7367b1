//! `agent` with `retry`: work finished in an earlier attempt is not repeated.

use models::{ModelAnswer, ModelError, ModelErrorKind};
use serde_json::{Value, json};

use super::agent::{agent, calls, messages_of, says, scripted};
use crate::ports::{alone, plan, reply};
use crate::world::{World, recorded};

fn not_now() -> Result<ModelAnswer, ModelError> {
    Err(ModelError { kind: ModelErrorKind::Unavailable, message: "not now".into(), retry_after: None })
}

/// An agent with a tool, whose model fails after the tool and answers in the agent's second attempt.
fn failing_once() -> (Value, Vec<Result<ModelAnswer, ModelError>>) {
    let node = agent(json!({"retry": {"max_attempts": 2}, "stream": true}));
    let script = vec![
        calls("First. ", &[("c1", "double", json!({"n": 2}))]),
        not_now(),
        not_now(),
        not_now(),
        says("It is 4."),
    ];
    (node, script)
}

#[tokio::test]
async fn a_retry_repeats_no_finished_call() {
    let (node, script) = failing_once();
    let (world, model) = scripted(script);
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!((&done["text"], &done["usage"]["calls"]), (&json!("It is 4."), &json!(2)));
    assert_eq!(model.requests.lock().len(), 5);
    assert_eq!(
        world.journal.lines(),
        [
            "1 ask[0].1 succeeded",
            "1 ask[0].double[0].1 succeeded",
            "1 ask[1].1 failed",
            "1 ask[1].1 failed",
            "1 ask[1].1 failed",
            "1 ask.1 failed",
            "1 ask~2[1].1 succeeded",
            "1 ask.1 succeeded"
        ]
    );
    assert_eq!(world.sink.text(), "First. \n\nIt is 4.", "streamed text is sent again");
    // The inputs of its calls are known afterwards, in either attempt.
    let rows = recorded(&world.journal.rows.lock());
    let given = world.recorded(rows).refill(&plan(&alone(&node))).await;
    let names: Vec<&str> = given.keys().map(String::as_str).collect();
    let expected = ["ask 1", "ask[0] 1", "ask[0].double[0] 1", "ask[1] 1", "ask~2[1] 1"];
    assert_eq!(names, expected);
    assert_eq!(given["ask[1] 1"], given["ask~2[1] 1"]);
}

#[tokio::test]
async fn a_retry_after_a_crash_repeats_no_finished_call() {
    let (node, script) = failing_once();
    let graph = plan(&alone(&node));
    let (world, _) = scripted(script);
    let whole = world.run(&graph).await.unwrap();
    let rows = world.journal.rows.lock().clone();
    for crash in 0..=rows.len() {
        let finished = rows[..crash].iter().filter(|row| row.node.ends_with(']') && !row.node.contains('.'));
        let (world, model) = scripted(failing_once().1.split_off(finished.count()));
        let world = world.recorded(recorded(&rows[..crash]));
        assert_eq!(world.run(&graph).await.unwrap(), whole, "{crash}");
        assert_eq!(world.sink.text(), "First. \n\nIt is 4.", "{crash}");
        assert_eq!(world.journal.rows.lock().len(), rows.len() - crash, "{crash}");
        assert!(model.script.lock().is_empty(), "{crash}");
    }
}

#[tokio::test]
async fn a_retry_repeats_neither_finished_tools_nor_failed_calls() {
    let pays = json!({"type": "node", "name": "pays", "description": "Pays.", "parameters": {},
                      "node": {"type": "sub_workflow", "workflow": "pay"}});
    let fails = json!({"type": "node", "name": "fails", "description": "Fails.", "parameters": {},
                       "node": {"type": "assert", "when": "false", "message": "never"}});
    let mut node = agent(json!({"retry": {"max_attempts": 2}, "stream": true}));
    node["tools"] = json!([pays, fails]);
    let graph = plan(&alone(&node));
    let script = || {
        vec![
            calls("", &[("c1", "pays", json!({})), ("c2", "fails", json!({}))]),
            not_now(),
            not_now(),
            not_now(),
            says("Paid."),
        ]
    };
    let begin = || {
        let (world, model) = scripted(script());
        (world.workflow("pay", &alone(&reply("paid", "Paid 5."))), model)
    };
    let (world, model) = begin();
    world.run(&graph).await.unwrap();
    let lines = world.journal.lines();
    let ran = |name: &str| lines.iter().filter(|line| line.contains(name)).count();
    assert_eq!((ran("paid"), ran("fails[1]")), (1, 1), "{lines:?}");
    assert!(lines.contains(&"1 ask~2[1].1 succeeded".to_owned()), "{lines:?}");
    let request = model.requests.lock()[4].clone();
    let sent = messages_of(&request);
    assert!(sent.iter().all(|(_, text)| !text.contains("ask[")), "{sent:?}");
    // Also after a crash right before the second attempt.
    let rows = world.journal.rows.lock().clone();
    let failed = rows.iter().position(|row| row.node == "ask").unwrap() + 1;
    let (world, _) = begin();
    let world = world.recorded(recorded(&rows[..failed]));
    let (rest, model) = scripted(vec![says("Paid.")]);
    let world = World { models: rest.models.clone(), ..world };
    world.run(&graph).await.unwrap();
    assert_eq!(world.journal.lines(), ["1 ask~2[1].1 succeeded", "1 ask.1 succeeded"]);
    assert_eq!(model.requests.lock().len(), 1);
}
