//! Models at an endpoint that the graph names, with a key from the vault.

use std::sync::Arc;

use kernel::{Clock, Secret, SystemClock};
use models::{EndpointSettings, ModelSettings, Models};
use net::Client;
use practice::Practice;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::{DONE, Endpoint, KEY, says};
use crate::ports::{alone, plan};
use crate::world::{World, outbound, refused};

const OWN: &str = "sk-canary-of-the-graph";
const JSON: &str = "Content-Type: application/json\r\n";

/// The operator's endpoint is `operator`; graphs may call `own`.
fn world(operator: &Arc<Endpoint>, own: &Arc<Endpoint>) -> World {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let openai = EndpointSettings {
        base_url: Some(operator.base()),
        api_key: Some(Secret::from(KEY)),
        ..EndpointSettings::default()
    };
    let settings = ModelSettings { openai, ..ModelSettings::default() };
    let models =
        Models::configured(settings, &Client::operator(Arc::clone(&clock)).unwrap(), &clock).unwrap();
    let mut world = World::new().allowing(own.at).credential("own key", &format!("{OWN}\n"));
    world =
        world.credential("own place", &own.base()).inputs(json!({"place": own.base(), "key": "[[own key]]"}));
    let models = models.with("practice", Arc::new(Practice::new(Arc::clone(&clock))));
    world.models = models.with_endpoints(outbound(&world.allow), clock);
    world
}

