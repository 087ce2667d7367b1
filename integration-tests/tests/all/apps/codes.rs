//! Error codes that no other test provokes over HTTP.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{AnswerExt, JSON, TestService, until};
use serde_json::json;

use super::{ZIP, app, archive, upload};

const PAGE: (&str, &[u8]) = ("index.html", b"<p>Hi");
/// The signature of a header in an archive's directory.
const CENTRAL: &[u8] = b"PK\x01\x02";
/// The signature of the end record.
const END: &[u8] = b"PK\x05\x06";

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

/// Replaces a value in both headers of `a.js`, or only in the directory's header.
fn changed(mut bytes: Vec<u8>, local: Option<usize>, central: usize, value: &[u8]) -> Vec<u8> {
    let name = b"a.js";
    let first = find(&bytes, name) - 30;
    let last =
        bytes.len() - find(&bytes.iter().rev().copied().collect::<Vec<_>>(), b"sj.a") - name.len() - 46;
    if let Some(local) = local {
        bytes[first + local..][..value.len()].copy_from_slice(value);
    }
    bytes[last + central..][..value.len()].copy_from_slice(value);
    bytes
}

/// Replaces all occurrences of some bytes.
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..][..to.len()].copy_from_slice(to);
        }
    }
    bytes
}

/// An archive whose directory lists the page twice.
fn listed_twice() -> Vec<u8> {
    let bytes = archive(&[PAGE]);
    let (directory, end) = (find(&bytes, CENTRAL), find(&bytes, END));
    let record = &bytes[directory..end];
    let mut twice = [&bytes[..end], record, &bytes[end..]].concat();
    let end = end + record.len();
    let size = u32::try_from(2 * record.len()).unwrap().to_le_bytes();
    twice[end + 8..][..8].copy_from_slice(&[2, 0, 2, 0, size[0], size[1], size[2], size[3]]);
    twice
}

/// An archive with a directory larger than 8 MiB.
fn large_directory() -> Vec<u8> {
    let names: Vec<String> = (0..130).map(|number| format!("{number}.js")).collect();
    let mut files = vec![PAGE];
    files.extend(names.iter().map(|name| (name.as_str(), b"1".as_slice())));
    let bytes = archive(&files);
    let (directory, end) = (find(&bytes, CENTRAL), find(&bytes, END));
    let (mut out, mut at) = (bytes[..directory].to_vec(), directory);
    while at < end {
        let length = 46 + usize::from(bytes[at + 28]);
        let record = &bytes[at..at + length];
        // An extra field of 65,004 bytes.
        out.extend(&record[..30]);
        out.extend(65_004_u16.to_le_bytes());
        out.extend(&record[32..]);
        out.extend([0x42, 0x42]);
        out.extend(65_000_u16.to_le_bytes());
        out.extend([0; 65_000]);
        at += length;
    }
    let size = u32::try_from(out.len() - directory).unwrap().to_le_bytes();
    let mut last = bytes[end..].to_vec();
    last[12..16].copy_from_slice(&size);
    out.extend(last);
    out
}

#[tokio::test]
async fn every_bundle_error_code_is_returned() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let with = |name: &str, content: &[u8]| archive(&[PAGE, (name, content)]);
    let script = || with("a.js", b"run()");
    let page = |text: &str| archive(&[("index.html", text.as_bytes())]);
    let attributes: String = (0..1_001).map(|number| format!(" a{number}")).collect();
    let scripts: String = (0..101).map(|number| format!("<script>{number}</script>")).collect();
    let schema = json!({"schema_version": 1, "bindings": {"ask": {"workflow": "w", "version": 1,
        "access_mode": "anonymous", "input_schema": {"type": "nothing"}}}});
    for (code, bundle) in [
        ("zip_overlap", listed_twice()),
        ("encrypted_entry", changed(script(), Some(6), 8, &[1, 0])),
        ("unsupported_compression", changed(script(), Some(8), 10, &[12, 0])),
        ("crc_mismatch", changed(script(), Some(14), 16, &[1, 2, 3, 4])),
        ("size_mismatch", changed(script(), Some(22), 24, &[6, 0, 0, 0])),
        ("path_too_long", with(&"a".repeat(256), b"1")),
        ("directory_too_large", large_directory()),
        ("name_not_utf8", replaced(script(), b"a.js", b"\xff.js")),
        ("path_collision", archive(&[PAGE, ("a.js", b"1"), ("A.js", b"2")])),
        ("path_not_normalized", {
            // The flag for UTF-8 names.
            let bytes = changed(with("a.js\u{e9}", b"1"), Some(6), 8, &[0, 8]);
            let decomposed = "e\u{301}s\u{e9}";
            replaced(bytes, "a.js\u{e9}".as_bytes(), decomposed.as_bytes())
        }),
        ("symlink", changed(script(), None, 38, &[0, 0, 0xff, 0xa1])),
        ("special_file", changed(script(), None, 38, &[0, 0, 0xa4, 0x11])),
        ("reserved_path", with("__service/a.js", b"1")),
        ("sensitive_file", with(".env", b"KEY=1")),
        ("nested_archive", with("data.bin", b"\x1f\x8b\x08\0\0\0\0\0\0\x03")),
        ("executable", with("start", b"#!/bin/sh\n")),
        ("not_utf8", archive(&[("index.html", b"<p>\xff")])),
        ("html_parse_limit", page(&format!("<p{attributes}>"))),
        ("unsupported_script_type", page("<script type=text/babel>run()</script>")),
        ("external_script", page("<script src=https://example.org/a.js></script>")),
        ("unsupported_element", page("<object></object>")),
        (
            "svg_script",
            with("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>run()</script></svg>"),
        ),
        ("csp_too_large", page(&scripts)),
        ("schema_invalid", with("service.app.json", schema.to_string().as_bytes())),
    ] {
        let answer = upload(&t, "desk", &[ZIP], &bundle).await;
        assert_eq!(answer.refusal(), format!("422 {code}"), "{}", answer.text());
        assert_eq!(answer.value()["detail"]["findings"][0]["code"], code);
    }
}

