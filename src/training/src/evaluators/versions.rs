//! Fixed versions for workflows that judge: `workflow:<handle>@<version>`.

use serde_json::Value;

use super::builtin::WORKFLOW;

/// The workflow that an entrypoint names, and its version as written.
pub(super) fn named(entrypoint: &str) -> Option<(&str, Option<&str>)> {
    let named = entrypoint.strip_prefix(WORKFLOW)?;
    let (workflow, version) = match named.split_once('@') {
        Some((workflow, version)) => (workflow, Some(version)),
        None => (named, None),
    };
    (!workflow.is_empty()).then_some((workflow, version))
}

/// Parses a version number; `None` if it is invalid.
pub(super) fn number(version: &str) -> Option<u32> {
    version.parse().ok().filter(|number| *number > 0 && !version.starts_with('+'))
}

/// The workflows that these evaluators name, including nested ones, each with its fixed version.
#[must_use]
pub fn named_workflows(evaluators: &[Value]) -> Vec<(String, Option<u32>)> {
    let mut found = Vec::new();
    let mut evaluators = evaluators.to_vec();
    each_entrypoint(&mut evaluators, &mut |entrypoint| {
        let (workflow, version) = named(entrypoint)?;
        found.push((workflow.to_owned(), version.and_then(number)));
        None
    });
    found
}

/// Replaces names and versions of workflows that judge. `fixed`: returns a workflow's name and version.
#[must_use]
pub fn with_versions(
    evaluators: &[Value],
    fixed: impl Fn(&str, Option<u32>) -> Option<(String, u32)>,
) -> Vec<Value> {
    let mut evaluators = evaluators.to_vec();
    each_entrypoint(&mut evaluators, &mut |entrypoint| {
        let (workflow, version) = named(entrypoint)?;
        let (workflow, version) = fixed(workflow, version.and_then(number))?;
        Some(format!("{WORKFLOW}{workflow}@{version}"))
    });
    evaluators
}

/// Replaces entrypoints, including those of nested evaluators.
fn each_entrypoint(evaluators: &mut [Value], replaced: &mut dyn FnMut(&str) -> Option<String>) {
    for evaluator in evaluators {
        let Some(members) = evaluator.as_object_mut() else { continue };
        if let Some(new) = members.get("entrypoint").and_then(Value::as_str).and_then(&mut *replaced) {
            members.insert("entrypoint".to_owned(), Value::String(new));
        }
        let is_workflow = |members: &serde_json::Map<String, Value>| {
            members.get("entrypoint").and_then(Value::as_str).is_some_and(|name| named(name).is_some())
        };
        // The config of a judging workflow is opaque.
        if is_workflow(members) {
            continue;
        }
        let inside = members.get_mut("config").and_then(|config| config.get_mut("evaluators"));
        if let Some(inside) = inside.and_then(Value::as_array_mut) {
            each_entrypoint(inside, replaced);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_of_evaluator_workflows_are_pinned_at_any_depth() {
        let judge = |name: &str| json!({"id": "a", "entrypoint": name});
        let evaluators = [
            judge("workflow:strict"),
            judge("workflow:kind@2"),
            judge("builtin:exact_match"),
            json!({"id": "b", "entrypoint": "builtin:all", "config": {"evaluators": [judge("workflow:strict")]}}),
            json!({"id": "c", "entrypoint": "workflow:own", "config": {"evaluators": [judge("workflow:x")]}}),
        ];
        let names = [("strict", None), ("kind", Some(2)), ("strict", None), ("own", None)];
        let names = names.map(|(name, version)| (name.to_owned(), version));
        assert_eq!(named_workflows(&evaluators), names);
        let fixed = |name: &str, version: Option<u32>| Some((name.to_uppercase(), version.unwrap_or(7)));
        let pinned = with_versions(&evaluators, fixed);
        let at = |pointer: &str| json!(pinned).pointer(pointer).cloned().unwrap();
        assert_eq!(at("/0/entrypoint"), "workflow:STRICT@7");
        assert_eq!(at("/1/entrypoint"), "workflow:KIND@2");
        assert_eq!(at("/2/entrypoint"), "builtin:exact_match");
        assert_eq!(at("/3/config/evaluators/0/entrypoint"), "workflow:STRICT@7");
        assert_eq!(at("/4/config/evaluators/0/entrypoint"), "workflow:x");
        assert_eq!(with_versions(&evaluators, |_, _| None), evaluators);
    }

    #[test]
    fn a_version_is_a_positive_number() {
        let versions = [
            ("workflow:a@1", Some(1)),
            ("workflow:a@0", None),
            ("workflow:a@+1", None),
            ("workflow:a@x", None),
        ];
        for (entrypoint, version) in versions {
            assert_eq!(named(entrypoint).unwrap().1.and_then(number), version, "{entrypoint}");
        }
        assert_eq!((named("workflow:"), named("workflow:@1"), named("builtin:a")), (None, None, None));
    }
}
