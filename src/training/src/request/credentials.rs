//! Detects requests that use workspace secrets.

use serde_json::Value;

/// Whether evaluators or models in a request (the object `training` or `evaluation`) name a credential. The request
/// then decides where the credential is sent, or what it signs.
#[must_use]
pub fn names_credential(request: &Value) -> bool {
    ["/evaluators", "/models", "/optimizer/models"]
        .into_iter()
        .filter_map(|at| request.pointer(at))
        .any(is_named)
}

fn is_named(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_named),
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            text("credential").is_some()
                || text("entrypoint").is_some_and(|entrypoint| entrypoint.starts_with("http:"))
                || members.values().any(is_named)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_of_models_and_evaluators_are_found_at_any_depth() {
        let judge = json!({"entrypoint": "builtin:llm_judge", "config": {"rubric": "x", "credential": "a"}});
        let service = json!({"entrypoint": "http:a", "config": {"url": "https://judge.example"}});
        let inside = |one: &Value| json!({"entrypoint": "builtin:all", "config": {"evaluators": [one]}});
        for request in [
            json!({"evaluators": [judge]}),
            json!({"evaluators": [service]}),
            json!({"evaluators": [inside(&inside(&service))]}),
            json!({"models": {"judge": {"model": "m", "credential": "a"}}}),
            json!({"optimizer": {"models": {"optimizer": {"model": "m", "credential": "a"}}}}),
        ] {
            assert!(names_credential(&request), "{request}");
        }
        for request in [
            json!({}),
            json!({"evaluators": [{"entrypoint": "metrics:score"}], "optimizer": {"models": {"judge": {"model": "m"}}}}),
            json!({"dataset": {"cases": [{"inputs": {"credential": "a"}}]}}),
        ] {
            assert!(!names_credential(&request), "{request}");
        }
    }
}
