//! `agent`: steps, tools, tool errors, and resumption after a crash.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use engine::ports::StepOutcome;
use kernel::SystemClock;
use models::{
    Message, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, Pieces, Role, ToolCall,
    Usage,
};
use parking_lot::Mutex;
use practice::Practice;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, reply, template};
use crate::world::{World, recorded, refused, settle};

/// Answers from a script, and records the requests.
#[derive(Default)]
pub(super) struct Scripted {
    pub script: Mutex<VecDeque<Result<ModelAnswer, ModelError>>>,
    pub requests: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for Scripted {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        self.requests.lock().push(request.clone());
        let next =
            self.script.lock().pop_front().unwrap_or_else(|| panic!("the model is called once too often"));
        if let Ok(answer) = &next {
            pieces.piece(&answer.text).await;
        }
        next
    }
}

pub(super) fn says(text: &str) -> Result<ModelAnswer, ModelError> {
    let usage = Some(Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 0 });
    Ok(ModelAnswer { text: text.into(), usage, finish_reason: Some("stop".into()), ..ModelAnswer::default() })
}

/// Tool calls as `id name arguments`.
pub(super) fn calls(text: &str, calls: &[(&str, &str, Value)]) -> Result<ModelAnswer, ModelError> {
    let call = |(id, name, arguments): &(&str, &str, Value)| ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        arguments: arguments.clone(),
    };
    let tool_calls = calls.iter().map(call).collect();
    Ok(ModelAnswer { tool_calls, carry: Some(json!([{"signed": text}])), ..says(text).unwrap() })
}

pub(super) fn scripted(answers: Vec<Result<ModelAnswer, ModelError>>) -> (World, Arc<Scripted>) {
    let model = Arc::new(Scripted { script: Mutex::new(answers.into()), ..Scripted::default() });
    let mut world = World::new();
    world.models = Models::default().with("openai", model.clone());
    (world, model)
}

fn double() -> Value {
    json!({"type": "node", "name": "double", "description": "Doubles a number.",
           "parameters": {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}},
           "node": {"type": "transform", "expression": "args.n * 2"}})
}

