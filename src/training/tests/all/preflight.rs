//! Refusals, warnings and estimates before the first call.

use std::convert::Infallible;
use std::sync::LazyLock;

use async_trait::async_trait;
use engine::{Plan, references};
use serde_json::{Map, Value, json};
use training::request::{DatasetSource, TrainingRequest, read_training};
use training::{
    AskedModels, CallRange, Case, FoundVersion, Resolution, Start, Versions, Warning, resolve, split,
    trainable_prompts,
};
use wire::FieldError;

use crate::world::llm;

/// Two other workflows: one sends mail and has a prompt, one asks a model without a price.
struct Mailer;

#[async_trait]
impl Versions for Mailer {
    type Error = Infallible;

    async fn find(&self, workflow: &str, _version: Option<u64>) -> Result<Option<FoundVersion>, Infallible> {
        if workflow == "grader" {
            let node = json!({"name": "ask", "type": "llm", "model": "openai/unpriced", "user": "x"});
            let (id, graph) = ("grader@1".into(), json!({"nodes": [node]}));
            return Ok(Some(FoundVersion { id, number: Some(1), graph, config: Map::new() }));
        }
        let config = json!({"prompts": {"tone": {"text": "x", "requires_grad": true}}});
        Ok((workflow == "mailer").then(|| FoundVersion {
            id: "mailer@1".into(),
            number: Some(1),
            graph: json!({"nodes": [{"name": "send", "type": "email_send"}]}),
            config: config.as_object().unwrap().clone(),
        }))
    }
}

static NOTHING: LazyLock<(Value, Map<String, Value>)> = LazyLock::new(Default::default);

/// A request without models.
fn no_models() -> AskedModels<'static> {
    AskedModels { evaluators: &NOTHING.0, judge: &NOTHING.1, optimizer: &NOTHING.1 }
}

/// A request with everything needed to start.
struct Given {
    graph: Value,
    plan: Plan,
    config: Map<String, Value>,
    request: TrainingRequest,
    cases: Vec<Case>,
    resolution: Resolution,
}

fn graph(nodes: &[Value]) -> Value {
    let names: Vec<&str> = nodes.iter().map(|node| node["name"].as_str().unwrap()).collect();
    let ends = ["START"].iter().chain(&names).zip(names.iter().chain(&["END"]));
    let edges: Vec<Value> = ends.map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"format": "graph/1", "nodes": nodes, "edges": edges})
}

async fn given(nodes: &[Value], training: Value) -> Given {
    let graph = graph(nodes);
    let mut problems = Vec::new();
    let mut whole = json!({"dataset": {"cases": [{"inputs": {}}, {"inputs": {}}]}, "optimizer": {},
        "evaluators": [{"id": "e", "entrypoint": "builtin:exact_match"}]});
    whole.as_object_mut().unwrap().extend(training.as_object().unwrap().clone());
    let request = read_training(&whole, "/training", &mut problems).unwrap_or_else(|| panic!("{problems:?}"));
    let DatasetSource::Inline(cases) = request.workload.dataset.clone() else { panic!("inline") };
    let judges = request.workload.evaluators.iter().flat_map(|evaluator| evaluator.workflows());
    let named = references(&graph).into_iter().chain(judges).collect();
    let resolution = resolve(named, &Mailer, &mut problems).await.unwrap();
    assert_eq!(problems, []);
    let plan = engine::check(&graph).unwrap_or_else(|problems| panic!("{problems:?}"));
    let config = json!({"prompts": {"style": {"text": "Be brief.", "requires_grad": true}}});
    Given { graph, plan, config: config.as_object().unwrap().clone(), request, cases, resolution }
}

impl Given {
    fn start(&self) -> Start<'_> {
        Start {
            graph: &self.graph,
            graph_at: "/graph_config",
            plan: &self.plan,
            config: &self.config,
            workload: &self.request.workload,
            workload_at: "/training",
            cases: &self.cases,
            resolution: &self.resolution,
        }
    }

    fn effects(&self) -> (Vec<String>, Vec<&'static str>) {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        self.start().check_effects(&mut problems, &mut warnings);
        (named(&problems), codes(&warnings))
    }

    fn judge_and_optimizer(&self) -> [Value; 2] {
        let mut nothing = (Vec::new(), Vec::new());
        let trainable = trainable_prompts(&self.plan, &self.config, "", &mut nothing.0, &mut nothing.1);
        let models = self.start().default_models(&trainable);
        [models.judge.into(), models.optimizer.into()]
    }
}

