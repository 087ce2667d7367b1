//! Each limit for documents and the manifest: just below it, at it and just above it.

use bundle::Code;

use crate::build::{Zip, refused};

fn around(limit: usize, above: Code, build: impl Fn(usize) -> Vec<u8>) {
    let codes = [limit - 1, limit, limit + 1].map(|count| refused(&build(count)).first().map(|one| one.code));
    assert_eq!(codes, [None, None, Some(above)], "{} at {limit}", above.as_str());
}

fn page(body: impl AsRef<[u8]>) -> Vec<u8> {
    Zip::default().file("index.html", body).bytes()
}

#[test]
fn the_size_of_a_document_has_a_limit() {
    around(5 * 1024 * 1024, Code::HtmlParseLimit, |size| page(vec![b' '; size]));
    around(5 * 1024 * 1024, Code::HtmlParseLimit, |size| {
        Zip::app().file("a.svg", format!("<svg>{}</svg>", " ".repeat(size - 11))).bytes()
    });
}

#[test]
fn the_depth_of_a_document_has_a_limit() {
    // Includes `<html>` and `<body>`.
    around(512, Code::HtmlParseLimit, |depth| page("<div>".repeat(depth - 2)));
    around(512, Code::HtmlParseLimit, |depth| {
        Zip::app().file("a.xml", "<a>".repeat(depth) + &"</a>".repeat(depth)).bytes()
    });
}

#[test]
fn the_attributes_of_a_tag_have_a_limit() {
    let attributes = |count: usize| (0..count).map(|number| format!(" a{number}=''")).collect::<String>();
    around(1_000, Code::HtmlParseLimit, |count| page(format!("<p{}>", attributes(count))));
    around(1_000, Code::HtmlParseLimit, |count| {
        Zip::app().file("a.svg", format!("<svg{}/>", attributes(count))).bytes()
    });
}

#[test]
fn the_elements_of_a_document_have_a_limit() {
    // Includes `<html>`, `<head>` and `<body>`.
    around(500_000, Code::HtmlParseLimit, |count| page("<br>".repeat(count - 3)));
}

#[test]
fn the_scripts_of_a_document_have_limits() {
    around(1_000, Code::HtmlParseLimit, |count| page("<script>x</script>".repeat(count)));
    around(100, Code::CspTooLarge, |count| {
        page((0..count).map(|number| format!("<script>{number}</script>")).collect::<String>())
    });
}

#[test]
fn the_manifest_and_its_parts_have_limits() {
    let with = |manifest: String| Zip::app().file("service.app.json", manifest).bytes();
    let empty = r#"{"schema_version": 1, "bindings": {}}"#;
    around(256 * 1024, Code::ManifestInvalid, |size| {
        with(format!("{empty}{}", " ".repeat(size - empty.len())))
    });
    let named = |count: usize, value: &str| {
        (0..count).map(|number| format!("\"{number}\": {value}")).collect::<Vec<_>>().join(",")
    };
    let binding = r#"{"workflow": "a", "version": 1, "access_mode": "anonymous"}"#;
    around(100, Code::ManifestInvalid, |count| {
        with(format!("{{\"schema_version\": 1, \"bindings\": {{{}}}}}", named(count, binding)))
    });
    let collection = r#"{"kind": "shared", "capabilities": {"anonymous": [], "member": []}}"#;
    around(32, Code::ManifestInvalid, |count| {
        let collections = named(count, collection);
        with(format!("{{\"schema_version\": 1, \"bindings\": {{}}, \"collections\": {{{collections}}}}}"))
    });
    around(64 * 1024, Code::SchemaInvalid, |size| {
        let schema = format!("{{\"const\":\"{}\"}}", "x".repeat(size - 12));
        let binding = binding.replace('}', &format!(", \"input_schema\": {schema}}}"));
        with(format!("{{\"schema_version\": 1, \"bindings\": {{\"a\": {binding}}}}}"))
    });
    around(64, Code::ManifestInvalid, |length| {
        with(format!("{{\"schema_version\": 1, \"bindings\": {{\"{}\": {binding}}}}}", "a".repeat(length)))
    });
    around(32, Code::ManifestInvalid, |depth| {
        let schema = format!("{{\"const\": {}{}}}", "[".repeat(depth - 4), "]".repeat(depth - 4));
        let binding = binding.replace('}', &format!(", \"input_schema\": {schema}}}"));
        with(format!("{{\"schema_version\": 1, \"bindings\": {{\"a\": {binding}}}}}"))
    });
}
