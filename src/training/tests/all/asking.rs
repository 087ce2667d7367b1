//! Evaluators that ask a model or another workflow.

use std::sync::Arc;

use serde_json::{Value, json};
use training::calls::BudgetLimits;
use training::evaluators::{Evaluator, Verdict, read_evaluators};
use training::{Case, CaseRun, Pins};

use crate::world::{Answer, Begin, World, asking, case, llm, plan};

const GOOD: &str = r#"{"reasoning": "All is there.", "score": 1, "feedback": ""}"#;
const HALF: &str = r#"{"reasoning": "Half is there.", "score": 0.5, "feedback": "Name the price."}"#;
const BAD: &str = r#"{"reasoning": "Nothing is there.", "score": 0.1, "feedback": "Answer the question."}"#;
const FIRST: &str = r#"{"reasoning": "One is shorter.", "better": "1"}"#;
const SECOND: &str = r#"{"reasoning": "Two is shorter.", "better": "2"}"#;

fn evaluator(entrypoint: &str, config: Value) -> Vec<Evaluator> {
    let mut problems = Vec::new();
    let request = json!([{"id": "e", "entrypoint": entrypoint, "config": config}]);
    let read = read_evaluators(&request, "", &mut problems);
    assert_eq!(problems, []);
    read
}

/// A case that is answered with its own message.
async fn answered(world: &World, message: &str, expected: Value) -> (Case, CaseRun) {
    let case = Case { expected_output: expected, ..asking(0, message) };
    let ran = world.run(&plan(&[llm("ask", "{{ inputs.message }}")], "{{ results.ask.text }}"), &case).await;
    (case, ran)
}

/// The verdict of one evaluator about a case that is answered with its message, and the requests to the model.
async fn verdict(
    answers: Vec<&'static str>,
    entrypoint: &str,
    config: Value,
    message: &str,
    expected: Value,
) -> (Verdict, Vec<String>) {
    let world = World::new();
    let (case, ran) = answered(&world, message, expected).await;
    let world = world.scripted(answers.into_iter().map(Answer::Text).collect());
    let verdict = world.judged(&evaluator(entrypoint, config), &case, &ran).await.unwrap().remove(0);
    let requests = world.model.requests.lock();
    let text = |request: &models::ModelRequest| {
        request.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
    };
    (verdict, requests.iter().skip(1).map(text).collect())
}

#[tokio::test]
async fn a_model_judges_by_a_rubric_and_the_expected_output() {
    let rubric = json!({"rubric": "Is the price named?"});
    let (judged, requests) = verdict(vec![HALF], "builtin:llm_judge", rubric, "Hi.", json!("10 EUR")).await;
    assert_eq!((judged.score, judged.passed), (0.5, true));
    assert_eq!(judged.feedback.as_deref(), Some("Name the price."));
    for part in ["Is the price named?", "Input: Hi.", "Expected: 10 EUR", "Answer: Hi."] {
        assert!(requests[0].contains(part), "{part}: {}", requests[0]);
    }
    let (judged, requests) = verdict(vec![GOOD], "builtin:llm_judge", json!({}), "Hi.", json!("Hi.")).await;
    assert_eq!((judged.score, judged.reason), (1.0, None));
    assert!(requests[0].contains("says what the expected answer says"), "{}", requests[0]);
    let (judged, requests) = verdict(vec![GOOD], "builtin:llm_judge", json!({}), "Hi.", json!(null)).await;
    assert!(judged.error.unwrap().contains("neither a rubric nor an expected output"));
    assert!(requests.is_empty());
}

