//! Refused and accepted manifests.

use bundle::Code;
use serde_json::{Value, json};
use wire::{BindingAccess, BindingLimits, CollectionKind, CollectionVerb};

use crate::build::{Zip, accepted, refused};
use crate::documents::{ticking, ticking_for};
use crate::hostile::{Row, all_are_refused, row};

fn with(manifest: impl AsRef<[u8]>) -> Vec<u8> {
    Zip::app().file("service.app.json", manifest).bytes()
}

/// A manifest with all members, changed at a pointer.
fn changed(pointer: &str, value: Value) -> Value {
    let mut manifest = json!({
        "schema_version": 1,
        "bindings": {"ask": {
            "workflow": "support-desk", "version": 3, "access_mode": "anonymous",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string", "pattern": "^[a-z]+$"}}},
            "output_projection": {"fields": ["answer"]}, "visitor_can_read_output": true,
            "limits": {"timeout_seconds": 10},
        }},
        "collections": {"likes": {"kind": "shared", "capabilities": {"anonymous": ["read"], "member": ["read", "create"]},
            "schema": {"type": "object"}}},
        "spa": true, "csp": {"frame_ancestors": ["https://a.example:8443"]},
    });
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = manifest.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(members), Value::Null) => drop(members.remove(name)),
        (Value::Object(members), value) => drop(members.insert(name.to_owned(), value)),
        _ => unreachable!("{pointer}"),
    }
    manifest
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = texts();
    rows.extend(members().into_iter().map(|(pointer, value)| {
        let what = format!("manifest {pointer} {}", value.to_string().chars().take(60).collect::<String>());
        row(what, Code::ManifestInvalid, with(changed(pointer, value).to_string()))
    }));
    rows.extend(schemas().into_iter().enumerate().map(|(number, schema)| {
        let pointer =
            if number % 2 == 0 { "/bindings/ask/input_schema" } else { "/collections/likes/schema" };
        row(format!("schema {number}"), Code::SchemaInvalid, with(changed(pointer, schema).to_string()))
    }));
    rows
}

fn texts() -> Vec<Row> {
    let deep = format!("{{\"schema_version\":1,\"bindings\":{}{}}}", "[".repeat(40), "]".repeat(40));
    let deeper = "[".repeat(100_000);
    let large = format!("{}{}", changed("/spa", json!(false)), " ".repeat(256 * 1024));
    let invalid: [(&str, String); 15] = [
        ("no text", String::new()),
        ("no JSON", "bindings: {}".to_owned()),
        ("a comment", "{} // x".to_owned()),
        ("a comma at the end", "{\"schema_version\": 1, \"bindings\": {},}".to_owned()),
        ("two values", "{} {}".to_owned()),
        ("a list", "[]".to_owned()),
        ("null", "null".to_owned()),
        ("no members", "{}".to_owned()),
        ("a repeated member", "{\"schema_version\": 1, \"schema_version\": 1, \"bindings\": {}}".to_owned()),
        (
            "a repeated binding",
            "{\"schema_version\": 1, \"bindings\": {\"a\": {}, \"\\u0061\": {}}}".to_owned(),
        ),
        ("40 levels", deep),
        ("100,000 levels", deeper),
        ("more than 256 KiB", large),
        ("a byte order mark", format!("\u{feff}{}", changed("/spa", json!(false)))),
        ("a number too large", "{\"schema_version\": 1e999, \"bindings\": {}}".to_owned()),
    ];
    let mut rows: Vec<Row> = invalid
        .into_iter()
        .map(|(what, text)| row(format!("manifest: {what}"), Code::ManifestInvalid, with(text)))
        .collect();
    rows.push(row(
        "a manifest in Latin-1",
        Code::NotUtf8,
        with(b"{\"schema_version\": 1, \"bindings\": {}, \"\xe9\": 1}"),
    ));
    rows
}