pub(super) fn agent(more: Value) -> Value {
    let mut node = json!({"name": "ask", "type": "agent", "model": "openai/gpt-4.1-mini", "user": "why?", "tools": [double()]});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

/// The messages that the model received.
pub(super) fn messages_of(request: &ModelRequest) -> Vec<(Role, &str)> {
    request.messages.iter().map(|message| (message.role, message.content.as_str())).collect()
}

#[tokio::test]
async fn tools_run_and_the_model_continues_with_their_answers() {
    let (world, model) = scripted(vec![
        calls("Let me see.", &[("c1", "double", json!({"n": 2})), ("c2", "double", json!({"n": 5}))]),
        calls("", &[("c3", "double", json!({"n": 10}))]),
        says("It is 20."),
    ]);
    let done = world.run(&plan(&alone(&agent(json!({}))))).await.unwrap();
    assert_eq!(
        done,
        json!({"text": "It is 20.", "steps": 3, "model": null, "finish_reason": "stop",
               "usage": {"calls": 3, "input_tokens": 30, "output_tokens": 15, "cost_usd": 0.000036},
               "tool_calls": [{"tool": "double", "arguments": {"n": 2}, "error": null},
                              {"tool": "double", "arguments": {"n": 5}, "error": null},
                              {"tool": "double", "arguments": {"n": 10}, "error": null}]})
    );
    let mut lines = world.journal.lines();
    lines[1..3].sort();
    assert_eq!(
        lines,
        [
            "1 ask[0].1 succeeded",
            "1 ask[0].double[0].1 succeeded",
            "1 ask[0].double[1].1 succeeded",
            "1 ask[1].1 succeeded",
            "1 ask[1].double[0].1 succeeded",
            "1 ask[2].1 succeeded",
            "1 ask.1 succeeded"
        ]
    );
    let requests = model.requests.lock();
    assert_eq!(requests[0].tools[0].parameters["required"], json!(["n"]));
    assert_eq!(
        messages_of(&requests[1]),
        [(Role::User, "why?"), (Role::Assistant, "Let me see."), (Role::Tool, "4"), (Role::Tool, "10")]
    );
    let Message { tool_calls, carry, .. } = &requests[1].messages[1];
    assert_eq!((tool_calls.len(), carry), (2, &Some(json!([{"signed": "Let me see."}]))));
    assert_eq!(requests[1].messages[3].tool_call_id.as_deref(), Some("c2"));
    let keys: Vec<_> = requests.iter().map(|request| request.idempotency_key.clone().unwrap()).collect();
    assert_eq!(keys, ["run_1-ask[0]-1", "run_1-ask[1]-1", "run_1-ask[2]-1"]);
}

#[tokio::test]
async fn a_workflow_is_a_tool_with_its_inputs_as_arguments() {
    let inputs =
        json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}});
    let mut refund = graph(
        json!([reply("say", "aside"), template("pay", "paid {{ inputs.order }}")]),
        json!([["START", "say"], ["say", "pay"]]),
    );
    refund["inputs"] = inputs.clone();
    refund["output"] = json!({"receipt": "{{ results.pay.text }}"});
    let (world, model) = scripted(vec![
        calls("", &[("c1", "pay_back", json!({}))]),
        calls("", &[("c2", "pay_back", json!({"order": "A1"}))]),
        says("Done."),
    ]);
    let world = world.workflow("refund", &refund);
    let tool =
        json!({"type": "workflow", "name": "pay_back", "description": "Pays back.", "workflow": "refund"});
    let node = agent(json!({"tools": [tool], "stream": true}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(done["tool_calls"][0]["error"]["code"], "run.inputs_invalid");
    assert_eq!(done["tool_calls"][1]["error"], json!(null));
    let requests = model.requests.lock();
    assert_eq!(requests[0].tools[0].parameters, inputs);
    assert!(messages_of(&requests[1])[2].1.contains("order"), "the model receives the problem");
    assert_eq!(messages_of(&requests[2])[4].1, "{\"receipt\":\"paid A1\"}");
    assert_eq!(world.sink.text(), "Done.", "tool output is not the text of the agent");
    assert!(world.journal.lines().contains(&"1 ask[1].pay_back[0]/pay.1 succeeded".to_owned()));
}

#[tokio::test]
async fn invalid_tool_calls_are_reported_to_the_model_up_to_a_limit() {
    let bad = || calls("", &[("c1", "dubble", json!({})), ("c2", "double", json!({"n": "two"}))]);
    let (world, model) = scripted(vec![
        bad(),
        bad(),
        calls("", &[("c3", "double", json!({"n": 1}))]),
        bad(),
        bad(),
        says("ok"),
    ]);
    let done = world.run(&plan(&alone(&agent(json!({}))))).await.unwrap();
    assert_eq!((&done["text"], done["tool_calls"].as_array().unwrap().len()), (&json!("ok"), 9));
    {
        let requests = model.requests.lock();
        let sent = messages_of(&requests[1]);
        assert!(sent[2].1.contains("unknown tool; available: double"), "{sent:?}");
        assert!(sent[3].1.contains("/n") && !sent[3].1.contains("two"), "{sent:?}");
    }
    let (world, model) = scripted(vec![bad(), bad(), bad()]);
    let error = world.run(&plan(&alone(&agent(json!({}))))).await.unwrap_err();
    assert!(error.message.contains("failed in 3 consecutive steps"), "{error}");
    assert_eq!(model.requests.lock().len(), 3);

    let on = || calls("", &[("c1", "double", json!({"n": 1}))]);
    let (world, _) = scripted(vec![on(), on()]);
    let error = world.run(&plan(&alone(&agent(json!({"max_steps": 2}))))).await.unwrap_err();
    assert_eq!(error.message, "no answer after 2 steps; raise 'max_steps' to allow more");
}

#[tokio::test]
async fn a_failing_tool_gives_the_model_the_reason() {
    let tool = json!({"type": "node", "name": "check", "description": "Checks.", "parameters": {},
                      "node": {"type": "assert", "when": "args.good", "message": "not good"}});
    let (world, model) = scripted(vec![
        calls("", &[("c1", "check", json!({"good": false})), ("c2", "check", json!({"good": true}))]),
        says("ok"),
    ]);
    let done = world.run(&plan(&alone(&agent(json!({"tools": [tool]}))))).await.unwrap();
    assert_eq!(done["tool_calls"][0]["error"]["message"], "not good");
    assert!(messages_of(&model.requests.lock()[1])[2].1.contains("not good"));
    assert!(world.journal.lines().contains(&"1 ask[0].check[0].1 failed".to_owned()));
}

#[tokio::test]
async fn a_long_tool_answer_is_truncated_for_the_model() {
    let tool = json!({"type": "node", "name": "long", "description": "Much.", "parameters": {},
                      "node": {"type": "transform", "expression": "'é' * 40000"}});
    let (world, model) = scripted(vec![calls("", &[("c1", "long", json!({}))]), says("ok")]);
    world.run(&plan(&alone(&agent(json!({"tools": [tool]}))))).await.unwrap();
    let requests = model.requests.lock();
    let answer = &requests[1].messages[2].content;
    assert!(answer.len() < 66_000 && answer.ends_with("(cut off: 80000 bytes)"), "{}", answer.len());
}

#[tokio::test]
async fn the_last_answer_is_repaired_until_it_matches_its_schema() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let (world, model) = scripted(vec![
        calls("Thinking.", &[("c1", "double", json!({"n": 2}))]),
        says("It is four."),
        says("{\"n\": 4}"),
    ]);
    let node = agent(json!({"response_schema": schema, "stream": true}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(
        (&done["json"], &done["steps"], &done["usage"]["calls"]),
        (&json!({"n": 4}), &json!(2), &json!(3))
    );
    assert_eq!(world.sink.text(), "Thinking.\n\n{\"n\": 4}");
    assert!(model.requests.lock().iter().all(|request| request.response_schema == Some(schema.clone())));
}

#[tokio::test]
async fn a_model_call_is_retried_separately() {
    let not_now =
        ModelError { kind: ModelErrorKind::Unavailable, message: "not now".into(), retry_after: None };
    let (world, model) =
        scripted(vec![calls("", &[("c1", "double", json!({"n": 2}))]), Err(not_now.clone()), says("4")]);
    world.run(&plan(&alone(&agent(json!({}))))).await.unwrap();
    assert_eq!(model.requests.lock().len(), 3);
    assert_eq!(
        world.journal.lines()[2..],
        ["1 ask[1].1 failed", "1 ask[1].1 succeeded", "1 ask.1 succeeded"],
        "tools are not called again"
    );
    let (world, _) = scripted(vec![Err(ModelError { kind: ModelErrorKind::Rejected, ..not_now })]);
    let error = world.run(&plan(&alone(&agent(json!({}))))).await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::ModelRejected, Some("ask[0]")));
}