pub(crate) fn named(problems: &[FieldError]) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
}

fn codes(warnings: &[Warning]) -> Vec<&'static str> {
    warnings.iter().map(|warning| warning.code).collect()
}

fn post() -> Value {
    json!({"name": "post", "type": "http_request", "method": "POST", "url": "https://example.com"})
}

#[tokio::test]
async fn sending_nodes_are_rejected_unless_every_case_has_a_result_for_them() {
    let refused = (vec!["/graph_config/nodes/0 outbound_node".to_owned()], vec![]);
    let mocked = |mocks: Value| json!({"inputs": {}, "metadata": {"mocks": mocks}});
    let with = |cases: Value| json!({"dataset": {"cases": cases}});
    for (training, expected) in [
        (json!({}), refused.clone()),
        (json!({"mocks": {"post": {"status": 200}}}), (vec![], vec![])),
        (json!({"mocks": {"other": 1}}), refused.clone()),
        (with(json!([mocked(json!({"post": 1})), mocked(json!({"post": 2}))])), (vec![], vec![])),
        (with(json!([mocked(json!({"post": 1})), mocked(json!({}))])), refused.clone()),
        (json!({"effects": "run"}), (vec![], vec![])),
    ] {
        assert_eq!(given(&[post()], training.clone()).await.effects(), expected, "{training}");
    }
    let feed = json!({"name": "feed", "type": "rss_read", "url": "https://example.com/feed"});
    assert_eq!(given(&[feed], json!({})).await.effects(), (vec![], vec!["reads_outside"]));
}

#[tokio::test]
async fn an_evaluator_workflow_may_not_send_either() {
    let judge = json!({"evaluators": [{"id": "e", "entrypoint": "workflow:mailer"}], "mocks": {"send": 1}});
    let given = given(&[llm("a", "x")], judge).await;
    assert_eq!(given.effects(), (vec!["/training/evaluators/0/entrypoint outbound_node".into()], vec![]));
}

#[tokio::test]
async fn prompts_of_other_workflows_are_not_trained_and_have_a_warning() {
    let nodes = [
        json!({"name": "mail", "type": "sub_workflow", "workflow": "mailer", "inputs": {}}),
        llm("a", "{{ config.prompts.style.text }}"),
    ];
    let given = given(&nodes, json!({})).await;
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let trainable = given.start().trainable(&mut problems, &mut warnings);
    assert_eq!((trainable.len(), named(&problems)), (1, vec![]));
    assert_eq!(codes(&warnings), ["prompts_in_subworkflow"]);
}

#[tokio::test]
async fn the_model_of_the_first_node_that_reads_a_trained_prompt_judges() {
    let node = |name: &str, model: &str, user: &str| json!({"name": name, "type": "llm", "model": model, "user": user});
    let reading = "{{ config.prompts.style.text }}";
    let openai = json!({"model": "openai/b"});
    let nodes = [node("a", "openai/a", "x"), node("b", "openai/b", reading), node("c", "openai/c", reading)];
    assert_eq!(given(&nodes, json!({})).await.judge_and_optimizer(), [openai.clone(), openai]);
    let practice = [json!({"model": "practice/judge"}), json!({"model": "practice/reflect"})];
    assert_eq!(
        given(&[node("a", "practice/reply", reading)], json!({})).await.judge_and_optimizer(),
        practice
    );
    // A template reads the prompt for a model that does not.
    let template = json!({"name": "t", "type": "template", "template": reading});
    let nodes = [template, node("a", "openai/a", "{{ results.t }}")];
    let found = given(&nodes, json!({})).await.judge_and_optimizer();
    assert_eq!(found[0], json!({"model": "openai/a"}));
    let body = json!({"type": "llm", "model": "openai/d", "user": reading});
    let each = json!({"name": "each", "type": "for_each", "items": [1], "body": body});
    assert_eq!(given(&[each], json!({})).await.judge_and_optimizer()[0], json!({"model": "openai/d"}));
}

