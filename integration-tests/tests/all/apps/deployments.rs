//! Deployments: upload, reads, repeats, retention.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

use super::{PAGE, ZIP, app, archive, deployments, sha256, upload, waiting};

#[tokio::test]
async fn a_bundle_becomes_a_deployment_with_files_and_a_report() {
    let t = TestService::start().await;
    let made = app(&t, "desk").await;
    let workflow = t.workflow().named("Desk").create().await;
    for text in ["two", "three"] {
        let version = json!({"graph": integration_tests::graphs::reply(text)}).to_string();
        t.post(&workflow.path("/versions"), &version).await.expect(201);
    }
    let large = vec![b'x'; 700_000];
    let manifest = json!({
        "schema_version": 1,
        "bindings": {"ask": {"workflow": workflow.handle, "version": 3, "access_mode": "anonymous",
            "input_schema": {"type": "object"}, "output_projection": {"fields": ["answer"]},
            "visitor_can_read_output": true, "limits": {"timeout_seconds": 30}}},
        "collections": {"notes": {"kind": "shared", "capabilities": {"anonymous": ["read"], "member": ["create", "read"]}}},
        "spa": true,
        "csp": {"frame_ancestors": ["https://desk.example.org"]}
    });
    let manifest = manifest.to_string();
    let page = b"<script>1</script><img src=\"https://example.org/a.png\">";
    let bundle = archive(&[
        ("index.html", page),
        ("assets/app.js", &large),
        ("assets/copy.js", &large),
        ("empty.txt", b""),
        ("module.wasm", b"\0asm\x01\0\0\0"),
        (".DS_Store", b"x"),
        ("service.app.json", manifest.as_bytes()),
    ]);
    let deployed = upload(&t, "desk", &[ZIP], &bundle).await.expect(201);
    let record = deployed.value();
    assert_eq!(record["app_id"], made["id"]);
    assert_eq!(record["digest"], sha256(&bundle));
    assert_eq!((&record["size"], &record["file_count"]), (&json!(bundle.len()), &json!(5)));
    assert_eq!(
        (&record["available"], &record["spa"], &record["wasm"], &record["created_by"]),
        (&json!(true), &json!(true), &json!(true), &Value::Null)
    );
    assert_eq!(record["frame_ancestors"], json!(["https://desk.example.org"]));
    let ask = &record["bindings"]["ask"];
    assert_eq!((&ask["version"], &ask["access_mode"]), (&json!(3), &json!("anonymous")));
    assert_eq!(ask["limits"]["timeout_seconds"], 30);
    assert_eq!(ask["limits"]["max_concurrent"], 100);
    assert_eq!(record["collections"]["notes"]["capabilities"]["member"], json!(["read", "create"]));
    let files = record["files"].as_array().unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["assets/app.js", "assets/copy.js", "empty.txt", "index.html", "module.wasm"]);
    assert_eq!(
        files[0],
        json!({"path": "assets/app.js", "size": 700_000, "type": "text/javascript; charset=utf-8", "digest": sha256(&large)})
    );
    assert_eq!(record["report"]["dropped"], json!([".DS_Store"]));
    let notes = record["report"]["notes"].as_array().unwrap();
    let codes: Vec<&str> = notes.iter().map(|note| note["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"external_url") && codes.contains(&"wasm"), "{codes:?}");
    // The content of each file is stored once, complete, and retained while used.
    let stored = "SELECT count(*) FROM app_files f JOIN blobs b ON b.digest = f.digest AND b.size = f.size
        WHERE f.size = (SELECT coalesce(sum(length(bytes)), 0) FROM blob_chunks c WHERE c.digest = f.digest)
            AND f.digest = sha256(coalesce((SELECT string_agg(bytes, ''::bytea ORDER BY number) FROM blob_chunks c
                WHERE c.digest = f.digest), ''::bytea))";
    assert_eq!(t.scalar(stored).await, "5");
    assert_eq!(t.scalar("SELECT count(*) FROM blob_uses WHERE kind = 'app_file'").await, "4");
    let policies = t.scalar("SELECT count(*) FROM app_files WHERE policy LIKE '%wasm-unsafe-eval%'").await;
    assert_eq!(policies, "1");
    assert_eq!(waiting(&t), 0);
    let shown = t.get(&format!("{}/{}", deployments("desk"), record["id"].as_str().unwrap())).await;
    assert_eq!(shown.value(), record);
    let second = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.value();
    assert_eq!((&second["bindings"], &second["collections"]), (&json!({}), &json!({})));
    let page = t.get(&format!("{}?limit=1", deployments("desk"))).await.value();
    let listed = &page["data"][0];
    assert_eq!((&listed["id"], &listed["files"]), (&second["id"], &Value::Null));
    let next = page["next_cursor"].as_str().unwrap();
    let page = t.get(&format!("{}?limit=1&cursor={next}", deployments("desk"))).await.value();
    assert_eq!((&page["data"][0]["id"], &page["next_cursor"]), (&record["id"], &Value::Null));
    // The upload publishes nothing.
    let alias = t.raw().await.request("GET", "/", &[("host", "desk.apps.localhost")], "").await;
    assert_eq!(alias.whole().await.status, 404);
}

#[tokio::test]
async fn a_repeated_upload_returns_the_same_deployment_in_any_encoding() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    let keyed = [ZIP, ("idempotency-key", "one")];
    let first = upload(&t, "desk", &keyed, PAGE.as_bytes()).await.expect(201);
    let again = upload(&t, "desk", &keyed, PAGE.as_bytes()).await;
    assert_eq!((again.status, again.text()), (201, first.text()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let form = format!(
        "--b\r\ncontent-disposition: form-data; name=\"bundle\"; filename=\"a.zip\"\r\n\r\n{PAGE}\r\n--b--\r\n"
    );
    let headers = [("content-type", "multipart/form-data; boundary=b"), ("idempotency-key", "one")];
    let as_form = upload(&t, "desk", &headers, form.as_bytes()).await;
    assert_eq!((as_form.status, as_form.text()), (201, first.text()), "the archive identifies the request");
    let other = archive(&[("index.html", b"<p>Another")]);
    assert_eq!(upload(&t, "desk", &keyed, &other).await.refusal(), "422 idempotency.key_reused");
    let bad = upload(&t, "desk", &[ZIP, ("idempotency-key", "")], PAGE.as_bytes()).await;
    assert_eq!(bad.refusal(), "400 idempotency.key_invalid");
    // A rejection leaves the key free.
    let keyed = [ZIP, ("idempotency-key", "two")];
    assert_eq!(upload(&t, "desk", &keyed, b"no archive").await.refusal(), "422 not_a_zip");
    assert_eq!(upload(&t, "desk", &keyed, PAGE.as_bytes()).await.status, 201);
    assert_eq!(t.scalar("SELECT count(*) FROM app_deployments").await, "2");
    assert_eq!(waiting(&t), 0);
}

#[tokio::test]
async fn parallel_uploads_with_one_key_create_one_deployment() {
    let t = TestService::builder().alone().start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).alone().start().await;
    app(&t, "desk").await;
    let keyed = [ZIP, ("idempotency-key", "one")];
    let uploads = [&t, &other, &t, &other].map(|t| upload(t, "desk", &keyed, PAGE.as_bytes()));
    let answers = futures_util::future::join_all(uploads).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    let ids: std::collections::BTreeSet<String> =
        made.iter().map(|answer| answer.value()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert!(refused.iter().all(|answer| answer.status == 409), "a request with the key is in progress");
    assert_eq!(t.scalar("SELECT count(*) FROM app_deployments").await, "1");
}

#[tokio::test]
async fn another_instance_returns_the_deployment_and_replays_its_upload() {
    let t = TestService::builder().alone().start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).alone().start().await;
    app(&t, "desk").await;
    let keyed = [ZIP, ("idempotency-key", "one")];
    let first = upload(&t, "desk", &keyed, PAGE.as_bytes()).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let id = first.value()["id"].clone();
    let shown = other.get(&format!("{}/{}", deployments("desk"), id.as_str().unwrap())).await;
    assert_eq!(shown.value(), first.value());
    let again = upload(&other, "desk", &keyed, PAGE.as_bytes()).await;
    assert_eq!((again.status, again.text()), (201, first.text()));
    // Both store the same files concurrently.
    let bundle =
        archive(&[("index.html", b"<p>At once"), ("a.js", &[b'a'; 600_000]), ("b.js", &[b'b'; 600_000])]);
    let (one, two) =
        tokio::join!(upload(&t, "desk", &[ZIP], &bundle), upload(&other, "desk", &[ZIP], &bundle));
    assert_eq!((one.status, two.status), (201, 201), "{} {}", one.text(), two.text());
    assert_eq!(t.scalar("SELECT count(*) FROM blob_uses WHERE kind = 'app_file'").await, "7");
}

#[tokio::test]
async fn a_deployment_of_another_app_is_not_found() {
    let t = TestService::start().await;
    app(&t, "desk").await;
    app(&t, "other").await;
    let made = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.value();
    let id = made["id"].as_str().unwrap();
    for (path, code) in [
        (format!("{}/{id}", deployments("other")), "404 deployment_not_found"),
        (format!("{}/latest", deployments("desk")), "404 deployment_not_found"),
        (format!("{}/{id}", deployments("none")), "404 app_not_found"),
        (deployments("none"), "404 app_not_found"),
    ] {
        assert_eq!(t.get(&path).await.refusal(), code, "{path}");
    }
    assert_eq!(upload(&t, "none", &[ZIP], PAGE.as_bytes()).await.refusal(), "404 app_not_found");
    let query = format!("{}?x=1", deployments("desk"));
    let answer = t.anonymous().send("POST", &query, &[ZIP], PAGE).await.unwrap();
    assert_eq!(answer.refusal(), "422 request.invalid");
    t.anonymous().send("DELETE", "/api/apps/desk", &[], "").await.unwrap().expect(204);
    assert_eq!(t.get(&format!("{}/{id}", deployments("desk"))).await.refusal(), "404 app_not_found");
}

#[tokio::test]
async fn the_newest_fifty_deployments_keep_files_until_the_app_is_deleted() {
    let mut t = TestService::start().await;
    app(&t, "desk").await;
    let first = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.value();
    let path = format!("{}/{}", deployments("desk"), first["id"].as_str().unwrap());
    t.execute(
        "INSERT INTO app_deployments (id, app_id, workspace_id, digest, size, expanded_size, file_count, available, bindings,
             declares_bindings, collections, declares_collections, spa, frame_ancestors, wasm, report, created_at)
         SELECT lpad(to_hex(n), 32, 'f')::uuid, app_id, workspace_id, digest, size, expanded_size, file_count, available, bindings,
             declares_bindings, collections, declares_collections, spa, frame_ancestors, wasm, report, created_at
         FROM app_deployments, generate_series(1, 49) n",
    )
    .await;
    t.restart().await;
    assert_eq!(t.get(&path).await.value(), first);
    let last = upload(&t, "desk", &[ZIP], PAGE.as_bytes()).await.value();
    // The new deployment is older than those with far-future ids, and the oldest is beyond the newest fifty.
    let old = t.get(&path).await.value();
    assert_eq!(
        (&old["available"], &old["files"], &old["file_count"], &old["digest"]),
        (&json!(false), &json!([]), &json!(1), &first["digest"])
    );
    assert_eq!(
        t.scalar("SELECT string_agg(owner::text, ' ') FROM blob_uses").await,
        last["id"].as_str().unwrap()
    );
    let deleted = t.anonymous().send("DELETE", "/api/apps/desk", &[], "").await.unwrap();
    assert_eq!(deleted.status, 204);
    t.restart().await;
    let rows = "SELECT (SELECT count(*) FROM app_deployments) + (SELECT count(*) FROM app_files) + (SELECT count(*) FROM blob_uses)";
    t.until_scalar("everything is erased", rows, "0").await;
}
