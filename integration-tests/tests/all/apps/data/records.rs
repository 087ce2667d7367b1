//! Record versions, and the conditions of changes.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::{Value, json};

use super::{Site, etag, open};

#[tokio::test]
async fn a_record_is_created_read_changed_and_deleted() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let made = site.create("likes", &json!({"n": 1, "a": {"b": 2}})).await;
    assert_eq!((made.status, etag(&made)), (201, "\"v1\""), "{}", made.text());
    let record = made.value();
    assert_eq!((&record["version"], &record["data"]), (&json!(1), &json!({"n": 1, "a": {"b": 2}})));
    assert_eq!(record["created_at"], record["updated_at"]);
    assert_eq!(record.as_object().unwrap().len(), 5);
    let path = format!("likes/{}", record["id"].as_str().unwrap());
    assert_eq!(made.header("location").unwrap(), format!("/__service/data/{path}"));
    let read = site.get(&path).await;
    assert_eq!((read.status, etag(&read), read.value()), (200, "\"v1\"", record.clone()));
    assert_eq!(read.header("cache-control"), Some("private, no-store"));
    let full = format!("/__service/data/{path}");
    for tags in ["\"v1\"", "*", "W/\"v1\"", "\"x\", \"v1\""] {
        let same = site.send("GET", &full, &[("if-none-match", tags)], "").await;
        assert_eq!((same.status, etag(&same)), (304, "\"v1\""), "{tags}");
    }
    assert_eq!(site.send("GET", &full, &[("if-none-match", "\"v2\"")], "").await.status, 200);
    let head = site.send("HEAD", &full, &[], "").await;
    assert_eq!((head.status, etag(&head)), (200, "\"v1\""));

    let replaced = site.put(&path, &[("if-match", "\"v1\"")], &json!({"data": {"n": 2}})).await;
    assert_eq!((replaced.status, etag(&replaced)), (200, "\"v2\""), "{}", replaced.text());
    assert_eq!((&replaced.value()["data"], &replaced.value()["id"]), (&json!({"n": 2}), &record["id"]));
    assert_eq!(replaced.value()["created_at"], record["created_at"]);
    let replaced = site.put(&path, &[], &json!({"data": {"n": 3, "old": true}, "version": 2})).await;
    assert_eq!(replaced.value()["version"], 3);
    let merged = site.patch(&path, &[("if-match", "\"v3\"")], &json!({"old": null, "new": 1})).await;
    assert_eq!(
        (&merged.value()["version"], &merged.value()["data"]),
        (&json!(4), &json!({"n": 3, "new": 1}))
    );
    let any = site.patch(&path, &[("if-match", "*")], &json!({"n": 4})).await;
    assert_eq!(any.value()["version"], 5);

    let deleted = site.delete(&path, &[("if-match", "\"v5\"")]).await;
    assert_eq!((deleted.status, deleted.text().as_str()), (204, ""));
    // The record stays deleted, also without a condition.
    for again in [
        site.get(&path).await,
        site.put(&path, &[], &json!({"data": {}})).await,
        site.put(&path, &[("if-match", "\"v5\"")], &json!({"data": {}})).await,
        site.patch(&path, &[], &json!({"data": {}})).await,
        site.delete(&path, &[]).await,
    ] {
        assert_eq!(again.refusal(), "404 not_found");
    }
    let stored = "SELECT concat_ws(' ', version, data IS NULL, written_by IS NULL) FROM app_records";
    assert_eq!(t.scalar(stored).await, "6 t t");
    let counts = "SELECT concat_ws(' ', record_count, record_bytes, tombstones) FROM app_collections";
    assert_eq!(t.scalar(counts).await, "0 0 1");
}

