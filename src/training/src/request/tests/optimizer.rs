//! The object `optimizer`.

use serde_json::{Value, json};

use super::{problems, training};
use crate::SplitSettings;
use crate::request::{Optimizer, OptimizerName, Resume, read_training};

/// Reads an optimizer that must have no problems.
fn optimizer(members: &Value) -> Optimizer {
    let mut problems = Vec::new();
    let read = read_training(&training(&json!({"optimizer": members})), "", &mut problems);
    read.unwrap_or_else(|| panic!("{problems:?}")).optimizer
}

/// Asserts the problems, with pointers below the optimizer.
fn assert_problems(members: &Value, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|problem| format!("/optimizer{problem}")).collect();
    let found = problems(read_training, &training(&json!({"optimizer": members})));
    assert_eq!(found, expected, "{members}");
}

#[test]
fn every_field_has_a_default() {
    let filled = optimizer(&json!({})).filled();
    assert_eq!(
        filled,
        json!({
            "name": "textgrad", "epochs": 3, "checkpoint_interval": 1, "case_timeout_seconds": 30, "max_concurrency": 4,
            "seed": 0, "minibatch_size": 4, "repeats": 1, "validation_split": null, "test_split": null, "patience": null,
            "min_delta": 0, "target_score": null, "cache": "run", "guidance": null, "resume": null,
            "objective": {"aggregate": "weighted_mean", "length_penalty": 0, "cost_penalty": 0, "latency_penalty": 0},
            "budget": {"max_llm_calls": null, "max_tokens": null, "max_cost": null, "max_seconds": null},
            "models": {"optimizer": null, "judge": null},
        })
    );
    let nulls: Value = filled.as_object().unwrap().keys().map(|name| (name.clone(), Value::Null)).collect();
    assert_eq!(optimizer(&nulls).filled(), filled);
}

#[test]
fn given_fields_have_precedence() {
    let model = json!({"model": "openai/gpt-4.1-mini", "base_url": "http://127.0.0.1:8000/v1", "credential": "openai key",
        "temperature": 0.5, "prices": {"input": 0.4, "cached": null, "output": 2}});
    let given = json!({
        "name": "gepa", "epochs": 5, "checkpoint_interval": 2, "case_timeout_seconds": 1.5, "max_concurrency": 2,
        "seed": 7, "minibatch_size": 3, "repeats": 2, "validation_split": 0.25, "test_split": 0.2, "patience": 2,
        "min_delta": 0.01, "target_score": 1, "cache": "workflow", "guidance": "Be brief.", "resume": {"config_version": 4},
        "objective": {"aggregate": "min", "length_penalty": 0.1, "cost_penalty": 2, "latency_penalty": 0.5},
        "budget": {"max_llm_calls": 500, "max_tokens": 100_000, "max_cost": 0.1, "max_seconds": 60},
        "models": {"optimizer": model, "judge": {"model": "practice/judge", "base_url": null, "credential": null, "temperature": null, "prices": null}},
    });
    assert_eq!(optimizer(&given).filled(), given);
}

#[test]
fn every_optimizer_is_known_and_has_its_minibatch() {
    for (name, optimizer_name) in OptimizerName::ALL {
        let read = optimizer(&json!({"name": name}));
        assert_eq!((read.name, read.name.as_str()), (optimizer_name, name));
        let minibatch = match name {
            "textgrad" => 4,
            "gepa" => 6,
            _ => 8,
        };
        assert_eq!(read.minibatch_size, minibatch, "{name}");
    }
    let mut problems = Vec::new();
    assert!(
        read_training(&training(&json!({"optimizer": {"name": "textgard"}})), "", &mut problems).is_none()
    );
    assert_eq!(problems[0].suggestion.as_deref(), Some("did you mean 'textgrad'?"));
}

