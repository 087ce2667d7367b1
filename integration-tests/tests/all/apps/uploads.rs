//! Hostile and unlucky uploads: each is rejected with its code, recorded in the audit trail, and leaves no file.

use integration_tests::{AnswerExt, JSON, TestService, noise, until};
use serde_json::{Value, json};

use super::{PAGE, ZIP, app, archive, deployments, upload, waiting};

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=b");

fn part(name: &str, content: &str) -> String {
    format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
}

/// Reasons for the rejected uploads in the audit trail, newest first.
async fn rejection_reasons(t: &TestService) -> Vec<String> {
    let rows = "SELECT coalesce(string_agg(reason, ' ' ORDER BY id DESC), '') FROM audit_log
        WHERE action = 'app.deploy_refused' AND outcome = 'denied' AND target_kind = 'app'";
    t.scalar(rows).await.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn invalid_bundles_are_rejected_with_their_code() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let page: (&str, &[u8]) = ("index.html", b"<p>Hi");
    let cases: [(Vec<u8>, &str, Value); 6] = [
        (Vec::new(), "not_a_zip", Value::Null),
        (b"no archive".to_vec(), "not_a_zip", Value::Null),
        ([b"x", PAGE.as_bytes()].concat(), "zip_malformed", Value::Null),
        (archive(&[("a.html", b"<p>Hi")]), "index_missing", Value::Null),
        (archive(&[page, ("../a.js", b"1")]), "unsafe_path", json!("../a.js")),
        (
            archive(&[page, ("service.app.json", b"{\"schema_version\": 2}")]),
            "manifest_invalid",
            json!("service.app.json"),
        ),
    ];
    for (bundle, code, path) in &cases {
        let answer = upload(&t, "desk", &[ZIP], bundle).await;
        assert_eq!(answer.refusal(), format!("422 {code}"), "{}", answer.text());
        let findings = answer.value()["detail"]["findings"].clone();
        assert_eq!((&findings[0]["code"], &findings[0]["path"]), (&json!(code), path), "{findings}");
        assert!(findings[0]["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
    let reasons: Vec<&str> = cases.iter().rev().map(|(_, code, _)| *code).collect();
    assert_eq!(rejection_reasons(&t).await, reasons);
    let scripts = archive(&[
        ("index.html", b"<p onclick=a()>\n<a href=javascript:b()>"),
        ("b.html", b"<p onload=c()>"),
    ]);
    let findings = upload(&t, "desk", &[ZIP], &scripts).await.value()["detail"]["findings"].clone();
    let shown: Vec<String> = findings
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            format!("{} {} {}", one["code"].as_str().unwrap(), one["path"].as_str().unwrap(), one["line"])
        })
        .collect();
    assert_eq!(
        shown,
        ["inline_event_handler b.html 1", "inline_event_handler index.html 1", "javascript_url index.html 2"]
    );
    assert_eq!((waiting(&t), t.scalar("SELECT count(*) FROM app_deployments").await), (0, "0".to_owned()));
    assert_eq!(t.scalar("SELECT count(*) FROM blobs").await, "0");
}

#[tokio::test]
async fn the_configured_limits_apply() {
    let t = TestService::builder()
        .set("SERVICE_APPS_MAX_COMPRESSED_BYTES", "1000")
        .set("SERVICE_APPS_MAX_EXPANDED_BYTES", "300")
        .set("SERVICE_APPS_MAX_FILE_BYTES", "200")
        .set("SERVICE_APPS_MAX_FILES", "3")
        .set("SERVICE_APPS_MAX_DEPTH", "2")
        .start()
        .await;
    app(&t, "desk").await;
    let page: (&str, &[u8]) = ("index.html", b"<p>Hi");
    let (at, above): (&[u8], &[u8]) = (&[b'x'; 200], &[b'x'; 201]);
    for (files, code) in [
        (vec![page, ("a/b.js", at)], "201"),
        (vec![page, ("b.js", above)], "422 file_too_large"),
        (vec![page, ("a.js", at), ("b.js", at)], "422 expanded_too_large"),
        (vec![page, ("a.js", b"1"), ("b.js", b"2"), ("c.js", b"3")], "422 too_many_files"),
        (vec![page, ("a/b/c.js", b"1")], "422 path_too_deep"),
    ] {
        assert_eq!(upload(&t, "desk", &[ZIP], &archive(&files)).await.refusal(), code);
    }
    // The archive itself, at the limit and over it: by its declared length, and as it arrives.
    let filled = |size: usize| {
        let page = archive(&[("index.html", b"<p>Hi")]);
        [page.as_slice(), vec![0; size - page.len()].as_slice()].concat()
    };
    assert_eq!(upload(&t, "desk", &[ZIP], &filled(1000)).await.refusal(), "422 zip_malformed");
    let large = upload(&t, "desk", &[ZIP], &filled(1001)).await;
    assert_eq!(large.refusal(), "413 bundle_too_large");
    assert_eq!(large.value()["detail"]["findings"][0]["code"], "bundle_too_large");
    let declared = [ZIP, ("content-length", "1001")];
    let unread = t.raw().await.request("POST", &deployments("desk"), &declared, "").await;
    assert_eq!(unread.whole().await.refusal(), "413 bundle_too_large", "before the body arrives");
    let body = format!("3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1001));
    let mut raw = t.raw().await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/zip\r\nTransfer-Encoding: chunked\r\n\r\n",
        deployments("desk")
    );
    raw.write(format!("{head}{body}")).await;
    assert_eq!(raw.answer().await.whole().await.refusal(), "413 bundle_too_large", "without a length");
    let form = format!("{}--b--\r\n", part("bundle", &"x".repeat(1001)));
    assert_eq!(upload(&t, "desk", &[FORM], form.as_bytes()).await.refusal(), "413 bundle_too_large");
    let padded = format!("{}\r\n{}--b--\r\n", "x".repeat(70_000), part("bundle", PAGE));
    assert_eq!(upload(&t, "desk", &[FORM], padded.as_bytes()).await.refusal(), "413 bundle_too_large");
    assert_eq!(rejection_reasons(&t).await.iter().filter(|reason| *reason == "bundle_too_large").count(), 5);
    assert_eq!(waiting(&t), 0);
}

#[tokio::test]
async fn forms_have_exactly_one_part_and_other_types_are_rejected() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let page = part("bundle", PAGE);
    for (form, code) in [
        (format!("{page}--b--\r\n"), "201"),
        (format!("{page}{page}--b--\r\n"), "422 bundle_part_invalid"),
        (format!("{}{page}--b--\r\n", part("note", "x")), "422 bundle_part_invalid"),
        (format!("{page}{}--b--\r\n", part("note", "x")), "422 bundle_part_invalid"),
        (format!("{}--b--\r\n", part("file", PAGE)), "422 bundle_part_invalid"),
        ("--b--\r\n".to_owned(), "422 bundle_part_invalid"),
        (page.clone(), "422 bundle_part_invalid"),
    ] {
        assert_eq!(upload(&t, "desk", &[FORM], form.as_bytes()).await.refusal(), code, "{form}");
    }
    assert_eq!(rejection_reasons(&t).await, ["bundle_part_invalid"; 6]);
    let page = PAGE.as_bytes();
    for headers in [
        &[JSON][..],
        &[("content-type", "application/octet-stream")],
        &[],
        &[ZIP, ("content-encoding", "gzip")],
        &[ZIP, ("content-encoding", "identity")],
        &[ZIP, ZIP],
    ] {
        let answer = upload(&t, "desk", headers, page).await;
        assert_eq!(answer.refusal(), "415 request.unsupported_media_type", "{headers:?}");
    }
    upload(&t, "desk", &[("content-type", "Application/ZIP; x=1")], page).await.expect(201);
    assert_eq!(waiting(&t), 0);
}