#[tokio::test]
async fn several_samples_are_separate_calls_and_give_their_median() {
    let world = World::new();
    let (case, ran) = answered(&world, "Hi.", json!(null)).await;
    let world = world.scripted([GOOD, BAD, HALF].into_iter().map(Answer::Text).collect());
    let evaluators = evaluator("builtin:llm_judge", json!({"rubric": "x", "samples": 3}));
    let judged = world.judged(&evaluators, &case, &ran).await.unwrap().remove(0);
    assert_eq!((judged.score, judged.reason.as_deref()), (0.5, Some("Name the price.")));
    let seeds: Vec<Option<u64>> = world.model.requests.lock().iter().map(|request| request.seed).collect();
    assert!(seeds.len() == 4 && seeds[1] != seeds[2] && seeds[2] != seeds[3], "{seeds:?}");
    let again = world.judged(&evaluators, &case, &ran).await.unwrap().remove(0);
    assert_eq!((again, world.model.requests.lock().len()), (judged, 4), "answered from the journal");
    let usage = serde_json::to_value(world.calls.usage()).unwrap();
    assert_eq!((&usage["by_role"]["task"], &usage["by_role"]["judge"]), (&json!(1), &json!(3)), "{usage}");
}

#[tokio::test]
async fn a_checklist_is_checked_point_by_point() {
    let points = json!({"points": ["It is polite.", "It names the price."]});
    let (judged, requests) = verdict(vec![GOOD, BAD], "builtin:checklist", points, "Hi.", json!(null)).await;
    assert_eq!((judged.score, judged.passed), (0.5, false));
    assert_eq!(judged.reason.as_deref(), Some("Not met: It names the price. Answer the question."));
    assert!(
        requests[0].contains("It is polite.") && requests[1].contains("It names the price."),
        "{requests:?}"
    );
}

#[tokio::test]
async fn answers_are_compared_in_both_orders() {
    for (answers, score, reason) in [
        (vec![FIRST, SECOND], 1.0, None),
        (vec![SECOND, FIRST], 0.0, Some("Two is shorter.")),
        // It always prefers the first one.
        (vec![FIRST, FIRST], 0.5, Some("One is shorter.")),
    ] {
        let (judged, requests) =
            verdict(answers, "builtin:pairwise", json!({}), "Hi.", json!("Hello.")).await;
        assert_eq!((judged.score, judged.reason.as_deref()), (score, reason));
        assert!(
            requests[0].contains("Answer 1:\nHi.") && requests[0].contains("Answer 2:\nHello."),
            "{}",
            requests[0]
        );
        assert!(
            requests[1].contains("Answer 1:\nHello.") && requests[1].contains("Answer 2:\nHi."),
            "{}",
            requests[1]
        );
    }
    let (judged, _) = verdict(vec![], "builtin:pairwise", json!({}), "Hi.", json!(null)).await;
    assert!(judged.error.unwrap().contains("neither a reference nor an expected output"));
}

#[tokio::test]
async fn vectors_are_compared_by_their_angle() {
    let model = json!({"model": "test/vectors"});
    for (message, expected, score) in [("abc", "cab", 1.0), ("aab", "bcc", 0.2), ("aa", "bb", 0.0)] {
        let (judged, _) =
            verdict(vec![], "builtin:embedding_cosine", model.clone(), message, json!(expected)).await;
        assert!((judged.score - score).abs() < 1e-9 && judged.error.is_none(), "{message}: {judged:?}");
        assert_eq!(judged.reason.is_some(), score < 1.0);
    }
    let (judged, _) = verdict(vec![], "builtin:embedding_cosine", model, "a", json!(null)).await;
    assert!(judged.error.unwrap().contains("no expected output"));
}

#[tokio::test]
async fn a_failure_is_retried_once_with_other_seeds() {
    let world = World::new();
    let (case, ran) = answered(&world, "Hi.", json!(null)).await;
    // Without a script the model repeats the question, which is not a verdict.
    let evaluators = evaluator("builtin:llm_judge", json!({"rubric": "x"}));
    let judged = world.while_time_passes(world.judged(&evaluators, &case, &ran)).await.unwrap().remove(0);
    assert!(judged.error.is_some() && judged.score == 0.0 && !judged.passed, "{judged:?}");
    let seeds: Vec<Option<u64>> = world.model.requests.lock().iter().skip(1).map(|it| it.seed).collect();
    let (first, second) = seeds.split_at(seeds.len() / 2);
    assert_eq!(seeds.len(), 12, "twice three attempts with a repair each");
    assert!(first.iter().all(|seed| !second.contains(seed)), "{seeds:?}");
}

