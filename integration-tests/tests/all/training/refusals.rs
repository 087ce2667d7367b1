//! Requests that are rejected before the first call, and dry runs. Neither stores anything.

use integration_tests::{AnswerExt, Socket, TestService, Workflow, graphs};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::{
    SEED, cases, evaluation, label, message, post, prompts, runs_of, sorting, training, training_of, workflow,
};

/// Tables that a start writes to. A graph's draft is not included: it is kept without a start.
const TABLES: [&str; 11] = [
    "runs",
    "streams",
    "training_runs",
    "training_calls",
    "training_cases",
    "training_marks",
    "training_checkpoints",
    "datasets",
    "dataset_versions",
    "dataset_entries",
    "dataset_cases",
];

async fn assert_nothing_stored(t: &TestService) {
    for table in TABLES {
        t.assert_no_rows(table).await;
    }
}

/// Sorts a message, then sends it somewhere.
fn sending(method: &str) -> Value {
    let mut graph = sorting("practice/classify");
    let send =
        json!({"name": "send", "type": "http_request", "method": method, "url": "https://example.com/x"});
    graph["nodes"].as_array_mut().unwrap().push(send);
    graph["edges"] = json!([{"from": "START", "to": "sort"}, {"from": "sort", "to": "send"}, {"from": "send", "to": "END"}]);
    graph
}

async fn sender(t: &TestService, method: &str) -> Workflow {
    t.workflow().graph(sending(method)).config(prompts(SEED)).create().await
}

/// The body with this value at the pointer.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    match body.pointer_mut(pointer) {
        Some(known) => *known = value,
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    body
}

/// Invalid training requests, each with its problems.
fn wrong_requests() -> Vec<(Value, &'static [&'static str])> {
    let train = |optimizer: Value| training(optimizer);
    let judged = |evaluators: Value| with(training(json!({})), "/training/evaluators", evaluators);
    let one = |entrypoint: &str| json!([{"id": "a", "entrypoint": entrypoint}]);
    let twice = json!([{"id": "a", "entrypoint": "builtin:exact_match"}, {"id": "a", "entrypoint": "builtin:json_valid"}]);
    vec![
        (judged(one("builtin:exact")), &["/training/evaluators/0/entrypoint evaluator_not_found"]),
        (judged(one("metrics:score")), &["/training/evaluators/0/entrypoint evaluator_not_found"]),
        (judged(twice), &["/training/evaluators/1/id duplicate"]),
        (judged(json!([])), &["/training/evaluators type"]),
        (training_of(Vec::new(), json!({})), &["/training/dataset/cases dataset_empty"]),
        (
            with(training(json!({})), "/training/dataset", json!({"id": "none"})),
            &["/training/dataset/id dataset_not_found"],
        ),
        (train(json!({"name": "grad"})), &["/training/optimizer/name choice"]),
        (train(json!({"epoch": 3})), &["/training/optimizer/epoch unknown_field"]),
        (with(training(json!({})), "/training/more", json!(1)), &["/training/more unknown_field"]),
        (with(training(json!({})), "/more", json!(1)), &["/more unknown_field"]),
        (
            with(training(json!({})), "/training/dataset/cases/3", json!({"inputs": {}, "expected": 1})),
            &["/training/dataset/cases/3/expected unknown_field"],
        ),
        (
            train(json!({"models": {"critic": {}, "judge": {"model": "practice/judge", "temp": 1}}})),
            &[
                "/training/optimizer/models/judge/temp unknown_field",
                "/training/optimizer/models/critic unknown_field",
            ],
        ),
        (
            train(json!({"epochs": 0, "repeats": 11, "seed": -1})),
            &[
                "/training/optimizer/epochs range",
                "/training/optimizer/seed range",
                "/training/optimizer/repeats range",
            ],
        ),
        (
            train(json!({"resume": {"checkpoint_id": "01890000-0000-7000-8000-000000000001"}})),
            &["/training/optimizer/resume checkpoint_not_found"],
        ),
        (train(json!({"resume": {"run_id": "none"}})), &["/training/optimizer/resume checkpoint_not_found"]),
        (
            train(json!({"resume": {"config_version": 1}})),
            &["/training/optimizer/resume checkpoint_not_found"],
        ),
        (
            with(training(json!({})), "/evaluation", evaluation(1, json!({}))["evaluation"].clone()),
            &["/evaluation conflict"],
        ),
        (json!({}), &["/training required"]),
        // Problems around it and in it, in one response.
        (
            with(train(json!({"epochs": 0})), "/inputs", json!(1)),
            &["/inputs type", "/training/optimizer/epochs range"],
        ),
        (
            with(
                training(json!({})),
                "/runnable_config",
                json!({"prompts": {"rules": {"requires_grad": true}}}),
            ),
            &["/runnable_config/prompts/rules/text required"],
        ),
    ]
}