#[tokio::test]
async fn changes_require_the_current_version() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let body = json!({"data": {"n": 2}});
    site.put(&path, &[("if-match", "\"v1\"")], &body).await;
    assert_eq!(site.put(&path, &[], &body).await.refusal(), "428 version_required");
    assert_eq!(site.patch(&path, &[], &body).await.refusal(), "428 version_required");
    assert_eq!(site.delete(&path, &[]).await.refusal(), "428 version_required");
    for stale in ["\"v1\"", "\"v3\"", "W/\"v2\"", "v2", "\"2\""] {
        for refused in [
            site.put(&path, &[("if-match", stale)], &body).await,
            site.patch(&path, &[("if-match", stale)], &body).await,
            site.delete(&path, &[("if-match", stale)]).await,
        ] {
            assert_eq!(refused.refusal(), "412 version_conflict", "{stale}");
            assert_eq!(refused.value()["detail"]["current_version"], 2, "{stale}");
        }
    }
    let with = |version: i64| json!({"data": {"n": 2}, "version": version});
    assert_eq!(site.put(&path, &[], &with(1)).await.refusal(), "412 version_conflict");
    let both = site.put(&path, &[("if-match", "\"v2\"")], &with(1)).await;
    assert_eq!(both.refusal(), "400 version_ambiguous");
    assert_eq!(site.put(&path, &[("if-match", "\"v2\"")], &with(2)).await.status, 200);
    assert_eq!(site.get(&path).await.value()["version"], 3);
    // Missing records are reported before missing conditions.
    let none = "likes/018f0000-0000-7000-8000-000000000000";
    for path in [none, "likes/x", "likes/018F0000-0000-7000-8000-000000000000"] {
        assert_eq!(site.put(path, &[], &body).await.refusal(), "404 not_found", "{path}");
        assert_eq!(site.delete(path, &[]).await.refusal(), "404 not_found", "{path}");
    }
}

#[tokio::test]
async fn concurrent_writers_produce_one_chain_of_versions() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE", "0").start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"writes": []})).await;
    let writers = (0..32).map(async |writer: u32| {
        let mut won = Vec::new();
        for write in 0..2 {
            loop {
                let now = site.get(&path).await.value();
                let mut data = now["data"].clone();
                data["writes"].as_array_mut().unwrap().push(json!(format!("{writer}.{write}")));
                let version = now["version"].as_i64().unwrap();
                let response = site.put(&path, &[], &json!({"data": data, "version": version})).await;
                match response.status {
                    200 => {
                        assert_eq!(response.value()["version"], version + 1);
                        won.push(version + 1);
                        break;
                    }
                    412 => assert!(response.value()["detail"]["current_version"].as_i64().unwrap() > version),
                    other => panic!("{other}: {}", response.text()),
                }
            }
        }
        won
    });
    let won: Vec<i64> = join_all(writers).await.into_iter().flatten().collect();
    let distinct: BTreeSet<i64> = won.iter().copied().collect();
    assert_eq!(distinct, (2..=65).collect(), "every version is unique, and none is missing");
    let last = site.get(&path).await.value();
    assert_eq!(last["version"], 65);
    let writes: BTreeSet<&str> =
        last["data"]["writes"].as_array().unwrap().iter().map(|write| write.as_str().unwrap()).collect();
    assert_eq!(writes.len(), 64, "no write was lost");
}

