//! Graph functions as evaluators: they score, teach, fail and survive a kill.
#![allow(clippy::print_stdout, reason = "the seed, for the reader of the test's output")]

use integration_tests::{AnswerExt, Client, TestService, Workflow};
use kernel::SeededRandom;
use serde_json::{Value, json};
use store::testing::TestDatabase;
use wire::CreateCredential;

use super::judge::{JudgeReply, JudgeServer, SECRET, vault_keys};
use super::kills::{assert_undisturbed, kill_at_random_moments, started, workflow_of};
use super::model::{COLOURS, ModelServer, Reply, colours, is_of_optimizer, painter};
use super::{Run, SEED, cases, get, only, payloads, post, prompts, runs_of, sorting, training, training_of};
use crate::crash::service::Service;
use crate::crash::{folder, number, seed};

const METRICS: &str = "
seen = []

def label(context):
    seen.append(1)
    got, wanted = context['output_text'], context['expected_output']
    if got == wanted:
        return True
    advice = 'a lamp says ' + str(wanted)
    return {'score': 0, 'feedback': advice, 'metrics': {'calls': len(seen)}}

def members(context):
    return {'score': 1, 'reason': ' '.join(sorted(context.keys())) + ' ' + str(context['config']['limit'])}

def calls(context):
    seen.append(1)
    return {'score': 1, 'reason': str(len(seen))}

def loops(context):
    while True:
        pass

def grows(context):
    all = []
    while True:
        all.append('x' * 1000)

def fails(context):
    return context['nothing']

def says(context):
    return 'good'

def long(context):
    return {'score': 1, 'reason': 'x' * 70000}
";

const SHAPE: &str = "import { half } from './lib.js';
export function half_right(context) { return { value: half(context.output_text.length > 0 ? 1 : 0) }; }
";
const LIB: &str = "export const half = (n) => n / 2;\n";

/// Adds the evaluators' code to a graph.
fn with_code(mut graph: Value) -> Value {
    graph["modules"] = json!({"metrics.py": METRICS, "shape.js": SHAPE, "lib.js": LIB});
    graph
}

async fn workflow(t: &TestService, model: &str, seed: &str) -> Workflow {
    t.workflow().graph(with_code(sorting(model))).config(prompts(seed)).create().await
}

fn judged_by(mut body: Value, evaluators: Value) -> Value {
    let kind = if body.get("training").is_some() { "training" } else { "evaluation" };
    body[kind]["evaluators"] = evaluators;
    body
}

/// An evaluator with its entrypoint as the id.
fn named(entrypoint: &str) -> Value {
    json!({"id": entrypoint, "entrypoint": entrypoint})
}

/// The verdicts for the single case of an evaluation.
async fn verdicts(client: &Client, workflow: &str, evaluators: Value) -> Value {
    let body = judged_by(super::evaluation(1, json!({})), evaluators);
    let run = Run::start(client, workflow, &body).await;
    let events = run.events().await;
    assert_eq!(run.record().await["status"], "succeeded");
    only(&events, "evaluation_progress")["evaluations"].clone()
}

#[tokio::test]
async fn feedback_of_a_function_teaches_the_optimizer() {
    let model = ModelServer::start(|_, request| Reply::Text(painter(request))).await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/task", COLOURS).await;
    let body = training_of(colours(&[("train", 2), ("val", 2)]), json!({"epochs": 2}));
    let body = judged_by(body, json!([{"id": "label", "entrypoint": "metrics:label"}]));
    let events = Run::start(&t.anonymous(), &workflow.id, &body).await.events().await;
    let result = only(&events, "training_result");
    assert_eq!(result["outcome"], "improved", "{result}");
    let requests: Vec<String> =
        model.requests().iter().filter(|it| is_of_optimizer(it)).map(Value::to_string).collect();
    assert!(requests.iter().any(|request| request.contains("a lamp says red")), "{requests:?}");
    // Each call has a separate interpreter.
    let first = payloads(&events, "training_progress")[0];
    assert_eq!(
        first["evaluations"]["label"]["reason"].as_str().map(|it| it.starts_with("a lamp says")),
        Some(true)
    );
    // Functions are not models, so the headroom test executes each case once.
    let headroom = payloads(&events, "training_progress");
    let samples = headroom.iter().filter(|case| case["phase"] == "headroom").map(|case| &case["sample"]);
    assert!(samples.into_iter().all(|sample| *sample == json!(0)));
}

