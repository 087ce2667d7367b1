//! One case: its inputs, its mocks, its text, its errors.

use std::time::Duration;

use serde_json::{Value, json};
use training::evaluators::{Evaluator, NoBench, read_evaluators};
use training::{CaseContext, CaseError, CaseSettings, judge};

use crate::world::{Answer, World, asking, case, llm, plan};

fn template(name: &str, text: &str) -> Value {
    json!({"name": name, "type": "template", "template": text})
}

fn with(world: World, change: impl FnOnce(&mut CaseSettings)) -> World {
    let mut world = world;
    change(&mut world.settings);
    world
}

#[tokio::test]
async fn case_inputs_override_request_inputs() {
    let world = with(World::new(), |settings| {
        settings.inputs = json!({"message": "all", "desk": 3}).as_object().unwrap().clone();
    });
    let text = "{{ inputs.message }} {{ inputs.desk }} {{ messages | map(attribute='content') | join(',') }} {{ run.trigger }}";
    let ran = world.run(&plan(&[template("say", text)], "{{ results.say.text }}"), &asking(0, "one")).await;
    assert_eq!((ran.output, ran.error), (json!("one 3 one evaluation"), None));
    let trace: Vec<(&str, u32)> = ran.trace.iter().map(|step| (step.node.as_str(), step.visit)).collect();
    assert_eq!(trace, [("say", 1)]);
}

#[tokio::test]
async fn a_case_sends_nothing_and_does_not_wait() {
    let send =
        json!({"name": "send", "type": "http_request", "method": "POST", "url": "http://127.0.0.1:1/"});
    let wait = json!({"name": "wait", "type": "delay", "seconds": 86_400});
    let ask = json!({"name": "ok", "type": "wait_for_input", "message": "OK?"});
    let plan = plan(&[send, wait, ask], "{{ results.send.status }} {{ results.ok.value }}");
    let world = with(World::new(), |settings| {
        settings.mocks = json!({"send": {"status": 500}}).as_object().cloned();
    });
    let metadata = json!({"mocks": {"send": {"status": 201}}, "answers": {"ok": "fine"}});
    let ran = world.run(&plan, &case(0, &json!({}), &metadata)).await;
    assert_eq!((ran.error, ran.output), (None, json!("201 fine")));
    let missing = world.run(&plan, &case(1, &json!({}), &json!({}))).await;
    assert_eq!(missing.error, Some(CaseError::AnswerMissing { key: "ok".into() }));
    assert_eq!(missing.error.unwrap().code(), "answer_missing");
}