fn members() -> Vec<(&'static str, Value)> {
    let binding = json!({"workflow": "a", "version": 1, "access_mode": "anonymous"});
    let many: Value = (0..101)
        .map(|number| (number.to_string(), binding.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let collection = json!({"kind": "shared", "capabilities": {"anonymous": [], "member": []}});
    let collections: Value = (0..33)
        .map(|number| (number.to_string(), collection.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let fields: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let origins: Vec<String> = (0..11).map(|number| format!("https://{number}.example")).collect();
    vec![
        ("/schema_version", Value::Null),
        ("/schema_version", json!(2)),
        ("/schema_version", json!(0)),
        ("/schema_version", json!("1")),
        ("/schema_version", json!(1.5)),
        ("/bindings", Value::Null),
        ("/bindings", json!([])),
        ("/bindings", many),
        ("/other", json!(1)),
        ("/spa", json!("yes")),
        ("/csp", json!([])),
        ("/csp", json!({})),
        ("/csp/other", json!(1)),
        ("/csp/frame_ancestors", json!("https://a.example")),
        ("/csp/frame_ancestors", json!([1])),
        ("/csp/frame_ancestors", json!(origins)),
        ("/csp/frame_ancestors", json!(["https://*.example"])),
        ("/csp/frame_ancestors", json!(["http://a.example"])),
        ("/csp/frame_ancestors", json!(["https://a.example/"])),
        ("/csp/frame_ancestors", json!(["https://a.example; script-src *"])),
        ("/csp/frame_ancestors", json!(["https://a.example 'self'"])),
        ("/csp/frame_ancestors", json!(["https://a.example:0"])),
        ("/csp/frame_ancestors", json!(["https://a.example:99999"])),
        ("/csp/frame_ancestors", json!(["https://a.example:+1"])),
        ("/csp/frame_ancestors", json!(["https://"])),
        ("/csp/frame_ancestors", json!(["*"])),
        ("/csp/frame_ancestors", json!(["https://a.example", "https://a.example"])),
        ("/bindings/Ask", binding.clone()),
        ("/bindings/-ask", binding.clone()),
        ("/bindings/a.b", binding),
        ("/bindings/ask", json!(1)),
        ("/bindings/ask/other", json!(1)),
        ("/bindings/ask/workflow", Value::Null),
        ("/bindings/ask/workflow", json!("")),
        ("/bindings/ask/workflow", json!("Support Desk")),
        ("/bindings/ask/workflow", json!(1)),
        ("/bindings/ask/version", Value::Null),
        ("/bindings/ask/version", json!(0)),
        ("/bindings/ask/version", json!(-1)),
        ("/bindings/ask/version", json!(2_147_483_648_u32)),
        ("/bindings/ask/version", json!("1")),
        ("/bindings/ask/access_mode", Value::Null),
        ("/bindings/ask/access_mode", json!("public")),
        ("/bindings/ask/input_schema", json!([])),
        ("/bindings/ask/input_schema", json!(true)),
        ("/bindings/ask/output_projection", json!(["a"])),
        ("/bindings/ask/output_projection", json!({})),
        ("/bindings/ask/output_projection/fields", json!("a")),
        ("/bindings/ask/output_projection/fields", json!([1])),
        ("/bindings/ask/output_projection/fields", json!(["a", "a"])),
        ("/bindings/ask/output_projection/fields", json!([""])),
        ("/bindings/ask/output_projection/fields", json!(["a".repeat(129)])),
        ("/bindings/ask/output_projection/fields", json!(fields)),
        ("/bindings/ask/visitor_can_read_output", json!(1)),
        ("/bindings/ask/limits", json!([])),
        ("/bindings/ask/limits/other", json!(1)),
        ("/bindings/ask/limits/timeout_seconds", json!(0)),
        ("/bindings/ask/limits/timeout_seconds", json!(3601)),
        ("/bindings/ask/limits/output_max_bytes", json!(1_048_577)),
        ("/bindings/ask/limits/max_concurrent", json!(10_001)),
        ("/bindings/ask/limits/per_visitor_per_minute", json!(1_000_001)),
        ("/bindings/ask/limits/per_visitor_per_minute", json!(1.5)),
        ("/collections", json!([])),
        ("/collections", collections),
        ("/collections/Likes", collection),
        ("/collections/likes/other", json!(1)),
        ("/collections/likes/kind", Value::Null),
        ("/collections/likes/kind", json!("private")),
        ("/collections/likes/kind", json!("user")),
        ("/collections/likes/capabilities", Value::Null),
        ("/collections/likes/capabilities/other", json!([])),
        ("/collections/likes/capabilities/member", Value::Null),
        ("/collections/likes/capabilities/member", json!(["write"])),
        ("/collections/likes/capabilities/member", json!(["read", "read"])),
        ("/collections/likes/capabilities/anonymous", json!("read")),
        ("/collections/likes/schema", json!(1)),
    ]
}

fn schemas() -> Vec<Value> {
    let large = json!({"enum": ["x".repeat(64 * 1024)]});
    let patterns: Vec<Value> = (0..33).map(|number| json!({"pattern": format!("^{number}$")})).collect();
    vec![
        json!({"type": "strnig"}),
        json!({"type": "object", "required": "a"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "http://169.254.169.254/"}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"pattern": "("}),
        json!({"pattern": "(a+)+(?!b)"}),
        json!({"pattern": "(a)\\1"}),
        json!({"pattern": "\\p{L}{5000}"}),
        json!({"allOf": patterns}),
        json!({"const": {"allOf": patterns}, "items": {"$ref": "#/const"}}),
        json!({"items": {"$id": "https://example.com/a", "$ref": "#"}}),
        large,
    ]
}

#[test]
fn manifests_that_break_a_rule_are_rejected() {
    all_are_refused(&rows());
}

/// A manifest with `count` bindings, each with a schema of 32 distinct patterns.
fn with_patterns(count: usize) -> Vec<u8> {
    let binding = |number: usize| {
        let patterns: Vec<Value> =
            (0..32).map(|pattern| json!({"pattern": format!("^{number}-{pattern}$")})).collect();
        let binding = json!({"workflow": "a", "version": 1, "access_mode": "anonymous",
            "input_schema": {"allOf": patterns}});
        (format!("{number:03}"), binding)
    };
    let bindings: serde_json::Map<_, _> = (0..count).map(binding).collect();
    with(json!({"schema_version": 1, "bindings": bindings}).to_string())
}

#[test]
fn the_patterns_of_all_schemas_have_a_limit() {
    accepted(&with_patterns(8));
    let findings = refused(&with_patterns(10));
    let found: Vec<_> = findings.iter().map(|one| (one.code, one.detail.as_str())).collect();
    let detail =
        |number| format!("`/bindings/{number}/input_schema` raises the manifest above 256 patterns.");
    assert_eq!(
        found,
        [(Code::SchemaInvalid, detail("008").as_str()), (Code::SchemaInvalid, detail("009").as_str())]
    );
}

#[test]
fn a_manifest_is_read_within_the_deadline_of_the_check() {
    let with_schemas = |seconds| ticking(&with_patterns(8), seconds);
    assert!(matches!(with_schemas(1_000), Ok(bundle::Verdict::Accepted(_))));
    // Just enough time for the earlier stages and for a manifest with other content.
    let empty = with(r#"{"schema_version": 1, "bindings": {}}"#);
    let before = (1..1_000).find(|millis| {
        let time = std::time::Duration::from_millis(50) * *millis;
        !matches!(ticking_for(&empty, time), Err(bundle::CheckError::Overdue))
    });
    let time = std::time::Duration::from_millis(50) * (before.unwrap() + 5);
    assert!(matches!(ticking_for(&with_patterns(8), time), Err(bundle::CheckError::Overdue)));
}

#[test]
fn a_manifest_with_very_many_findings_reports_the_first_ones() {
    // 20,000 unknown members, and a name that each pointer would repeat.
    let members: String = (0..20_000).map(|number| format!("\"{number}\":\n0,")).collect();
    let findings = refused(&with(format!("{{{members}\"schema_version\": 1, \"bindings\": {{}}}}")));
    assert_eq!((findings.len(), findings[49].line), (bundle::MAX_FINDINGS, Some(50)));
    let members: String = (0..10_000).map(|number| format!("\"{number}\":0,")).collect();
    let name = "n".repeat(100_000);
    let long = format!("{{\"schema_version\": 1, \"bindings\": {{\"{name}\": {{{members}\"a\": 1}}}}}}");
    assert_eq!(refused(&with(long)).len(), 1);
}

#[test]
fn an_invalid_name_does_not_hide_problems_below_it() {
    let text = r#"{"schema_version": 1, "bindings": {"No Name": {"workflow": "a", "version": 0, "access_mode": "all"}}}"#;
    let details: Vec<_> = refused(&with(text)).into_iter().map(|one| one.detail).collect();
    assert_eq!(
        details,
        [
            "`/bindings/No Name/access_mode` must be one of anonymous, authenticated.",
            "`/bindings/No Name/version` must be an integer from 1 to 2147483647.",
            "`/bindings/No Name` must have a name of 1 to 64 lowercase letters, digits, hyphens and underscores.",
        ]
    );
}

#[test]
fn a_manifest_is_parsed() {
    let bundle = accepted(&with(changed("/spa", json!(true)).to_string()));
    let manifest = bundle.manifest.unwrap();
    let ask = &manifest.bindings["ask"];
    assert_eq!(
        (ask.workflow.as_str(), ask.version, ask.access_mode),
        ("support-desk", 3, BindingAccess::Anonymous)
    );
    assert_eq!(
        (ask.output_projection.fields.as_slice(), ask.visitor_can_read_output),
        (&["answer".to_owned()][..], true)
    );
    assert_eq!(ask.limits, BindingLimits { timeout_seconds: 10, ..BindingLimits::default() });
    assert_eq!(ask.input_schema.as_ref().unwrap()["properties"]["q"]["pattern"], "^[a-z]+$");
    let likes = &manifest.collections.unwrap()["likes"];
    assert_eq!(
        (likes.kind, likes.capabilities.anonymous.as_slice()),
        (CollectionKind::Shared, &[CollectionVerb::Read][..])
    );
    assert_eq!(likes.capabilities.member, [CollectionVerb::Read, CollectionVerb::Create]);
    assert!(manifest.spa);
    assert_eq!(manifest.frame_ancestors, ["https://a.example:8443"]);
}

#[test]
fn members_have_defaults_and_bounds_are_included() {
    let manifest = accepted(&with(r#"{"schema_version": 1, "bindings": {}}"#)).manifest.unwrap();
    assert_eq!((manifest.collections, manifest.spa, manifest.frame_ancestors.len()), (None, false, 0));
    assert!(accepted(&Zip::app().bytes()).manifest.is_none());
    for (pointer, value) in [
        ("/collections", json!({})),
        ("/bindings/ask/version", json!(i32::MAX)),
        ("/bindings/ask/workflow", json!("0190b6a8-7a52-7e6c-9d3b-5f1a2b3c4d5e")),
        ("/bindings/ask/access_mode", json!("authenticated")),
        ("/bindings/ask/limits/timeout_seconds", json!(3600)),
        ("/bindings/ask/limits/output_max_bytes", json!(1_048_576)),
        ("/bindings/ask/output_projection/fields", json!(["a".repeat(128)])),
        ("/bindings/a_b-1", json!({"workflow": "a", "version": 1, "access_mode": "anonymous"})),
        ("/bindings/ask/input_schema", json!({"properties": {"child": {"$ref": "#"}}})),
        (
            "/bindings/ask/input_schema",
            json!({"$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}),
        ),
        ("/csp/frame_ancestors", json!(["https://localhost:1", "https://A-b.example"])),
        (
            "/collections/likes",
            json!({"kind": "user", "capabilities": {"anonymous": [], "member": ["read"]}}),
        ),
    ] {
        accepted(&with(changed(pointer, value).to_string()));
    }
}

#[test]
fn findings_of_a_manifest_have_their_lines() {
    let text = "{\n  \"schema_version\": 1,\n  \"bindings\": {\n    \"ask\": {\n      \"workflow\": \"a\",\n      \"version\": 0\n    }\n  }\n}";
    let found: Vec<_> = refused(&with(text)).into_iter().map(|one| (one.line.unwrap(), one.detail)).collect();
    let expected = [
        (4, "`/bindings/ask` needs the member `access_mode`.".to_owned()),
        (6, "`/bindings/ask/version` must be an integer from 1 to 2147483647.".to_owned()),
    ];
    assert_eq!(found, expected);
    let marked = refused(&with(format!("\u{feff}{}", changed("/spa", json!(false)))));
    assert_eq!(
        (marked[0].line, marked[0].detail.as_str()),
        (Some(1), "The manifest begins with a byte order mark; save it as UTF-8 without one.")
    );
    let repeated = refused(&with("{\n\"schema_version\": 1,\n\"schema_version\": 1}"));
    assert_eq!(
        (repeated[0].line, repeated[0].detail.as_str()),
        (Some(3), "The manifest is not valid JSON: the member `schema_version` is repeated.")
    );
}