#[tokio::test]
async fn a_spent_budget_leaves_the_case_without_a_score() {
    let limits = BudgetLimits { max_llm_calls: Some(1), ..BudgetLimits::default() };
    let world = World::with(Begin { limits, ..Begin::default() });
    let (case, ran) = answered(&world, "Hi.", json!(null)).await;
    let evaluators = evaluator("builtin:llm_judge", json!({"rubric": "x"}));
    assert_eq!(world.judged(&evaluators, &case, &ran).await, None);
    assert_eq!(world.model.requests.lock().len(), 1);
}

#[tokio::test]
async fn nested_evaluators_may_call_models() {
    let parts = json!({"evaluators": [{"entrypoint": "builtin:contains", "config": {"values": "Hi"}},
        {"entrypoint": "builtin:llm_judge", "config": {"rubric": "x"}}]});
    let (judged, requests) = verdict(vec![HALF], "builtin:all", parts, "Hi.", json!(null)).await;
    assert_eq!((judged.score, requests.len()), (0.5, 1));
}

#[tokio::test]
async fn an_evaluator_workflow_receives_the_case_and_the_result() {
    let mut world = World::new();
    let output = json!({"score": "{{ 0.8 if inputs.output_text == 'Hi.' else 0 }}",
        "feedback": "{{ inputs.case.id }} {{ inputs.inputs.message }} {{ inputs.expected_output }} {{ inputs.metadata.tone }} {{ inputs.config.limit }} {{ inputs.trace[0].node }}"});
    let graph = json!({"format": "graph/1", "nodes": [{"name": "x", "type": "template", "template": "x"}],
        "edges": [{"from": "START", "to": "x"}, {"from": "x", "to": "END"}], "output": output});
    let grader = engine::check(&graph).unwrap_or_else(|problems| panic!("{problems:?}"));
    world.workflows.0.push(("grader", 1, Arc::new(grader)));
    let ran = answered(&world, "Hi.", json!(null)).await.1;
    let case = case(0, &json!({"message": "Hi."}), &json!({"tone": "kind"}));
    let case = Case { expected_output: json!("Hello."), ..case };
    let evaluators = evaluator("workflow:grader", json!({"limit": 7}));
    let judged = world.judged(&evaluators, &case, &ran).await.unwrap().remove(0);
    assert_eq!((judged.score, judged.passed, judged.error), (0.8, true, None));
    assert_eq!(judged.feedback.as_deref(), Some("0 Hi. Hello. kind 7 ask"));
    let unknown = evaluator("workflow:nothing", json!({}));
    let judged = world.while_time_passes(world.judged(&unknown, &case, &ran)).await.unwrap().remove(0);
    assert!(judged.error.is_some());
    assert!(evaluators[0].needs_bench());
    assert_eq!(evaluators[0].workflows()[0].workflow, "grader");
}