#[tokio::test]
async fn an_idempotency_key_creates_one_record() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open(), "other": open()})).await;
    let post = async |collection: &str, key: &str, data: &Value| {
        let body = json!({"data": data}).to_string();
        let path = format!("/__service/data/{collection}");
        site.send("POST", &path, &[JSON, ("idempotency-key", key)], &body).await
    };
    let n = json!({"n": 1});
    let responses = join_all((0..8).map(|_| post("likes", "k", &n))).await;
    let first = responses.iter().find(|response| response.header("idempotency-replayed").is_none()).unwrap();
    for one in &responses {
        assert_eq!((one.status, one.text(), etag(one)), (201, first.text(), etag(first)));
        assert_eq!(one.header("location"), first.header("location"));
    }
    let fresh = responses.iter().filter(|response| response.header("idempotency-replayed").is_none());
    assert_eq!(fresh.count(), 1);
    assert_eq!(t.scalar("SELECT count(*) FROM app_records").await, "1");
    assert_eq!(post("likes", "k", &json!({"n": 2})).await.refusal(), "422 idempotency_key_reused");
    assert_ne!(post("other", "k", &n).await.value()["id"], first.value()["id"]);
    // The response stays the same after the record is deleted, and the key stores none of its data.
    let path = format!("likes/{}", first.value()["id"].as_str().unwrap());
    assert_eq!(site.delete(&path, &[("if-match", "*")]).await.status, 204);
    assert_eq!(post("likes", "k", &n).await.text(), first.text());
    assert_eq!(
        t.scalar("SELECT count(*) FROM idempotency_keys WHERE outcome::text LIKE '%\"n\"%'").await,
        "0"
    );
    for bad in ["", "a b", &"k".repeat(256)] {
        assert_eq!(post("likes", bad, &n).await.refusal(), "400 idempotency_key_invalid", "{bad:.9}");
    }
    // A rejected request leaves its key free.
    assert_eq!(post("likes", "free", &json!([])).await.refusal(), "422 record_invalid");
    assert_eq!(post("likes", "free", &n).await.status, 201);
}

#[tokio::test]
async fn a_retry_with_or_without_the_new_cookie_is_replayed() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let post = async |headers: &[(&str, &str)]| {
        let headers = [&[JSON, ("idempotency-key", "k")], headers].concat();
        site.send("POST", "/__service/data/likes", &headers, r#"{"data": {"n": 1}}"#).await
    };
    let first = post(&[]).await;
    let set = first.header("set-cookie").unwrap();
    let cookie = set.split(';').next().unwrap();
    assert!(cookie.starts_with("__Host-svc_anon="), "{set}");
    for headers in [&[("cookie", cookie)][..], &[], &[("cookie", "__Host-svc_anon=x")]] {
        let again = post(headers).await;
        assert_eq!((again.status, &again.text()), (201, &first.text()), "{headers:?}");
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.header("set-cookie"), None);
    }
    // Another visitor has separate keys, and keeps their cookie.
    let config = site.send("GET", "/__service/config", &[], "").await;
    let other = config.header("set-cookie").unwrap().split(';').next().unwrap();
    let of_other = post(&[("cookie", other)]).await;
    assert_ne!(of_other.text(), first.text());
    assert_eq!(of_other.header("set-cookie"), None);
    // Without a key, no response is repeated, so the visitor need not be known.
    assert_eq!(site.create("likes", &json!({})).await.header("set-cookie"), None);
    assert_eq!(t.scalar("SELECT count(*) FROM app_records").await, "3");
}

#[tokio::test]
async fn a_deleted_collection_is_gone_until_a_release_contains_its_successor() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    let path = site.create_path("likes", &json!({"n": 1})).await;
    let collection = "/api/apps/notes/collections/likes";
    assert_eq!(t.anonymous().send("DELETE", collection, &[], "").await.unwrap().status, 204);
    let gone = async || {
        for response in [
            site.get("likes").await,
            site.get(&path).await,
            site.create("likes", &json!({})).await,
            site.put(&path, &[], &json!({"data": {}})).await,
            site.patch(&path, &[], &json!({"data": {}})).await,
            site.delete(&path, &[]).await,
        ] {
            assert_eq!(response.refusal(), "410 collection_gone");
        }
    };
    gone().await;
    let capabilities = json!({"anonymous": ["read"], "member": []});
    let again = json!({"name": "likes", "kind": "shared", "capabilities": capabilities});
    assert_eq!(t.post("/api/apps/notes/collections", &again.to_string()).await.status, 201);
    gone().await;
    site.release(&json!({"likes": open()})).await;
    integration_tests::until("the new collection is read", async || site.get("likes").await.status == 200)
        .await;
    assert_eq!(site.get("likes").await.value(), json!({"items": [], "next_cursor": null}));
    assert_eq!(site.get(&path).await.refusal(), "404 not_found");
}