#[tokio::test]
async fn the_text_is_the_streamed_text_the_reply_or_the_output() {
    let world = World::new();
    let say = |name: &str, new: bool| json!({"name": name, "type": "reply", "text": format!("From {name}."), "new_message": new});
    for (nodes, output, text) in [
        (vec![say("a", false), say("b", false)], json!("x"), "From a.From b."),
        (vec![say("a", false), say("b", true)], json!("x"), "From a.\n\nFrom b."),
        (
            vec![json!({"name": "a", "type": "reply", "text": "Kept.", "key": "k"}), say("b", false)],
            json!("x"),
            "Kept.\n\nFrom b.",
        ),
        (vec![template("a", "A")], json!({"reply": "{{ results.a.text }}", "n": 1}), "A"),
        (vec![template("a", "A")], json!("{{ results.a.text }}"), "A"),
        (vec![template("a", "A")], json!({"n": 1}), r#"{"n":1}"#),
    ] {
        let names: Vec<&str> = nodes.iter().map(|node| node["name"].as_str().unwrap()).collect();
        let edges: Vec<Value> = ["START"]
            .iter()
            .chain(&names)
            .zip(names.iter().chain(&["END"]))
            .map(|(from, to)| json!({"from": from, "to": to}))
            .collect();
        let graph = json!({"format": "graph/1", "nodes": nodes, "edges": edges, "output": output});
        let ran = world.run(&engine::check(&graph).unwrap(), &asking(0, "hi")).await;
        assert_eq!((ran.error, ran.text.as_str()), (None, text));
    }
}

#[tokio::test]
async fn a_reply_in_pieces_takes_no_time() {
    let say =
        json!({"name": "say", "type": "reply", "text": "a b c d", "pieces": "words", "pause_ms": 2_000});
    let ran = World::new().run(&plan(&[say], "x"), &asking(0, "x")).await;
    assert_eq!((ran.text.as_str(), ran.duration), ("a b c d", Duration::ZERO));
}

#[tokio::test]
async fn text_of_a_failed_attempt_is_left_out() {
    let mut ask = llm("ask", "hi");
    ask["stream"] = json!(true);
    ask["response_schema"] = json!({"type": "object", "required": ["n"]});
    let world = World::new().scripted(vec![Answer::Text("no JSON"), Answer::Text("{\"n\": 1}")]);
    let ran = world.run(&plan(&[ask], "x"), &asking(0, "hi")).await;
    assert_eq!((ran.error, ran.text.as_str()), (None, "{\"n\": 1}"));
}

#[tokio::test]
async fn invalid_inputs_and_failures_are_case_errors() {
    let graph = json!({"format": "graph/1", "inputs": {"type": "object", "required": ["desk"]},
        "nodes": [{"name": "no", "type": "assert", "when": "false", "message": "never"}],
        "edges": [{"from": "START", "to": "no"}, {"from": "no", "to": "END"}]});
    let plan = engine::check(&graph).unwrap();
    let world = World::new();
    let unfit = world.run(&plan, &asking(0, "x")).await;
    assert_eq!(unfit.error.unwrap().code(), "run.inputs_invalid");
    let failed = world.run(&plan, &case(1, &json!({"desk": 1}), &json!({}))).await;
    let error = failed.error.unwrap();
    assert!(error.code() == "node.failed" && error.message().contains("never"), "{error:?}");
    assert_eq!(failed.trace[0].error.as_ref().unwrap().code.as_str(), "node.failed");
}

#[tokio::test]
async fn a_slow_case_times_out() {
    let world =
        with(World::new().scripted(vec![Answer::Hangs]), |settings| settings.limit = Duration::from_secs(2));
    let ran = world.run_while_time_passes(&plan(&[llm("ask", "x")], "x"), &asking(0, "x")).await;
    assert_eq!((ran.error.as_ref().unwrap().code(), ran.output), ("case_timeout", Value::Null));
    assert!(
        ran.duration >= Duration::from_secs(2) && ran.duration < Duration::from_secs(3),
        "{:?}",
        ran.duration
    );
}

fn evaluators(request: &Value) -> Vec<Evaluator> {
    let mut problems = Vec::new();
    let read = read_evaluators(request, "", &mut problems);
    assert_eq!(problems, []);
    read
}

#[tokio::test]
async fn a_trace_has_the_inputs_and_model_calls_of_each_node() {
    let world = World::new();
    let shout = template("shout", "{{ results.ask.text | upper }}");
    let plan = plan(&[llm("ask", "Sort {{ inputs.message }}."), shout], "{{ results.shout.text }}");
    let ran = world.run(&plan, &asking(0, "forty")).await;
    assert_eq!(ran.error, None);
    let trace = serde_json::to_value(&ran.trace).unwrap();
    let (asks, shouts) = (&trace[0], &trace[1]);
    let members: Vec<&str> = asks.as_object().unwrap().keys().map(String::as_str).collect();
    let all = "node type visit attempt inputs output error duration_ms prompts_read llm";
    assert_eq!(members.join(" "), all);
    assert_eq!((&asks["type"], &shouts["type"]), (&json!("llm"), &json!("template")));
    let call = &asks["llm"][0];
    assert_eq!(call["messages"].as_array().unwrap().last().unwrap()["content"], "Sort forty.", "{call}");
    assert_eq!((&call["reply"], asks["llm"].as_array().unwrap().len()), (&asks["output"]["text"], 1));
    assert!(call["model"].as_str().unwrap().contains('/') && call.get("usage").is_some(), "{call}");
    assert!(asks["inputs"]["messages"].is_array() && asks["duration_ms"].is_u64(), "{asks}");
    let text = asks["output"]["text"].as_str().unwrap();
    assert!(shouts["inputs"].to_string().contains(&text.to_uppercase()), "{shouts}");
    assert_eq!(shouts["llm"], json!([]));
    // A search needs neither, and keeps many results.
    let kept = serde_json::to_value(&ran.without_details().trace).unwrap();
    assert_eq!(
        (&kept[0]["inputs"], &kept[0]["llm"], &kept[0]["output"]),
        (&Value::Null, &json!([]), &asks["output"])
    );
}

#[tokio::test]
async fn a_result_is_rejudged_without_a_call() {
    let world = World::new();
    let plan = plan(&[llm("ask", "{{ inputs.message }}")], "{{ results.ask.text }}");
    let case = training::Case { expected_output: json!("forty two"), ..asking(0, "forty") };
    let ran = world.run(&plan, &case).await;
    let exact = evaluators(&json!([{"id": "exact", "entrypoint": "builtin:exact_match"}]));
    let others = evaluators(
        &json!([{"id": "start", "entrypoint": "builtin:starts_with", "config": {"values": "for"}},
        {"id": "words", "entrypoint": "builtin:token_f1"}]),
    );
    let scores = async |evaluators: &[Evaluator]| {
        let verdicts =
            judge(evaluators, &case, &ran, CaseContext::default(), &NoBench::default()).await.unwrap();
        verdicts.iter().map(|verdict| verdict.score).collect::<Vec<f64>>()
    };
    assert_eq!((scores(&exact).await, scores(&others).await), (vec![0.0], vec![1.0, 2.0 / 3.0]));
    assert_eq!(world.model.requests.lock().len(), 1);
}

#[tokio::test]
async fn a_failure_scores_zero_and_only_workflow_failures_are_feedback() {
    let exact = evaluators(&json!([{"id": "exact", "entrypoint": "builtin:exact_match"}]));
    let plan = plan(&[llm("ask", "x")], "x");
    let hanging =
        with(World::new().scripted(vec![Answer::Hangs]), |settings| settings.limit = Duration::from_secs(2));
    let late = hanging.run_while_time_passes(&plan, &asking(0, "x")).await;
    let down = World::new().scripted((0..3).map(|_| Answer::IsDown).collect());
    let down = down.run_while_time_passes(&plan, &asking(0, "x")).await;
    for (ran, has_feedback) in [(&late, true), (&down, false)] {
        let judged = judge(&exact, &asking(0, "x"), ran, CaseContext::default(), &NoBench::default()).await;
        let verdict = judged.unwrap().remove(0);
        assert_eq!(
            (verdict.score, verdict.passed, verdict.feedback.is_some()),
            (0.0, false, has_feedback),
            "{verdict:?}"
        );
        assert!(verdict.reason.unwrap().starts_with(ran.error.as_ref().unwrap().code()));
    }
    let spent = training::CaseRun { error: Some(CaseError::Exhausted), ..late };
    let judged = judge(&exact, &asking(0, "x"), &spent, CaseContext::default(), &NoBench::default()).await;
    assert_eq!(judged, None);
}