#[test]
fn bad_models_are_named() {
    let problems = |entrypoint: &str, config: Value| {
        let mut problems = Vec::new();
        read_evaluators(&json!([{"id": "e", "entrypoint": entrypoint, "config": config}]), "", &mut problems);
        problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect::<Vec<_>>()
    };
    for (entrypoint, config, expected) in [
        ("builtin:llm_judge", json!({"samples": 10}), &["/0/config/samples range"][..]),
        ("builtin:llm_judge", json!({"base_url": "https://x.test"}), &["/0/config/model required"]),
        ("builtin:llm_judge", json!({"prompt": "x"}), &["/0/config/prompt unknown_field"]),
        ("builtin:checklist", json!({}), &["/0/config/points required"]),
        ("builtin:checklist", json!({"points": vec!["x"; 21]}), &["/0/config/points size"]),
        ("builtin:embedding_cosine", json!({}), &["/0/config/model required"]),
        (
            "builtin:embedding_cosine",
            json!({"model": "a/b", "temperature": 1}),
            &["/0/config/temperature unknown_field"],
        ),
        ("workflow:", json!({}), &["/0/entrypoint evaluator_not_found"]),
    ] {
        assert_eq!(problems(entrypoint, config), expected, "{entrypoint}");
    }
    let judge = evaluator("builtin:llm_judge", json!({"rubric": "x"}));
    assert!(judge[0].model_problem(&serde_json::Map::new()).is_some(), "no model is configured");
    let named = evaluator("builtin:llm_judge", json!({"rubric": "x", "model": "nonsense"}));
    assert!(named[0].model_problem(&serde_json::Map::new()).unwrap().contains("nonsense"));
    let credential = json!({"rubric": "x", "model": "openai/gpt", "credential": "my key"});
    assert_eq!(evaluator("builtin:llm_judge", credential)[0].model_problem(&serde_json::Map::new()), None);
}

#[tokio::test]
async fn a_run_sees_the_versions_that_were_live_when_it_started() {
    let mut world = World::new();
    let says =
        |text: &str| Arc::new(plan(&[json!({"name": "say", "type": "template", "template": text})], text));
    world.workflows.0.push(("leaf", 1, says("one")));
    let pins: Pins = serde_json::from_value(
        json!([{"workflow": "leaf", "asked": null, "version": 1, "version_id": "leaf@1"}]),
    )
    .unwrap();
    world.workflows.0.push(("leaf", 2, says("two")));
    let node = json!({"name": "call", "type": "sub_workflow", "workflow": "leaf", "inputs": {}});
    let graph = plan(&[node], "{{ results.call }}");
    assert_eq!(world.run(&graph, &asking(0, "x")).await.text, "two");
    let pinned = pins.over(&world.workflows);
    assert_eq!(world.run_with(&graph, &asking(0, "x"), &pinned).await.text, "one");
    let none = Pins::default();
    let ran =
        world.while_time_passes(world.run_with(&graph, &asking(0, "x"), &none.over(&world.workflows))).await;
    assert!(ran.error.unwrap().message().contains("without a version of the workflow 'leaf'"));
}

#[tokio::test]
async fn a_skipped_part_does_not_count() {
    let mut world = World::new();
    let skip = json!({"format": "graph/1", "nodes": [{"name": "x", "type": "template", "template": "x"}],
        "edges": [{"from": "START", "to": "x"}, {"from": "x", "to": "END"}], "output": {"skip": true}});
    world.workflows.0.push((
        "skips",
        1,
        Arc::new(engine::check(&skip).unwrap_or_else(|it| panic!("{it:?}"))),
    ));
    let (case, ran) = answered(&world, "Hi.", json!(null)).await;
    let skips = json!({"entrypoint": "workflow:skips"});
    let contains = |text: &str| json!({"entrypoint": "builtin:contains", "config": {"values": text}});
    for (parts, expected) in [
        (json!([skips, contains("Hi")]), (1.0, true, false)),
        (json!([skips, contains("Bye")]), (0.0, false, false)),
        (json!([skips, skips]), (0.0, false, true)),
    ] {
        let evaluators = evaluator("builtin:all", json!({"evaluators": parts}));
        let judged = world.judged(&evaluators, &case, &ran).await.unwrap().remove(0);
        assert_eq!((judged.score, judged.passed, judged.skip), expected, "{parts}");
        assert_eq!(judged.feedback.is_some(), expected.0 < 1.0 && !expected.2, "{parts}");
    }
}