#[tokio::test]
async fn rows_of_failed_attempts_contain_their_tokens() {
    let schema = json!({"type": "object", "required": ["n"]});
    let node =
        json!({"name": "ask", "type": "llm", "model": "openai/x", "user": "hi", "response_schema": schema});
    let (world, _) = scripted(vec![says("no"), says("no"), says("{\"n\": 1}")]);
    world.run(&plan(&alone(&node))).await.unwrap();
    let rows = world.journal.rows.lock();
    let StepOutcome::Failed { error, .. } = &rows[0].outcome else { panic!("{:?}", rows[0]) };
    let expected = json!({"calls": 2, "input_tokens": 20, "output_tokens": 10, "cost_usd": null});
    assert_eq!(error.usage.as_deref(), Some(&expected));
}

#[tokio::test]
async fn a_crash_at_any_row_repeats_no_finished_call() {
    let script = || {
        vec![
            calls("First. ", &[("c1", "double", json!({"n": 2})), ("c2", "double", json!({"n": 5}))]),
            calls("Then. ", &[("c3", "double", json!({"n": 10}))]),
            says("It is 20."),
        ]
    };
    let graph = plan(&alone(&agent(json!({"stream": true}))));
    let (world, _) = scripted(script());
    let whole = world.run(&graph).await.unwrap();
    let (text, rows) = (world.sink.text(), world.journal.rows.lock().clone());
    assert_eq!(text, "First. \n\nThen. \n\nIt is 20.");
    for crash in 0..=rows.len() {
        let answered =
            rows[..crash].iter().filter(|row| row.node.ends_with(']') && !row.node.contains('.')).count();
        let (world, model) = scripted(script().split_off(answered));
        let world = world.recorded(recorded(&rows[..crash]));
        assert_eq!(world.run(&graph).await.unwrap(), whole, "{crash}");
        assert_eq!(model.requests.lock().len(), 3 - answered, "{crash}");
        assert_eq!(world.sink.text(), text, "{crash}: all text is sent again");
        assert_eq!(world.journal.rows.lock().len(), rows.len() - crash, "{crash}");
    }
}

