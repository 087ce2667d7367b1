//! Lists of records and their cursors.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

use super::{Site, open};

fn numbers(page: &Value) -> Vec<i64> {
    page["items"].as_array().unwrap().iter().map(|item| item["data"]["n"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn pages_of_a_list_stay_stable_while_records_are_added() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    for n in 0..7 {
        site.create_path("likes", &json!({"n": n})).await;
    }
    for (order, all) in
        [("created_at", (0..7).collect::<Vec<i64>>()), ("-created_at", (0..7).rev().collect())]
    {
        let (mut seen, mut query) = (Vec::new(), format!("likes?limit=3&order={order}"));
        loop {
            let page = site.get(&query).await.value();
            seen.extend(numbers(&page));
            if seen.len() == 3 && order == "-created_at" {
                site.create_path("likes", &json!({"n": 99})).await;
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            query = format!("likes?limit=3&order={order}&cursor={next}");
        }
        assert_eq!(seen, all, "{order}");
    }
    let all = site.get("likes").await.value();
    assert_eq!((numbers(&all).len(), &all["next_cursor"]), (8, &Value::Null));
    let exact = site.get("likes?limit=8").await.value();
    assert_eq!(exact["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_cursor_is_valid_for_one_list_and_one_day() {
    let t = TestService::with_manual_clock().await;
    let both = json!({"likes": open(), "other": open()});
    let site = Site::publish(&t, "notes", &both).await;
    for n in 0..3 {
        site.create_path("likes", &json!({"n": n})).await;
        site.create_path("other", &json!({"n": n})).await;
    }
    let cursor = site.get("likes?limit=1").await.value()["next_cursor"].as_str().unwrap().to_owned();
    let with = async |collection: &str, more: &str, cursor: &str| {
        site.get(&format!("{collection}?cursor={cursor}{more}")).await.refusal()
    };
    assert_eq!(with("likes", "&limit=2", &cursor).await, "200");
    let flipped = if cursor.starts_with('A') { "B" } else { "A" };
    let tampered = format!("{flipped}{}", &cursor[1..]);
    for (collection, more, cursor) in [
        ("other", "", cursor.as_str()),
        ("likes", "&order=-created_at", &cursor),
        ("likes", "", &tampered),
        ("likes", "", &cursor[..cursor.len() - 2]),
        ("likes", "", "x"),
        ("likes", "", "%00"),
    ] {
        assert_eq!(
            with(collection, more, cursor).await,
            "400 cursor_invalid",
            "{collection} {more} {cursor}"
        );
    }
    // A collection with the same name in another app.
    let far = Site::publish(&t, "far", &both).await;
    assert_eq!(far.get(&format!("likes?cursor={cursor}")).await.refusal(), "400 cursor_invalid");
    t.advance(Duration::from_secs(86_399));
    assert_eq!(with("likes", "", &cursor).await, "200");
    t.advance(Duration::from_secs(1));
    assert_eq!(with("likes", "", &cursor).await, "400 cursor_invalid");
}

#[tokio::test]
async fn queries_are_validated_strictly() {
    let t = TestService::start().await;
    let site = Site::publish(&t, "notes", &json!({"likes": open()})).await;
    for (query, problem) in [
        ("limit=0", "/limit range"),
        ("limit=101", "/limit range"),
        ("limit=x", "/limit range"),
        ("order=id", "/order choice"),
        ("order=", "/order choice"),
        ("page=2", "/page unknown_parameter"),
        ("limit=1&limit=1", "/limit repeated"),
    ] {
        let response = site.get(&format!("likes?{query}")).await;
        assert_eq!(response.refusal(), "422 query_invalid", "{query}");
        assert_eq!(response.problems(), [problem]);
    }
    assert_eq!(site.get("likes?cursor=").await.refusal(), "400 cursor_invalid");
    for good in ["limit=1", "limit=100", "order=created_at", "order=-created_at"] {
        assert_eq!(site.get(&format!("likes?{good}")).await.status, 200, "{good}");
    }
    let path = site.create_path("likes", &json!({})).await;
    assert_eq!(site.get(&format!("{path}?x=1")).await.refusal(), "422 query_invalid");
}