#[tokio::test]
async fn a_deployment_with_deleted_files_is_stale() {
    let mut t = TestService::with_manual_clock().await;
    let app = t.app("desk").create().await;
    let bundle = t.app("desk").bundle();
    let first = app.deploy(&t, bundle.clone()).await;
    let release = app.publish(&t, &first).await["id"].as_str().unwrap().to_owned();
    // Fifty later deployments, ten later releases, and an hour.
    let mut last = String::new();
    for _ in 0..50 {
        last = app.deploy(&t, bundle.clone()).await;
    }
    for _ in 0..10 {
        app.publish(&t, &last).await;
    }
    t.advance(Duration::from_secs(3_601));
    t.restart().await;
    let at = app.path(&format!("/deployments/{first}"));
    until("the files are deleted", async || t.get(&at).await.value()["available"] == false).await;
    assert_eq!(t.post(&format!("{at}/publish"), "").await.refusal(), "409 deployment_stale");
    let back = json!({"release": release}).to_string();
    assert_eq!(t.post(&app.path("/rollback"), &back).await.refusal(), "409 deployment_stale");
    assert_eq!(t.get(&app.path(&format!("/deployments/{last}"))).await.value()["available"], true);
}

#[tokio::test]
async fn a_collection_is_full_after_64_mib() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE", "0").start().await;
    let all = json!(["read", "create"]);
    let collection = json!({"kind": "shared", "capabilities": {"anonymous": all, "member": all}});
    let app = t.app("desk").manifest(&json!({"collections": {"notes": collection}})).publish().await;
    let origin = format!("http://{}", app.host);
    let headers = [("host", app.host.as_str()), ("origin", origin.as_str()), JSON];
    // 1,040 times 64,536 bytes are more than 64 MiB.
    let body = json!({"data": {"text": "x".repeat(64_525)}}).to_string();
    let create = async || t.open("POST", "/__service/data/notes", &headers, &body).await.whole().await;
    let mut refusals = Vec::new();
    for _ in 0..65 {
        let answers = join_all((0..16).map(|_| create())).await;
        refusals.extend(answers.into_iter().filter(|answer| answer.status != 201));
    }
    assert!(!refusals.is_empty() && refusals.len() < 32, "{}", refusals.len());
    for refusal in refusals {
        assert_eq!(refusal.refusal(), "507 collection_full");
    }
}

#[tokio::test]
async fn an_unreadable_release_is_an_internal_error_without_its_cause() {
    let t = TestService::start().await;
    let id = app(&t, "desk").await["id"].as_str().unwrap().to_owned();
    let mut bindings = serde_json::Map::new();
    bindings.insert("form".to_owned(), json!(7));
    t.execute(&super::runs::release(&id, 1, 1, &bindings, &json!({}))).await;
    let desk = super::runs::Published::existing(&t, "desk", id);
    for path in ["/", "/__service/config", "/__service/data/notes"] {
        let answer = desk.get(path).await;
        assert_eq!(answer.refusal(), "500 internal", "{path}");
        assert!(answer.value()["detail"]["request_id"].is_string(), "{path}");
        assert!(!answer.text().contains("invalid type"), "{}", answer.text());
    }
}