#[test]
fn a_removed_optimizer_is_unknown() {
    for name in ["mipro", "opro", "random"] {
        let mut problems = Vec::new();
        let request = training(&json!({"optimizer": {"name": name}}));
        assert!(read_training(&request, "", &mut problems).is_none(), "{name}");
        let problem = &problems[0];
        assert_eq!(
            (problem.pointer.as_str(), problem.code.as_str(), problem.message.as_str()),
            ("/optimizer/name", "choice", "must be one of textgrad, gepa, fewshot, none, auto")
        );
    }
}

#[test]
fn numbers_have_limits_at_both_ends() {
    let large = 1_u64 << 53;
    for (name, good, bad) in [
        ("epochs", json!([1, 50]), json!([0, 51, 1.5, "3"])),
        ("checkpoint_interval", json!([1, 100]), json!([0, 101])),
        ("case_timeout_seconds", json!([1, 2.5, 300]), json!([0.9, 301, -1, true])),
        ("max_concurrency", json!([1, 8, 9, 1_000_000]), json!([0, -1, 1.5])),
        ("seed", json!([0, large - 1]), json!([-1, large, 0.5])),
        ("minibatch_size", json!([1, 100_000]), json!([0, large])),
        ("repeats", json!([1, 10]), json!([0, 11])),
        ("validation_split", json!([0, 0.9]), json!([-0.1, 0.91])),
        ("test_split", json!([0, 0.5]), json!([-0.1, 0.51])),
        ("patience", json!([1, 100]), json!([0])),
        ("min_delta", json!([0, 1]), json!([-0.1, 1.1])),
        ("target_score", json!([0, 1]), json!([-0.1, 1.1])),
        ("objective/length_penalty", json!([0, 1e9]), json!([-0.1, 1e10])),
        ("objective/cost_penalty", json!([0, 10]), json!([-0.1])),
        ("objective/latency_penalty", json!([0, 10]), json!([-0.1])),
        ("budget/max_llm_calls", json!([1, large - 1]), json!([0, 0.5, -1])),
        ("budget/max_tokens", json!([1, large - 1]), json!([0, -1])),
        ("budget/max_cost", json!([1e-9, 1e9]), json!([0, -1, 1e10, "1"])),
        ("budget/max_seconds", json!([0.001, 86_400]), json!([0, -1])),
    ] {
        let wrapped = |value: &Value| match name.split_once('/') {
            Some((object, member)) => json!({object: {member: value}}),
            None => json!({name: value}),
        };
        for value in good.as_array().unwrap() {
            assert_problems(&wrapped(value), &[]);
        }
        for value in bad.as_array().unwrap() {
            assert_problems(&wrapped(value), &[format!("/{name} range").as_str()]);
        }
    }
}

#[test]
fn other_bad_members_of_an_optimizer_are_named() {
    for (members, expected) in [
        (json!({"name": "adam"}), &["/name choice"][..]),
        (json!({"cache": "always"}), &["/cache choice"]),
        (json!({"epoch": 3}), &["/epoch unknown_field"]),
        (json!({"guidance": ""}), &["/guidance length"]),
        (json!({"guidance": "x".repeat(8_193)}), &["/guidance length"]),
        (json!({"guidance": "x".repeat(8_192)}), &[]),
        (json!({"guidance": 1}), &["/guidance type"]),
        (
            json!({"objective": 1, "budget": [], "models": "x"}),
            &["/objective type", "/budget type", "/models type"],
        ),
        (
            json!({"objective": {"aggregate": "max", "penalty": 1}}),
            &["/objective/aggregate choice", "/objective/penalty unknown_field"],
        ),
        (json!({"budget": {"max_calls": 1}}), &["/budget/max_calls unknown_field"]),
        (json!({"budget": {}}), &[]),
        (json!({"resume": {}}), &["/resume required"]),
        (json!({"resume": "last"}), &["/resume type"]),
        (json!({"resume": {"run_id": "a", "checkpoint_id": "b"}}), &["/resume conflict"]),
        (json!({"resume": {"config_version": 0}}), &["/resume/config_version range"]),
        (json!({"resume": {"run_id": "", "id": 1}}), &["/resume/run_id length", "/resume/id unknown_field"]),
    ] {
        assert_problems(&members, expected);
    }
}