#[tokio::test]
async fn a_judge_without_a_model_is_rejected() {
    let judge = json!({"evaluators": [{"id": "a", "entrypoint": "builtin:exact_match"},
        {"id": "b", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x"}}]});
    let given = given(&[json!({"name": "t", "type": "template", "template": "x"})], judge).await;
    let mut problems = Vec::new();
    given.start().check_judges(&Map::new(), &mut problems);
    assert_eq!(named(&problems), ["/training/evaluators/1/config/model model"]);
}

#[tokio::test]
async fn calls_are_counted_before_the_first_one() {
    let cases: Vec<Value> = (0..20).map(|n| json!({"inputs": {"n": n}})).collect();
    let training = json!({"dataset": {"cases": cases}, "optimizer": {"epochs": 2, "repeats": 2},
        "evaluators": [{"id": "e", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x", "samples": 3}}]});
    let given = given(&[llm("a", "{{ config.prompts.style.text }}")], training).await;
    let (start, optimizer) = (given.start(), &given.request.optimizer);
    let evaluation = start.estimate_evaluation(&optimizer.settings, &no_models());
    assert_eq!((evaluation.cases, evaluation.llm_calls), (CallRange::exactly(40), CallRange::exactly(160)));
    let splits = split(&given.cases, optimizer.split_settings(), &kernel::Counter::new(0));
    let estimate = start.estimate_training(optimizer, &splits, &[], &no_models());
    // 10 proposals with 4 cases each, all 20 cases for both. A model judges, so the headroom test runs twice.
    let cases = [24, 32 + 10 * (4 + 10) + 60, 32 + 10 * (4 + 20) + 80];
    assert_eq!(
        estimate.cases,
        CallRange { min: 2 * cases[0], expected: 2 * cases[1], max: Some(2 * cases[2]) }
    );
    let calls = [4 * 48, 4 * 2 * cases[1] + 10 * 3, 4 * 2 * cases[2] + 10 * 6];
    assert_eq!(estimate.llm_calls, CallRange { min: calls[0], expected: calls[1], max: Some(calls[2]) });
}

#[tokio::test]
async fn a_budget_below_one_proposal_is_rejected_with_the_minimum() {
    let cases: Vec<Value> = (0..20).map(|n| json!({"inputs": {"n": n}})).collect();
    let mut refused = Vec::new();
    // 12 cases each with the seed and a candidate, 4 for training, their critiques and a proposal; a quarter is
    // reserved.
    for limit in [42, 43] {
        let training =
            json!({"dataset": {"cases": cases}, "optimizer": {"budget": {"max_llm_calls": limit}}});
        let given = given(&[llm("a", "{{ config.prompts.style.text }}")], training).await;
        let optimizer = &given.request.optimizer;
        let splits = split(&given.cases, optimizer.split_settings(), &kernel::Counter::new(0));
        let mut problems = Vec::new();
        given.start().check_budget(
            optimizer,
            &splits,
            &[],
            &no_models(),
            "/training/optimizer/budget",
            &mut problems,
        );
        refused.push(problems);
    }
    assert_eq!(named(&refused[0]), ["/training/optimizer/budget/max_llm_calls budget_pointless"]);
    assert!(refused[0][0].message.contains("the smallest useful budget is 43"), "{}", refused[0][0].message);
    assert_eq!(refused[1], []);
}

#[tokio::test]
async fn each_too_small_budget_limit_is_rejected_with_its_minimum() {
    let cases: Vec<Value> = (0..40).map(|n| json!({"inputs": {"n": n}})).collect();
    let node = json!({"name": "a", "type": "llm", "model": "openai/gpt-4.1-mini", "max_tokens": 20,
        "system": "x".repeat(400), "user": "{{ config.prompts.style.text }}"});
    let optimizer_model = json!({"model": "openai/gpt-4.1-mini"});
    let models = AskedModels { optimizer: optimizer_model.as_object().unwrap(), ..no_models() };
    let refused = async |name: &str, limit: Value| {
        let training = json!({"dataset": {"cases": cases},
            "optimizer": {"name": "gepa", "minibatch_size": 6, "budget": {name: limit}}});
        let given = given(std::slice::from_ref(&node), training).await;
        let optimizer = &given.request.optimizer;
        let splits = split(&given.cases, optimizer.split_settings(), &kernel::Counter::new(0));
        let trainable = given.start().trainable(&mut Vec::new(), &mut Vec::new());
        let mut problems = Vec::new();
        given.start().check_budget(optimizer, &splits, &trainable, &models, "/budget", &mut problems);
        problems
    };
    for (name, limit) in [("max_tokens", json!(1)), ("max_cost", json!(1e-6)), ("max_seconds", json!(0.01))] {
        let problems = refused(name, limit).await;
        assert_eq!(named(&problems), [format!("/budget/{name} budget_pointless")]);
        let message = &problems[0].message;
        assert!(message.contains("the seed on 12 cases, one proposal and its race"), "{message}");
        let least: f64 = message.rsplit(' ').next().unwrap().parse().unwrap();
        let least_limit = if name == "max_tokens" {
            // 30 cases with 409 bytes and a token each, a proposal, the smallest reserved answer; a tenth is
            // reserved.
            assert_eq!(message.rsplit(' ').next(), Some("1757"), "{message}");
            json!(1_757)
        } else {
            json!(least)
        };
        assert_eq!(refused(name, least_limit).await, [], "{message}");
        assert_eq!(problems[0].suggestion, Some(format!("\"{name}\": {least}")));
        let less = if name == "max_tokens" { json!(1_756) } else { json!(least * 0.8) };
        assert_eq!(refused(name, less).await.len(), 1, "{message}");
    }
}

#[tokio::test]
async fn an_estimate_contains_tokens_cost_and_time() {
    let cases: Vec<Value> = (0..40).map(|n| json!({"inputs": {"text": "12345678", "n": n}})).collect();
    let estimate = async |model: &str| {
        let node = json!({"name": "a", "type": "llm", "model": model, "max_tokens": 20, "user": "Sort {{ inputs.text }}."});
        let judge = json!([{"id": "e", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x"}}]);
        let training = json!({"dataset": {"cases": cases}, "evaluators": judge});
        let given = given(&[node], training).await;
        let judge_model = json!({"model": model});
        let models =
            AskedModels { evaluators: &judge, judge: judge_model.as_object().unwrap(), ..no_models() };
        given.start().estimate_evaluation(&given.request.optimizer.settings, &models)
    };
    let known = estimate("openai/gpt-4.1-mini").await;
    assert_eq!(known.llm_calls, CallRange::exactly(80));
    // Two seconds per call, four calls at the same time.
    assert!((known.seconds - 40.0).abs() < 1e-9, "{known:?}");
    // A task reads 6 bytes plus 12 from its case, and writes 20 tokens; a judge reads more and writes 128.
    assert!(known.tokens > 40 * (5 + 20 + 250 + 128) && known.tokens < 40 * 500, "{known:?}");
    let list = models::list_price("openai/gpt-4.1-mini").unwrap();
    let written = 40.0 * 148.0;
    let tokens: f64 = known.tokens.to_string().parse().unwrap();
    let cost = ((tokens - written) * list.input + written * list.output) / 1e6;
    assert!((known.cost_usd.unwrap() - cost).abs() < 1e-8, "{known:?}");
    let unpriced = estimate("openai/own").await;
    assert_eq!((unpriced.cost_usd, unpriced.tokens), (None, known.tokens));
}

/// The trainable prompts with `demos_trainable`, which a model's system message reads.
async fn with_demos(optimizer: Value) -> (Given, Vec<training::TrainablePrompt>) {
    let cases: Vec<Value> = (0..40).map(|n| json!({"inputs": {"n": n}})).collect();
    let node = json!({"name": "a", "type": "llm", "model": "test/m", "system": "{{ config.prompts.style.text }}", "user": "x"});
    let training = json!({"dataset": {"cases": cases}, "optimizer": optimizer});
    let mut given = given(&[node], training).await;
    given.config["prompts"]["style"]["demos_trainable"] = json!(true);
    let trainable = given.start().trainable(&mut Vec::new(), &mut Vec::new());
    (given, trainable)
}

#[tokio::test]
async fn fewshot_requires_a_prompt_that_may_get_demos() {
    let (given, mut trainable) = with_demos(json!({"name": "fewshot"})).await;
    let problems = |trainable: &[training::TrainablePrompt], optimizer| {
        let mut problems = Vec::new();
        Start::check_demos(optimizer, trainable, "/runnable_config/prompts", &mut problems);
        named(&problems)
    };
    let optimizer = &given.request.optimizer;
    assert_eq!(problems(&trainable, optimizer), [""; 0]);
    // Without any trainable prompt, no further problem is reported.
    assert_eq!(problems(&[], optimizer), [""; 0]);
    trainable[0].demos_trainable = false;
    assert_eq!(problems(&trainable, optimizer), ["/runnable_config/prompts no_trainable_demos"]);
    let (other, _) = with_demos(json!({"name": "auto"})).await;
    assert_eq!(problems(&trainable, &other.request.optimizer), [""; 0]);
}

#[tokio::test]
async fn fewshot_requests_no_proposals_and_auto_reserves_budget_for_demos() {
    let mut least = Vec::new();
    for (name, demos) in [("fewshot", true), ("gepa", true), ("auto", true), ("auto", false)] {
        let (given, mut trainable) =
            with_demos(json!({"name": name, "minibatch_size": 8, "budget": {"max_llm_calls": 1}})).await;
        trainable[0].demos_trainable = demos;
        let optimizer = &given.request.optimizer;
        let splits = split(&given.cases, optimizer.split_settings(), &kernel::Counter::new(0));
        let mut problems = Vec::new();
        given.start().check_budget(optimizer, &splits, &trainable, &no_models(), "/budget", &mut problems);
        let suggested = problems[0].suggestion.clone().unwrap();
        least.push(suggested.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        if name == "fewshot" {
            let (given, _) = with_demos(json!({"name": name, "minibatch_size": 8})).await;
            let optimizer = &given.request.optimizer;
            let estimate = given.start().estimate_training(optimizer, &splits, &trainable, &no_models());
            assert_eq!(estimate.llm_calls, estimate.cases, "one call a case and none for proposals");
            // 16 scoring cases, 8 sets, at most with all training cases.
            assert_eq!(estimate.cases.max, Some(16 + 8 * (24 + 16) + 4 * 16));
        }
    }
    // 12 + 8 + 12 cases, for demos all 24 training cases; one proposal request, with critiques nine; 25 or 45 % are
    // reserved.
    assert_eq!(least, [63, 43, 102, 54]);
}

#[tokio::test]
async fn a_cost_penalty_requires_only_prices_of_models_called_by_cases() {
    let priced = json!({"name": "a", "type": "llm", "model": "openai/gpt-4.1-mini", "user": "{{ config.prompts.style.text }}"});
    let inside = json!({"name": "b", "type": "sub_workflow", "workflow": "grader", "inputs": {}});
    let by_workflow = json!([{"id": "e", "entrypoint": "workflow:grader"}]);
    let by_model = json!([{"id": "e", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x", "model": "openai/unpriced"}}]);
    for (nodes, evaluators, of_penalty) in [
        (vec![priced.clone()], by_workflow.clone(), false),
        (vec![priced.clone()], by_model, false),
        (vec![priced, inside], by_workflow, true),
    ] {
        let optimizer = json!({"objective": {"cost_penalty": 0.5}, "budget": {"max_cost": 1}});
        let given = given(&nodes, json!({"evaluators": evaluators, "optimizer": optimizer})).await;
        let (optimizer, mut problems) = (&given.request.optimizer, Vec::new());
        let (settings, objective) = (&optimizer.settings, Some(&optimizer.objective));
        given.start().check_prices(settings, objective, &evaluators, &[], "/optimizer", &mut problems);
        let mut expected = vec!["/optimizer/budget/max_cost price_unknown"];
        if of_penalty {
            expected.insert(0, "/optimizer/objective/cost_penalty price_unknown");
        }
        assert_eq!(named(&problems), expected, "{evaluators}");
    }
}