/// The head of an upload that announces this body length.
fn head(length: usize) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/zip\r\nContent-Length: {length}\r\n\r\n",
        deployments("desk")
    )
}

#[tokio::test]
async fn files_of_aborted_uploads_and_of_earlier_processes_are_removed() {
    let mut t = TestService::builder().alone().start().await;
    app(&t, "desk").await;
    let mut raw = t.raw().await;
    raw.write(format!("{}PK", head(1000))).await;
    until("the file", async || waiting(&t) == 1).await;
    drop(raw);
    until("its removal", async || waiting(&t) == 0).await;
    assert_eq!(upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.status, 201, "the permit was returned");
    let left = std::path::Path::new(&t.variables()["SERVICE_DATA_DIR"]).join("uploads/left.zip");
    std::fs::write(&left, "PK").unwrap();
    t.restart().await;
    assert!(!left.exists());
    assert_eq!(upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.status, 201);
}

#[tokio::test]
async fn a_slow_upload_is_rejected_and_does_not_block_others() {
    let t = TestService::builder().alone().manual_clock().start().await;
    app(&t, "desk").await;
    let mut slow = t.raw().await;
    slow.write(format!("{}PK", head(1000))).await;
    until("the file", async || waiting(&t) == 1).await;
    // The clock of the first upload is stopped.
    upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.expect(201);
    assert_eq!(waiting(&t), 1);
    let slow = t.while_time_passes(slow.answer()).await;
    assert_eq!(t.while_time_passes(slow.whole()).await.refusal(), "408 request.timeout");
    until("its removal", async || waiting(&t) == 0).await;
}

#[tokio::test]
async fn a_caller_uploads_at_most_four_archives_concurrently() {
    let t = TestService::builder().alone().manual_clock().start().await;
    app(&t, "desk").await;
    let mut slow = Vec::new();
    for count in 1..=4 {
        let mut raw = t.raw().await;
        raw.write(format!("{}PK", head(3))).await;
        until("the file", async || waiting(&t) == count).await;
        slow.push(raw);
    }
    let fifth = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await;
    assert_eq!(fifth.refusal(), "503 validation_busy", "{}", fifth.text());
    assert_eq!(fifth.header("retry-after"), Some("5"));
    let mut first = slow.remove(0);
    first.write("x").await;
    assert_eq!(first.answer().await.whole().await.refusal(), "422 not_a_zip");
}

#[tokio::test]
async fn announced_archives_take_no_permit_before_bytes_arrive() {
    let t = TestService::builder().alone().start().await;
    app(&t, "desk").await;
    let announced = head(1000).replacen("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1);
    let mut silent = Vec::new();
    for _ in 0..4 {
        let mut raw = t.raw().await;
        raw.write(&announced).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, 100, "the service waits for the body");
        silent.push(answer);
    }
    assert_eq!(waiting(&t), 0);
    upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.expect(201);
}

#[tokio::test]
async fn a_full_workspace_rejects_bundles() {
    let mut t = TestService::builder().alone().set("SERVICE_WORKSPACE_STORAGE_BYTES", "100000").start().await;
    app(&t, "desk").await;
    t.measured().await;
    let data = noise(200_000);
    let bundle = archive(&[("index.html", b"<p>Hi"), ("data.txt", data.as_bytes())]);
    assert_eq!(upload(&t, "desk", &[ZIP], &bundle).await.status, 201);
    // A workspace is full after two measurements over the limit.
    t.measure().await;
    t.measure().await;
    until("the workspace to be full", async || {
        upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.refusal() == "507 workspace.storage_full"
    })
    .await;
    assert_eq!(waiting(&t), 0);
}