#[tokio::test]
async fn a_function_in_either_language_receives_the_whole_context() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify", SEED).await;
    let nested =
        json!({"evaluators": [{"entrypoint": "metrics:calls"}, {"entrypoint": "shape.js:half_right"}]});
    let evaluators = json!([
        {"id": "members", "entrypoint": "metrics.py:members", "config": {"limit": 7}},
        {"id": "calls", "entrypoint": "metrics:calls"},
        {"id": "half", "entrypoint": "shape:half_right", "threshold": 0.6},
        {"id": "both", "entrypoint": "builtin:weighted", "config": nested},
    ]);
    let found = verdicts(&t.anonymous(), &workflow.id, evaluators).await;
    let members = "case config duration_ms expected_output inputs metadata output output_text trace usage 7";
    assert_eq!(found["members"]["reason"], members);
    assert_eq!(found["calls"]["reason"], "1", "nothing is left of an earlier call");
    assert_eq!((&found["half"]["score"], &found["half"]["passed"]), (&json!(0.5), &json!(false)));
    assert_eq!(found["both"]["score"], 0.75);
}

#[tokio::test]
async fn a_function_failure_is_an_evaluator_error() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify", SEED).await;
    let errors = [
        ("metrics:loops", "longer than 2 s"),
        ("metrics:grows", "more memory than"),
        ("metrics:fails", "KeyError"),
        ("metrics:says", "a boolean, a number or an object, not a text"),
        ("metrics:long", "larger than 65536 bytes"),
    ];
    let evaluators: Vec<Value> = errors.iter().map(|(entrypoint, _)| named(entrypoint)).collect();
    let found = verdicts(&t.anonymous(), &workflow.id, json!(evaluators)).await;
    for (entrypoint, expected) in errors {
        let verdict = &found[entrypoint];
        assert_eq!((&verdict["score"], &verdict["passed"]), (&json!(0.0), &json!(false)), "{verdict}");
        let error = verdict["error"].as_str().unwrap();
        assert!(error.contains(expected), "{entrypoint}: {error}");
    }
}

#[tokio::test]
async fn a_missing_entrypoint_is_rejected_with_the_available_ones() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify", SEED).await);
    for (entrypoint, suggestion) in [
        ("metrics:lable", Some("metrics:label")),
        ("metric:label", Some("metrics:label")),
        ("shape.py:half_right", None),
        ("os:system", None),
        ("workflow:nowhere", None),
    ] {
        let body = judged_by(training(json!({})), json!([named(entrypoint)]));
        let refused = post(&client, &runs_of(&workflow.id), &body).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{entrypoint}");
        let expected = "/training/evaluators/0/entrypoint evaluator_not_found";
        assert_eq!(refused.problems(), [expected], "{}", refused.text());
        let problem = &refused.value()["detail"]["errors"][0];
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("exact_match") && message.contains("workflow:<handle>"), "{message}");
        assert!(entrypoint.starts_with("workflow") || message.contains("shape:half_right"), "{message}");
        if let Some(near) = suggestion {
            assert_eq!(problem["suggestion"], format!("did you mean '{near}'?"));
        }
    }
    t.assert_no_rows("training_runs").await;
}

