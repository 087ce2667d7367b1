//! Bindings and collections outside a manifest.

use bundle::declared::{binding, collection};
use bundle::{Code, Finding};
use kernel::SystemClock;

fn read_binding(text: &str) -> Result<wire::AppBinding, Vec<Finding>> {
    binding("ask", text.as_bytes(), &SystemClock::new()).unwrap()
}

fn read_collection(text: &str) -> Result<(String, wire::AppCollection), Vec<Finding>> {
    collection(text.as_bytes(), &SystemClock::new()).unwrap()
}

#[test]
fn a_binding_and_a_collection_are_read() {
    let read = read_binding(r#"{"workflow": "a", "version": 1, "access_mode": "anonymous"}"#).unwrap();
    assert_eq!((read.workflow.as_str(), read.version), ("a", 1));
    let read = read_collection(
        r#"{"name": "likes", "kind": "shared", "capabilities": {"anonymous": ["read"], "member": []}, "schema": {"a": 1}}"#,
    );
    let (name, read) = read.unwrap();
    assert_eq!((name.as_str(), read.schema), ("likes", Some(serde_json::json!({"a": 1}))));
}

/// JSON readers disagree about which of the two counts.
#[test]
fn repeated_members_are_rejected_at_any_depth() {
    let capabilities = r#""capabilities": {"anonymous": [], "member": []}"#;
    for text in [
        format!(r#"{{"name": "a", "name": "b", "kind": "shared", {capabilities}}}"#),
        format!(r#"{{"name": "a", "n\u0061me": "a", "kind": "shared", {capabilities}}}"#),
        format!(r#"{{"name": "a", "kind": "user", "kind": "shared", {capabilities}}}"#),
        format!(r#"{{"name": "a", "kind": "shared", {capabilities}, {capabilities}}}"#),
        r#"{"name": "a", "kind": "shared", "capabilities": {"anonymous": [], "member": [], "member": ["read"]}}"#.to_owned(),
        format!(r#"{{"name": "a", "kind": "shared", {capabilities}, "schema": {{"type": "object", "type": "array"}}}}"#),
        format!(r#"{{"name": "a", "kind": "shared", {capabilities}, "schema": {{"allOf": [{{"a": 1, "a": 1}}]}}}}"#),
    ] {
        let findings = read_collection(&text).unwrap_err();
        assert_eq!((findings.len(), findings[0].code), (1, Code::ManifestInvalid), "{text}");
        assert!(findings[0].detail.ends_with("is repeated."), "{text}: {}", findings[0].detail);
    }
    let twice = r#"{"workflow": "a", "version": 1, "version": 2, "access_mode": "anonymous"}"#;
    assert!(read_binding(twice).unwrap_err()[0].detail.contains("`version` is repeated"));
}
