//! Limits on starts.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, TestService, until};
use serde_json::json;

use super::{Published, answers, frozen, slow};

fn wait(answer: &Answer) -> u64 {
    assert_eq!(answer.refusal(), "429 rate_limited");
    answer.header("retry-after").unwrap().parse().unwrap()
}

/// Starts with new keys until one is rejected; returns the number of accepted starts.
async fn start_until_rejected(
    app: &Published<'_>,
    binding: &str,
    prefix: &str,
    most: usize,
) -> (usize, Answer) {
    for n in 0..most {
        let answer = app.start(binding, &format!("{prefix}{n}"), &json!({"text": "a"})).await;
        if answer.status != 202 {
            return (n, answer);
        }
        app.ended(answer.value()["handle"].as_str().unwrap()).await;
    }
    panic!("no start was rejected");
}

#[tokio::test]
async fn a_client_starts_ten_runs_at_once_then_one_every_six_seconds() {
    let t = TestService::with_manual_clock().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding.clone()), ("more", binding.clone())]).await;
    let (done, refused) = start_until_rejected(&app, "form", "a", 20).await;
    assert_eq!((done, wait(&refused)), (10, 6));
    // The limit applies to all bindings of one app together, separately for each app.
    assert_eq!(wait(&app.start("more", "x", &json!({})).await), 6);
    let other = Published::new(&t, "other", &[("form", binding)]).await;
    assert_eq!(other.start("form", "x", &json!({})).await.status, 202);
    t.advance(Duration::from_millis(5_500));
    assert_eq!(wait(&app.start("form", "b", &json!({})).await), 1);
    t.advance(Duration::from_millis(500));
    assert_eq!(app.start("form", "b", &json!({})).await.status, 202);
    assert_eq!(wait(&app.start("form", "c", &json!({})).await), 6);
    // A known key is replayed nevertheless.
    assert_eq!(app.start("form", "a0", &json!({"text": "a"})).await.status, 202);
}

#[tokio::test]
async fn the_lower_rate_of_a_binding_applies() {
    let t = TestService::with_manual_clock().await;
    let slow = frozen(&t, answers(), json!({"limits": {"per_visitor_per_minute": 2}})).await;
    let quick = frozen(&t, answers(), json!({"limits": {"per_visitor_per_minute": 1000}})).await;
    let app = Published::new(&t, "notes", &[("slow", slow), ("quick", quick)]).await;
    let (done, refused) = start_until_rejected(&app, "slow", "a", 20).await;
    assert_eq!((done, wait(&refused)), (2, 30));
    let (done, refused) = start_until_rejected(&app, "quick", "b", 20).await;
    assert_eq!((done, wait(&refused)), (8, 6), "the rejected start is not counted");
}

#[tokio::test]
async fn a_client_has_at_most_two_unfinished_runs() {
    let t = TestService::start().await;
    let binding = frozen(&t, slow(30.0), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let input = json!({});
    let keys: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    let all = futures_util::future::join_all(keys.iter().map(|key| app.start("form", key, &input))).await;
    let (good, refused): (Vec<_>, Vec<_>) = all.iter().partition(|answer| answer.status == 202);
    assert_eq!(good.len(), 2, "exactly two, even for concurrent starts");
    assert!(refused.iter().all(|answer| wait(answer) == 1));
    assert_eq!(app.count().await, "2");
    let run = t.scalar("SELECT run_id FROM app_runs LIMIT 1").await;
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
    // The rejected starts have used up the rate.
    t.execute("UPDATE app_limits SET used_until = now()").await;
    assert_eq!(app.start("form", "again", &input).await.status, 202);
    assert_eq!(wait(&app.start("form", "more", &input).await), 1);
    for run in t.scalar("SELECT string_agg(run_id::text, ' ') FROM app_runs").await.split(' ') {
        t.post(&format!("/api/runs/{run}/cancel"), "").await;
    }
}

#[tokio::test]
async fn unfinished_runs_of_a_binding_are_limited_across_visitors() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_CONCURRENT", "0").start().await;
    let narrow = frozen(&t, slow(30.0), json!({"limits": {"max_concurrent": 1}})).await;
    let wide = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("narrow", narrow), ("wide", wide)]).await;
    let handle = app.handle("narrow", "a", &json!({})).await;
    assert_eq!(wait(&app.start("narrow", "b", &json!({})).await), 1);
    assert_eq!(app.start("wide", "b", &json!({"text": "a"})).await.status, 202);
    let run = t.scalar("SELECT run_id FROM app_runs WHERE binding = 'narrow'").await;
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
    app.ended(&handle).await;
    let again = app.handle("narrow", "c", &json!({})).await;
    let run = t.scalar("SELECT max(run_id::text) FROM app_runs WHERE binding = 'narrow'").await;
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
    app.ended(&again).await;
}

#[tokio::test]
async fn daily_starts_are_limited_per_client_and_per_app() {
    let t = TestService::builder()
        .manual_clock()
        .set("SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY", "3")
        .set("SERVICE_APPS_RUNS_PER_DAY", "5")
        .set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#)
        .start()
        .await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let start = async |client: &str, key: &str| {
        app.start_with("form", key, &[("x-forwarded-for", client)], r#"{"text":"a"}"#).await
    };
    let mut started = 0;
    for (client, expected) in [("192.0.2.1", 3), ("2001:db8::1", 2)] {
        let mut done = 0;
        let refused = loop {
            let answer = start(client, &format!("{client}{done}")).await;
            if answer.status != 202 {
                break answer;
            }
            app.ended(answer.value()["handle"].as_str().unwrap()).await;
            done += 1;
        };
        assert_eq!(done, expected, "{client}");
        assert!(wait(&refused) <= 86_400);
        started += done;
    }
    assert_eq!(started, 5);
    // Another address in the same /64 is the same client.
    let networks = t.scalar("SELECT string_agg(DISTINCT network, ' ' ORDER BY network) FROM app_runs").await;
    assert_eq!(networks, "192.0.2.1 2001:db8::");
    wait(&start("2001:db8::2", "x").await);
    t.advance(Duration::from_secs(86_400));
    until("the app copy to be refreshed", async || start("192.0.2.1", "tomorrow").await.status == 202).await;
}

#[tokio::test]
async fn setting_the_clock_back_does_not_lock_a_client_out() {
    let t = TestService::with_manual_clock().await;
    let binding = frozen(&t, answers(), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    start_until_rejected(&app, "form", "a", 20).await;
    t.execute("UPDATE app_limits SET used_until = used_until + interval '1 year'").await;
    assert_eq!(app.start("form", "b", &json!({})).await.status, 202);
}