/// Runs are compared only if they were judged by the same code.
#[tokio::test]
async fn the_graph_of_a_request_is_judged_by_its_code() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify", SEED).await);
    let mut body = judged_by(super::evaluation(2, json!({})), json!([named("metrics:label")]));
    Run::start(&client, &workflow.id, &body).await.events().await;
    body["graph_config"] = sorting("practice/classify");
    body["graph_config"]["modules"] = json!({"metrics.py": "def label(context):\n    return 0.25\n"});
    let events = Run::start(&client, &workflow.id, &body).await.events().await;
    assert_eq!(only(&events, "evaluation_result")["score"], 0.25);
    assert_eq!(t.scalar("SELECT count(DISTINCT judges) FROM training_runs").await, "2");
    body.as_object_mut().unwrap().remove("graph_config");
    Run::start(&client, &workflow.id, &body).await.events().await;
    assert_eq!(t.scalar("SELECT count(DISTINCT judges) FROM training_runs").await, "2");
}

/// Function and service verdicts are stored with the case: a replay does not request them again.
#[tokio::test]
async fn kills_change_no_verdict_of_functions_and_services() {
    let judge = JudgeServer::start(|_, context| {
        let is_right = context["output_text"] == context["expected_output"];
        JudgeReply::Verdict(json!({"score": if is_right { 1 } else { 0 }, "feedback": "wrong"}))
    })
    .await;
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-foreign"), Some(database.dsn()));
    service.set("SERVICE_VAULT_KEYS", vault_keys());
    service.set("SERVICE_EGRESS_ALLOW", judge.allow());
    let kills = number("CALLBOARD_CRASH_KILLS", 4).min(100);
    let seed = seed();
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills)");
    let random = SeededRandom::new(seed);
    let client = started(&mut service).await;
    let credential =
        CreateCredential { name: "judge".into(), secret: SECRET.into(), provider: None, description: None };
    client.create_credential(&credential).await.unwrap();
    let service_judges = json!({"id": "service", "entrypoint": "http:judge", "config": {"url": judge.url()}});
    let body = judged_by(
        training(json!({"epochs": 2, "validation_split": 0.5})),
        json!([{"id": "function", "entrypoint": "metrics:label"}, service_judges]),
    );
    let graph = || with_code(sorting("practice/classify@60ms"));
    let undisturbed = workflow_of(&client, graph()).await;
    let undisturbed = Run::start(&client, &undisturbed, &body).await.events().await;
    let judge_requests = judge.requests().len();
    let mut run = Run::start(&client, &workflow_of(&client, graph()).await, &body).await;
    let lives = kill_at_random_moments(&database, &mut service, &mut run, &random, kills, 50).await;
    assert!(lives > 0, "no kill hit the run");
    assert_undisturbed(&database, &run, &undisturbed).await;
    let verdicts = |events: &[Value]| {
        let executed =
            payloads(events, "training_progress").into_iter().filter(|case| case["cached"] == false);
        let mut all: Vec<String> = executed
            .map(|it| {
                format!("{} {} {}: {}", it["candidate_id"], it["case_index"], it["sample"], it["evaluations"])
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(verdicts(&run.events().await), verdicts(&undisturbed));
    // Only cases in flight at a kill are judged again, with the same keys.
    let again = judge.requests().split_off(judge_requests);
    let mut keys: Vec<String> =
        again.iter().map(|it| it.header("idempotency-key").unwrap().to_owned()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), judge_requests, "each case has its own key");
    assert!(again.len() <= judge_requests + lives * 8, "{} of {judge_requests}", again.len());
    service.stop();
}

/// An evaluation's case list includes the verdicts.
#[tokio::test]
async fn a_verdict_of_a_function_is_stored_with_its_case() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify", SEED).await);
    let mut one = cases(1);
    one[0]["expected_output"] = json!("a lamp");
    let body = json!({"evaluation": {"dataset": {"cases": one}, "evaluators": [named("metrics:label")]}});
    let run = Run::start(&client, &workflow.id, &body).await;
    run.events().await;
    let stored = get(&client, &format!("{}/cases", run.path)).await.value();
    let verdict = &stored["data"][0]["evaluations"]["metrics:label"];
    assert_eq!(verdict["reason"], "a lamp says a lamp", "{stored}");
}