#[tokio::test]
async fn a_wrong_request_is_rejected_with_its_problems_and_stores_nothing() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    for (body, problems) in wrong_requests() {
        let refused = post(&client, &runs_of(&workflow.id), &body).await;
        assert_eq!(
            (refused.refusal().as_str(), refused.problems()),
            ("422 request.invalid", problems.iter().map(|it| (*it).to_owned()).collect()),
            "{body}"
        );
        // A dry run is rejected alike.
        let dry = post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &body).await;
        assert_eq!(dry.problems(), problems, "{body}");
    }
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn the_websocket_rejects_the_same_requests_without_a_run() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    for (body, problems) in wrong_requests() {
        // On a socket, the message type names the kind.
        if body.get("training").is_none() || body.get("evaluation").is_some() {
            continue;
        }
        socket.say(&message("train_workflow", "r", &body)).await;
        let error = socket.next().await;
        assert_eq!(
            (&error["type"], &error["run_id"], &error["seq"]),
            (&json!("error"), &Value::Null, &json!(0)),
            "{error}"
        );
        assert_eq!(
            (&error["payload"]["code"], &error["request_id"]),
            (&json!("request.invalid"), &json!("r"))
        );
        let errors = error["payload"]["errors"].as_array().unwrap().iter();
        let reported =
            errors.map(|it| format!("{} {}", it["pointer"].as_str().unwrap(), it["code"].as_str().unwrap()));
        assert_eq!(reported.collect::<Vec<_>>(), problems, "{body}");
    }
    socket.say(&message("train_workflow", "r", &evaluation(1, json!({})))).await;
    assert_eq!(socket.next().await["payload"]["code"], "request.invalid");
    assert_eq!(socket.settle().await, [Value::Null; 0], "the socket stays open, and nothing was started");
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn an_outbound_node_is_rejected_unless_its_result_is_mocked() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), sender(&t, "POST").await);
    let dry = format!("{}?dry_run=true", runs_of(&workflow.id));
    for body in [training(json!({})), evaluation(2, json!({}))] {
        let refused = post(&client, &runs_of(&workflow.id), &body).await;
        assert_eq!(refused.problems(), ["/nodes/1 outbound_node"], "{}", refused.text());
    }
    let with_graph = with(training(json!({})), "/graph_config", with(sending("POST"), "/output", json!("x")));
    assert_eq!(post(&client, &dry, &with_graph).await.problems(), ["/graph_config/nodes/1 outbound_node"]);
    let mock = json!({"send": {"status": 200}});
    let mocked = |mut case: Value| {
        case["metadata"] = json!({"mocks": mock});
        case
    };
    let mut some: Vec<Value> = cases(4).into_iter().map(mocked).collect();
    let every = training_of(some.clone(), json!({}));
    some.push(cases(5)[4].clone());
    assert_eq!(
        post(&client, &dry, &training_of(some, json!({}))).await.problems(),
        ["/nodes/1 outbound_node"]
    );
    let allowed = [
        (with(training(json!({})), "/training/mocks", mock.clone()), vec![]),
        (every, vec![json!("few_cases")]),
        (with(training(json!({})), "/training/effects", json!("run")), vec![]),
    ];
    for (body, expected) in allowed {
        let plan = post(&client, &dry, &body).await;
        let codes: Vec<Value> =
            plan.value()["warnings"].as_array().unwrap().iter().map(|it| it["code"].clone()).collect();
        assert_eq!((plan.status, codes), (200, expected), "{}", plan.text());
    }
    let reading = sender(&t, "GET").await;
    let plan = post(&client, &format!("{}?dry_run=true", runs_of(&reading.id)), &training(json!({}))).await;
    assert_eq!(plan.value()["warnings"][0]["code"], "reads_outside", "{}", plan.text());
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn a_training_needs_a_prompt_that_a_node_reads() {
    let t = TestService::start().await;
    let client = t.anonymous();
    let mut graph = sorting("practice/classify");
    graph["nodes"][0]["system"] = json!("Sort.");
    let unread = t.workflow().graph(graph).config(prompts(SEED)).create().await;
    let fixed = json!({"prompts": {"rules": {"text": SEED, "requires_grad": false}}});
    let fixed = t.workflow().graph(sorting("practice/classify")).config(fixed).create().await;
    for workflow in [unread, fixed] {
        let refused = post(&client, &runs_of(&workflow.id), &training(json!({}))).await;
        assert_eq!(
            refused.problems(),
            ["/runnable_config/prompts no_trainable_prompt"],
            "{}",
            refused.text()
        );
    }
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn a_useless_budget_is_rejected_with_the_smallest_useful_one() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let dry_run = async |calls: u64| {
        let body = training(json!({"budget": {"max_llm_calls": calls}}));
        post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &body).await
    };
    let refused = dry_run(1).await;
    assert_eq!(refused.problems(), ["/training/optimizer/budget/max_llm_calls budget_pointless"]);
    let text = refused.value()["detail"]["errors"][0]["message"].as_str().unwrap().to_owned();
    let least = text.rsplit_once("the smallest useful budget is ").expect("a budget in the message").1;
    let least: u64 = least.parse().unwrap();
    assert_eq!((dry_run(least - 1).await.status, dry_run(least).await.status), (422, 200), "{text}");
    let body = training(json!({"budget": {"max_tokens": 1}}));
    let refused = post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &body).await;
    assert_eq!(refused.problems(), ["/training/optimizer/budget/max_tokens budget_pointless"]);
    // Scoring only the seed needs no proposal.
    let none = training(json!({"name": "none", "budget": {"max_llm_calls": 1}}));
    assert_eq!(post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &none).await.status, 200);
}

