//! Evaluators that are graph functions, other services or other workflows: their names in requests, and refusals.

use std::collections::BTreeMap;
use std::convert::Infallible;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use training::evaluators::{Evaluator, check_functions, check_workflows, read_evaluators};
use training::{FoundVersion, Resolution, Versions, resolve};
use wire::FieldError;

use crate::preflight::named;

fn read(entrypoint: &str, config: Option<Value>) -> Result<Vec<Evaluator>, Vec<FieldError>> {
    let mut entry = json!({"id": "e", "entrypoint": entrypoint});
    if let Some(config) = config {
        entry["config"] = config;
    }
    let mut problems = Vec::new();
    let read = read_evaluators(&json!([entry]), "", &mut problems);
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

/// The functions of a graph with three modules.
fn known_functions() -> BTreeMap<String, Vec<String>> {
    let functions = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    BTreeMap::from([
        ("metrics.py".to_owned(), functions(&["score", "tone"])),
        ("both.py".to_owned(), functions(&["one"])),
        ("both.js".to_owned(), functions(&["two"])),
    ])
}

fn checked(entrypoint: &str) -> Vec<FieldError> {
    let read = read(entrypoint, None).unwrap();
    let mut problems = Vec::new();
    check_functions(&read[0].functions(), &known_functions(), &mut problems);
    problems
}

#[test]
fn a_function_names_its_module_with_or_without_extension() {
    for entrypoint in ["metrics:score", "metrics.py:tone", "both.js:two", "both.py:one"] {
        assert_eq!(checked(entrypoint), [], "{entrypoint}");
    }
    let read = read("metrics:score", Some(json!({"anything": {"model": "a"}}))).unwrap();
    assert!(read[0].needs_bench() && !read[0].asks_model());
    assert_eq!(read[0].calls(&Resolution::default()).max, Some(0));
    assert_eq!(read[0].model_problem(&Map::new()), None);
}

#[test]
fn a_missing_function_is_rejected_with_the_existing_ones() {
    for (entrypoint, why, near) in [
        ("metrics:scor", "'metrics.py' has no function 'scor'", Some("metrics:score")),
        ("metric:score", "the graph has no module 'metric'", Some("metrics:score")),
        ("os:system", "the graph has no module 'os'", None),
        ("both:one", "the graph has both.js and both.py; write the extension", None),
        ("both.js:one", "'both.js' has no function 'one'", None),
    ] {
        let problems = checked(entrypoint);
        assert_eq!(named(&problems), ["/0/entrypoint evaluator_not_found"], "{entrypoint}");
        let FieldError { message, suggestion, .. } = &problems[0];
        assert!(message.starts_with(why), "{message}");
        for known in ["metrics:score", "metrics:tone", "both.js:two", "exact_match", "workflow:", "http:"] {
            assert!(message.contains(known), "{known}: {message}");
        }
        if let Some(near) = near {
            assert_eq!(suggestion.as_deref(), Some(&*format!("did you mean '{near}'?")));
        }
    }
    let nested = json!({"evaluators": [{"entrypoint": "builtin:json_valid"}, {"entrypoint": "os:system"}]});
    let read = read("builtin:all", Some(nested)).unwrap();
    let mut problems = Vec::new();
    check_functions(&read[0].functions(), &known_functions(), &mut problems);
    assert_eq!(named(&problems), ["/0/config/evaluators/1/entrypoint evaluator_not_found"]);
}

#[test]
fn a_malformed_entrypoint_is_rejected_when_it_is_read() {
    for entrypoint in [
        "score",
        "metrics:",
        ":score",
        "a b:score",
        "../metrics:score",
        "metrics.rb:score",
        "m:a:b",
        "http:",
        "workflow:",
    ] {
        let problems = read(entrypoint, None).unwrap_err();
        assert_eq!(named(&problems), ["/0/entrypoint evaluator_not_found"], "{entrypoint}");
    }
    assert_eq!(named(&read("metrics:score", Some(json!([1]))).unwrap_err()), ["/0/config type"]);
}

#[test]
fn a_service_needs_an_address_and_a_credential() {
    let url = |url: &str| Some(json!({"url": url, "tone": "kind"}));
    let good = read("http:my judge", url("https://judge.example:8443/v1")).unwrap();
    let post = good[0].posts().remove(0);
    let (host, port) = post.place().unwrap();
    assert_eq!(
        (host.to_string(), port, post.credential.as_str()),
        ("judge.example".into(), 8443, "my judge")
    );
    assert_eq!((post.pointer.as_str(), post.url_pointer.as_str()), ("/0/entrypoint", "/0/config/url"));
    assert!(good[0].needs_bench() && !good[0].asks_model());
    for (entrypoint, config, expected) in [
        ("http:judge", None, "/0/config/url required"),
        ("http:judge", Some(json!({"url": 1})), "/0/config/url type"),
        ("http:judge", Some(json!("https://judge.example")), "/0/config type"),
        ("http:judge", url("judge.example"), "/0/config/url url"),
        ("http:judge", url("file:///etc/passwd"), "/0/config/url url"),
        ("http:judge", url("https://user:pass@judge.example"), "/0/config/url url"),
        ("http:2fa", url("https://judge.example"), "/0/entrypoint evaluator_not_found"),
    ] {
        let problems = read(entrypoint, config).unwrap_err();
        assert_eq!(named(&problems), [expected], "{entrypoint}");
        assert!(!problems[0].message.contains("pass@"), "{}", problems[0].message);
    }
}

/// One workflow, which names a missing one.
struct Grader;

#[async_trait]
impl Versions for Grader {
    type Error = Infallible;

    async fn find(&self, workflow: &str, _version: Option<u64>) -> Result<Option<FoundVersion>, Infallible> {
        let inner = json!({"nodes": [{"name": "a", "type": "sub_workflow", "workflow": "gone"}]});
        Ok((workflow == "grader").then(|| FoundVersion {
            id: "grader@1".into(),
            number: Some(1),
            graph: inner,
            config: Map::new(),
        }))
    }
}

#[tokio::test]
async fn a_missing_workflow_is_an_unknown_evaluator() {
    for (entrypoint, expected) in [
        ("workflow:grade", "/0/entrypoint evaluator_not_found"),
        // The evaluator exists, but the workflow that it names does not.
        ("workflow:grader", "/0/entrypoint workflow_not_found"),
    ] {
        let evaluators = read(entrypoint, None).unwrap();
        let mut problems = Vec::new();
        let resolution = resolve(evaluators[0].workflows(), &Grader, &mut problems).await.unwrap();
        check_workflows(&evaluators, &resolution, &mut problems);
        assert_eq!(named(&problems), [expected], "{problems:?}");
    }
}
