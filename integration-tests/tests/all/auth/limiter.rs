//! The limit on failed sign-ins.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{AnswerExt, Builder, TestService, until};

const LIST: &str = "/api/workflows";

fn limited(address: u32, identity: u32) -> Builder {
    TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_AUTH_RATE_LIMIT_IP", address.to_string())
        .set("SERVICE_AUTH_RATE_LIMIT_IDENTITY", identity.to_string())
}

#[tokio::test]
async fn concurrent_failures_are_401_up_to_the_limit() {
    let t = limited(10, 0).start().await;
    let attempts = (0..64).map(|number| {
        let t = &t;
        async move { t.bearer(&format!("wrong-{number}")).get(LIST).await }
    });
    let answers = join_all(attempts).await;
    let with = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(401), with(429)), (10, 54));
    let limited = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(limited.message(), "Too many authentication attempts");
    assert_eq!(limited.code(), "auth.rate_limited");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(t.root().get(LIST).await.status, 429, "good credentials too");
    assert_eq!(
        t.get(LIST).await.refusal(),
        "401 auth.missing_token",
        "a request without a token is not a guess"
    );
    assert_eq!(t.get("/healthz").await.status, 200);
    let rows = "SELECT count(*) FROM audit_log WHERE action = 'auth.failed'";
    assert_eq!(t.scalar(rows).await, "10", "a request rejected unchecked is not a failed sign-in");
}

#[tokio::test]
async fn the_window_slides_and_rejections_do_not_extend_it() {
    let t = limited(2, 0).manual_clock().start().await;
    let fails = async || t.bearer("wrong").get(LIST).await;
    assert_eq!(fails().await.status, 401);
    t.advance(Duration::from_secs(30));
    assert_eq!(fails().await.status, 401);
    let limited = fails().await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("30")));
    t.advance(Duration::from_secs(29));
    assert_eq!(fails().await.header("retry-after"), Some("1"));
    t.advance(Duration::from_secs(1));
    assert_eq!(t.root().get(LIST).await.status, 200, "the first failure has left the window");
    assert_eq!(fails().await.status, 401);
    assert_eq!(fails().await.status, 429, "the second has not");
}

#[tokio::test]
async fn an_identity_is_limited_across_addresses() {
    let t = limited(0, 2).set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.1"]"#).start().await;
    let from = async |address: &str, token: &str| {
        t.bearer(token).send("GET", LIST, &[("x-forwarded-for", address)], "").await.status
    };
    assert_eq!(from("192.0.2.1", "one").await, 401);
    assert_eq!(from("192.0.2.2", "one").await, 401);
    assert_eq!(from("192.0.2.3", "one").await, 429);
    assert_eq!(from("192.0.2.3", "two").await, 401, "another identity");
}

#[tokio::test]
async fn addresses_are_accepted_from_trusted_proxies_only() {
    let t = limited(1, 0).set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.1"]"#).start().await;
    let from = async |t: &TestService, address: &str| {
        t.bearer("wrong").send("GET", LIST, &[("x-forwarded-for", address)], "").await.status
    };
    assert_eq!(from(&t, "192.0.2.1").await, 401);
    assert_eq!(from(&t, "192.0.2.1").await, 429);
    assert_eq!(from(&t, "192.0.2.2").await, 401);
    assert_eq!(from(&t, "203.0.113.9, 192.0.2.2").await, 429, "addresses further left are ignored");
    assert_eq!(from(&t, "2001:db8::1").await, 401);
    assert_eq!(from(&t, "2001:db8::2").await, 429, "the same network");
    let untrusting = limited(1, 0).start().await;
    assert_eq!(from(&untrusting, "192.0.2.1").await, 401);
    assert_eq!(from(&untrusting, "192.0.2.2").await, 429, "no proxy is trusted");
}

#[tokio::test]
async fn repeating_one_token_adds_no_failures_or_audit_rows() {
    let t = limited(100, 3).start().await;
    for _ in 0..3 {
        assert_eq!(t.bearer("wrong").get(LIST).await.status, 401);
    }
    for _ in 0..50 {
        assert_eq!(t.bearer("wrong").get(LIST).await.status, 429);
    }
    assert_eq!(t.scalar("SELECT count(*) FROM auth_failures").await, "6", "three, under both of their keys");
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log").await, "3");
    let weak = t.root().token(&["workflows:read"], &[]).await;
    assert_eq!(t.bearer(&weak).post(LIST, &serde_json::json!({})).await.status, 403);
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'auth.denied'").await, "1");
}

#[tokio::test]
async fn zero_disables_each_limit() {
    let t = limited(0, 0).start().await;
    for _ in 0..20 {
        assert_eq!(t.bearer("wrong").get(LIST).await.status, 401);
    }
    t.assert_no_rows("auth_failures").await;
}

#[tokio::test]
async fn blocks_are_shared_between_instances() {
    let t = limited(2, 0).start().await;
    let database = t.variables()["SERVICE_POSTGRES_DSN"].clone();
    let other = limited(2, 0).set("SERVICE_POSTGRES_DSN", database).start().await;
    for _ in 0..2 {
        assert_eq!(t.bearer("wrong").get(LIST).await.status, 401);
    }
    assert_eq!(other.bearer("wrong").get(LIST).await.status, 429);
    let seen = async || other.root().get(LIST).await.status == 429;
    until("the other instance to reject valid credentials too", seen).await;
}

/// A user-only route rejects a service token, which does not count as a guess.
#[tokio::test]
async fn a_token_rejected_by_a_user_route_stays_valid_elsewhere() {
    let t = limited(0, 3).start().await;
    let token = t.root().token(&["workflows:read"], &[]).await;
    let answers = async |path: &'static str| t.bearer(&token).get(path).await.status;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(answers("/api/auth/me").await);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
    assert_eq!(answers(LIST).await, 200);
}

#[tokio::test]
async fn failures_are_deleted_after_a_day() {
    let t = limited(10, 10).manual_clock().start().await;
    assert_eq!(t.bearer("wrong").get(LIST).await.status, 401);
    assert_ne!(t.scalar("SELECT count(*) FROM auth_failures").await, "0");
    t.while_time_passes_in(Duration::from_secs(3600), async {
        t.until_scalar("the failures to be deleted", "SELECT count(*) FROM auth_failures", "0").await;
    })
    .await;
}