/// Cost cannot be counted for a model without a price.
#[tokio::test]
async fn a_money_limit_for_a_model_without_a_price_is_rejected() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "openai/unpriced").await);
    let body = training(json!({"budget": {"max_cost": 1}}));
    let refused = post(&client, &format!("{}?dry_run=true", runs_of(&workflow.id)), &body).await;
    assert!(refused.problems().iter().any(|it| it.ends_with(" price_unknown")), "{}", refused.text());
}

#[tokio::test]
async fn a_bad_graph_is_rejected_with_the_problems_of_the_graph() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let body = with(training(json!({})), "/graph_config", json!({"format": "graph/2"}));
    let refused = post(&client, &runs_of(&workflow.id), &body).await;
    assert_eq!(refused.refusal(), "422 graph.invalid");
    assert!(
        refused.problems().iter().all(|problem| problem.starts_with("/graph_config/")),
        "{}",
        refused.text()
    );
    let empty = t.workflow().without_version().create().await;
    assert_eq!(
        post(&client, &runs_of(&empty.id), &training(json!({}))).await.refusal(),
        "409 workflow.no_version"
    );
    assert_eq!(
        post(&client, &runs_of("none"), &training(json!({}))).await.refusal(),
        "404 workflow.not_found"
    );
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn a_dry_run_plans_and_calls_no_model() {
    let model = ModelServer::start(|_, _| Reply::Text("shipping".to_owned())).await;
    let t = model.service().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "openai/test").await);
    let path = format!("{}?dry_run=true", runs_of(&workflow.id));
    let mut config = prompts(SEED);
    config["prompts"]["unused"] = json!({"text": "x", "requires_grad": true});
    let body = with(training(json!({"name": "gepa", "test_split": 0.25})), "/runnable_config", config);
    let plan = post(&client, &path, &body).await.expect(200).value();
    assert_eq!((&plan["kind"], &plan["version"]), (&json!("training"), &json!(1)));
    assert_eq!((&plan["trainable_prompts"], &plan["pins"]), (&json!(["rules"]), &json!([])));
    assert_eq!(
        (&plan["optimizer"]["name"], &plan["optimizer"]["minibatch_size"]),
        (&json!("gepa"), &json!(6))
    );
    let warnings: Vec<&Value> = plan["warnings"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(warnings, ["prompt_unread"]);
    // Each case is in exactly one split.
    let part = |name: &str| plan["splits"][name].as_array().unwrap().clone();
    let mut places: Vec<u64> =
        ["train", "val", "test"].into_iter().flat_map(part).map(|place| place.as_u64().unwrap()).collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(0..24), "{plan}");
    assert_eq!((part("test").len(), &plan["splits"]["test_estimate"]), (6, &json!("split")));
    for member in ["cases", "llm_calls"] {
        let [least, expected, most] =
            ["min", "expected", "max"].map(|it| plan["estimate"][member][it].as_u64().unwrap());
        assert!(0 < least && least <= expected && expected <= most, "{plan}");
    }
    let evaluated = post(&client, &path, &evaluation(5, json!({"repeats": 2}))).await.value();
    assert_eq!((&evaluated["kind"], &evaluated["splits"]), (&json!("evaluation"), &Value::Null));
    assert_eq!(evaluated["estimate"]["llm_calls"], json!({"min": 10, "expected": 10, "max": 10}));
    let estimate = &evaluated["estimate"];
    assert!(
        estimate["tokens"].as_u64().unwrap() >= 100 && estimate["seconds"].as_f64().unwrap() > 0.0,
        "{estimate}"
    );
    let unsure = post(&client, &format!("{}?dry_run=perhaps", runs_of(&workflow.id)), &body).await;
    assert_eq!(unsure.problems(), ["/dry_run type"]);
    assert_eq!(model.request_count(), 0);
    assert_nothing_stored(&t).await;
}

/// A judging workflow is resolved and pinned like any other; a missing one is a problem.
#[tokio::test]
async fn a_judging_workflow_is_pinned_to_its_version() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let judge = t
        .workflow()
        .named("A judge")
        .graph(graphs::chain(&[json!({"name": "yes", "type": "template", "template": "1"})], Some(json!(1))))
        .create()
        .await;
    let request = |handle: &str| {
        let evaluators = json!([label()[0], {"id": "own", "entrypoint": format!("workflow:{handle}")}]);
        with(training(json!({})), "/training/evaluators", evaluators)
    };
    let path = format!("{}?dry_run=true", runs_of(&workflow.id));
    let plan = post(&client, &path, &request(&judge.handle)).await;
    assert_eq!((plan.status, &plan.value()["pins"][0]["version"]), (200, &json!(1)), "{}", plan.text());
    let missing = post(&client, &path, &request("nowhere")).await.expect(422);
    assert!(missing.problems()[0].starts_with("/training/evaluators/1/entrypoint"), "{}", missing.text());
}