#[tokio::test]
async fn an_unknown_tool_outcome_fails_the_node_without_asking_the_model() {
    let tool = json!({"type": "node", "name": "wait", "description": "Waits.", "parameters": {},
                      "node": {"type": "code", "language": "python", "source": "while True:\n    pass",
                              "on_unknown": "fail"}});
    let graph = plan(&alone(&agent(json!({"tools": [tool]}))));
    let (world, _) = scripted(vec![calls("", &[("c1", "wait", json!({}))])]);
    let run = world.begin(&graph);
    settle().await;
    run.drop_it();
    let rows = world.journal.rows.lock().clone();
    assert!(matches!(rows.last().unwrap().outcome, StepOutcome::Started), "{:?}", world.journal.lines());
    let (world, model) = scripted(Vec::new());
    let error = world.recorded(recorded(&rows)).run(&graph).await.unwrap_err();
    assert_eq!((error.code, model.requests.lock().len()), (ErrorCode::NodeOutcomeUnknown, 0));
}

#[tokio::test]
async fn a_resumed_run_uses_the_same_workflow_version() {
    let says_it = |text: &str| {
        let mut graph = graph(json!([template("t", text)]), json!([["START", "t"]]));
        graph["output"] = json!("{{ results.t.text }}");
        graph
    };
    let tool = json!({"type": "workflow", "name": "flow", "description": "Runs.", "workflow": "flow"});
    let graph = plan(&alone(&agent(json!({"tools": [tool]}))));
    let (world, _) = scripted(vec![calls("", &[("c1", "flow", json!({}))]), says("ok")]);
    let world = world.workflow("flow", &says_it("old"));
    world.run(&graph).await.unwrap();
    let rows = world.journal.rows.lock()[..2].to_vec();
    let (world, model) = scripted(vec![says("ok")]);
    let world = world.workflow("flow", &says_it("old")).workflow("flow", &says_it("new"));
    world.recorded(recorded(&rows)).run(&graph).await.unwrap();
    assert_eq!(messages_of(&model.requests.lock()[0])[2].1, "old");
}

#[tokio::test]
async fn the_practice_model_calls_a_tool_named_in_the_message() {
    let mut world = World::new();
    world.models = Models::default().with("practice", Arc::new(Practice::new(Arc::new(SystemClock::new()))));
    let node = agent(json!({"model": "practice/assistant", "user": "Please call double with n=21"}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!((&done["steps"], &done["text"]), (&json!(2), &json!("The tool says: 42")));
}

#[test]
fn agent_fields_have_limits() {
    let with = |more: Value| {
        let mut tool = double();
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        agent(json!({"tools": [tool]}))
    };
    for (node, problem) in [
        (agent(json!({"max_steps": 51})), "/max_steps range"),
        (agent(json!({"tools": {}})), "/tools type"),
        (agent(json!({"tools": [5]})), "/tools/0 type"),
        (agent(json!({"tools": [double(), double()]})), "/tools/1/name duplicate"),
        (
            agent(json!({"tools": [{"type": "hammer", "name": "x", "description": "x"}]})),
            "/tools/0/type choice",
        ),
        (agent(json!({"user": null})), "/user required"),
        (agent(json!({"user": "{{ args.x }}"})), "/user unknown_name"),
        (agent(json!({"credential": "x"})), "/credential unknown_field"),
        (with(json!({"name": "no name"})), "/tools/0/name name"),
        (with(json!({"description": null})), "/tools/0/description required"),
        (with(json!({"parameters": null})), "/tools/0/parameters required"),
        (with(json!({"parameters": {"type": "x"}})), "/tools/0/parameters schema"),
        (with(json!({"node": null})), "/tools/0/node required"),
        (with(json!({"node": {"type": "tranform", "expression": "1"}})), "/tools/0/node/type unknown_type"),
        (
            with(json!({"node": {"type": "transform", "expression": "1 +"}})),
            "/tools/0/node/expression condition",
        ),
        (
            with(json!({"node": {"type": "template", "template": "{{ item }}"}})),
            "/tools/0/node/template unknown_name",
        ),
        (
            with(json!({"node": {"type": "transform", "expression": "1", "on_error": "continue"}})),
            "/tools/0/node/on_error unknown_field",
        ),
        (with(json!({"workflow": "x"})), "/tools/0/workflow unknown_field"),
    ] {
        assert_eq!(refused(&node), [problem], "{node}");
    }
}