#[test]
fn a_training_resumes_from_exactly_one_source() {
    for (resume, expected) in [
        (json!({"run_id": "r"}), Resume::Run("r".into())),
        (json!({"checkpoint_id": "c", "run_id": null}), Resume::Checkpoint("c".into())),
        (json!({"config_version": 1}), Resume::ConfigVersion(1)),
    ] {
        assert_eq!(optimizer(&json!({"resume": resume})).resume, Some(expected));
    }
}

#[test]
fn bad_models_are_named() {
    let named = |members: Value| {
        let mut model = json!({"model": "openai/x"});
        model.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        model
    };
    for (model, expected) in [
        (json!("openai/x"), &[" type"][..]),
        (json!({}), &["/model required"]),
        (named(json!({"model": 3})), &["/model type"]),
        (named(json!({"model": "gpt-4.1-mini"})), &["/model model"]),
        (named(json!({"model": "openai/"})), &["/model model"]),
        (named(json!({"model": "openai/{{ inputs.model }}"})), &["/model model"]),
        (named(json!({"model": "opnai/x"})), &["/model unknown_provider"]),
        (named(json!({"model": "practice/judge", "credential": "key"})), &["/model model"]),
        (named(json!({"model": "practice/judge", "temperature": 0})), &[]),
        (named(json!({"base_url": "ftp://example.com"})), &["/base_url url"]),
        (named(json!({"base_url": "example.com/v1"})), &["/base_url url"]),
        (named(json!({"base_url": "https://example.com/[[key]]"})), &["/base_url url"]),
        (named(json!({"credential": "[[openai key]]"})), &["/credential format"]),
        (named(json!({"temperature": 2.1})), &["/temperature range"]),
        (named(json!({"temperature": 2, "api_key": "sk"})), &["/api_key unknown_field"]),
        (named(json!({"prices": 1})), &["/prices type"]),
        (
            named(json!({"prices": {"output": -1, "outptu": 1}})),
            &["/prices/input required", "/prices/output range", "/prices/outptu unknown_field"],
        ),
        (named(json!({"prices": {"input": 0, "output": 0}})), &[]),
    ] {
        for role in ["optimizer", "judge"] {
            let expected: Vec<String> =
                expected.iter().map(|problem| format!("/models/{role}{problem}")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_problems(&json!({"models": {role: model}}), &expected);
        }
    }
    assert_problems(&json!({"models": {"judges": 1}}), &["/models/judges unknown_field"]);
}

#[test]
fn a_model_is_used_as_fields_of_a_node() {
    let fields = |model: Value| {
        let models = optimizer(&json!({"models": {"judge": model}})).settings.models;
        json!(models.judge.unwrap().fields())
    };
    assert_eq!(fields(json!({"model": "practice/judge"})), json!({"model": "practice/judge"}));
    let whole = json!({"model": "openai/x", "base_url": "http://127.0.0.1/v1", "credential": "openai key", "temperature": 0,
        "prices": {"input": 1, "output": 2}});
    assert_eq!(
        fields(whole),
        json!({"model": "openai/x", "base_url": "http://127.0.0.1/v1", "api_key": "[[openai key]]", "temperature": 0})
    );
}

#[test]
fn only_textgrad_shares_cases_without_a_validation_split() {
    for (members, shares, validation, test) in [
        (json!({}), true, None, None),
        (json!({"test_split": 0.2}), true, None, Some(0.2)),
        (json!({"validation_split": 0.3}), false, Some(0.3), None),
        (json!({"name": "gepa"}), false, None, None),
        (json!({"name": "none", "validation_split": 0}), false, Some(0.0), None),
    ] {
        let settings = optimizer(&members).split_settings();
        assert_eq!(settings, SplitSettings { shares, validation, test });
    }
}