fn ask(more: Value) -> Value {
    let mut node =
        json!({"name": "a", "type": "llm", "model": "openai/m", "user": "hi", "retry": {"max_attempts": 1}});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn a_graph_endpoint_uses_its_key_not_the_operators_key() {
    let operator = Endpoint::streaming(&(says("operator") + DONE)).await;
    let own = Endpoint::streaming(&(says("own") + DONE)).await;
    for (more, authorization) in [
        (json!({"base_url": "{{ inputs.place }}", "api_key": "[[own key]]"}), Some(OWN)),
        (json!({"base_url": "[[own place]]", "api_key": "[[own key]]"}), Some(OWN)),
        (json!({"base_url": "[[own place]]"}), None),
    ] {
        let world = world(&operator, &own);
        let done = world.run_outside(&plan(&alone(&ask(more.clone())))).await.unwrap();
        assert_eq!(done["text"], "own", "{more}");
        let sent = own.requests.lock().pop().unwrap();
        match authorization {
            Some(key) => assert!(sent.contains(&format!("authorization: Bearer {key}\r\n")), "{sent}"),
            None => assert!(!sent.contains("authorization"), "{sent}"),
        }
        assert!(!sent.contains(KEY) && !format!("{:?}", world.journal.rows.lock()).contains("canary"));
    }
    assert!(operator.requests.lock().is_empty());
    let world = world(&operator, &own);
    assert_eq!(world.run_outside(&plan(&alone(&ask(json!({}))))).await.unwrap()["text"], "operator");
}

#[tokio::test]
async fn a_key_in_a_streamed_answer_is_masked() {
    let operator = Endpoint::streaming("").await;
    let (first, second) = OWN.split_at(9);
    let answer_body =
        says("Authorization: Bearer ") + &says(first) + &says(second) + &says(" was sent.") + DONE;
    let own = Endpoint::streaming(&answer_body).await;
    let world = world(&operator, &own);
    let node = ask(json!({"base_url": "[[own place]]", "api_key": "[[own key]]", "stream": true}));
    let done = world.run_outside(&plan(&alone(&node))).await.unwrap();
    assert_eq!(done["text"], "Authorization: Bearer [redacted] was sent.");
    assert_eq!(world.sink.text(), "Authorization: Bearer [redacted] was sent.");
}

#[tokio::test]
async fn every_model_node_accepts_an_endpoint() {
    let operator = Endpoint::streaming("").await;
    let chat =
        |content: &str| json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]});
    let at = json!({"base_url": "[[own place]]", "api_key": "[[own key]]"});
    for (node, answer_body, pointer, result) in [
        (json!({"type": "agent", "user": "hi"}), chat("done"), "/text", json!("done")),
        (
            json!({"type": "classify", "input": "x", "labels": ["a", "b"]}),
            chat(r#"{"label": "b", "reason": ""}"#),
            "/label",
            json!("b"),
        ),
        (
            json!({"type": "extract", "input": "x", "schema": {"type": "object", "required": ["n"]}}),
            chat(r#"{"n": 1}"#),
            "/data/n",
            json!(1),
        ),
        (
            json!({"type": "judge", "output": "x", "criteria": "y"}),
            chat(r#"{"score": 1.0, "reasoning": "", "feedback": ""}"#),
            "/score",
            json!(1.0),
        ),
        (
            json!({"type": "embed", "input": "x"}),
            json!({"data": [{"index": 0, "embedding": [0.5]}]}),
            "/vector",
            json!([0.5]),
        ),
    ] {
        let own = Endpoint::answering(200, JSON, &answer_body.to_string()).await;
        let mut node = node;
        let members = node.as_object_mut().unwrap();
        members.extend(json!({"name": "a", "model": "openai/m"}).as_object().unwrap().clone());
        members.extend(at.as_object().unwrap().clone());
        let world = world(&operator, &own);
        let done = world.run_outside(&plan(&alone(&node))).await.unwrap();
        assert_eq!(done.pointer(pointer), Some(&result), "{node}: {done}");
        let sent = own.requests.lock()[0].clone();
        assert!(sent.contains(&format!("Bearer {OWN}\r\n")), "{sent}");
        assert!(!format!("{:?}", world.journal.rows.lock()).contains("canary"), "{node}");
    }
    assert!(operator.requests.lock().is_empty());
}

#[tokio::test]
async fn errors_of_an_endpoint_never_contain_the_key() {
    let operator = Endpoint::streaming("").await;
    let refusing =
        Endpoint::answering(401, JSON, &format!(r#"{{"error": {{"message": "bad key {OWN}"}}}}"#)).await;
    let run = async |more: Value| {
        let world = world(&operator, &refusing);
        let error = world.run_outside(&plan(&alone(&ask(more)))).await.unwrap_err();
        assert!(!error.message.contains("canary"), "{error}");
        error
    };
    let key = json!("[[own key]]");
    let error = run(json!({"base_url": "[[own place]]", "api_key": key})).await;
    assert!(error.code == ErrorCode::ModelRejected && error.message.ends_with("bad key ***"), "{error}");
    // Forbidden addresses are refused, even the operator's own endpoint.
    for base in [operator.base(), "http://169.254.169.254/v1".to_owned()] {
        let error = run(json!({"base_url": base, "api_key": key})).await;
        assert_eq!(error.code, ErrorCode::EgressRefused, "{error}");
    }
    // A template without a result must not send the key elsewhere.
    for base in ["{{ inputs.nowhere | default(none) }}", "{{ '' }}", "{{ 7 }}"] {
        let error = run(json!({"base_url": base, "api_key": key})).await;
        assert!(error.code == ErrorCode::NodeFailed && error.message.starts_with("'base_url' "), "{error}");
    }
    let error = run(json!({"base_url": "{{ 'not an address' }}", "api_key": key})).await;
    assert_eq!(error.code, ErrorCode::ModelNotConfigured);
    let error = run(json!({"model": "{{ 'practice/reply' }}", "api_key": key})).await;
    assert!(
        error.code == ErrorCode::ModelNotConfigured && error.message.contains("practice/<model>"),
        "{error}"
    );
    let error = run(json!({"api_key": "[[nobody]]"})).await;
    assert_eq!(error.code, ErrorCode::CredentialMissing);
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({"api_key": "[[k]]"}), vec![]),
        (json!({"api_key": "sk-plain"}), vec!["/api_key secret"]),
        (json!({"api_key": "{{ inputs.key }}"}), vec!["/api_key secret"]),
        (json!({"model": "practice/reply", "api_key": "[[k]]"}), vec!["/model model"]),
        (json!({"base_url": 7}), vec!["/base_url type"]),
        (json!({"credential": "k"}), vec!["/credential unknown_field"]),
    ] {
        assert_eq!(refused(&ask(more.clone())), problems, "{more}");
    }
}
