//! A page's access token: the API accepts no cookies.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON};
use serde_json::{Value, json};

use super::{ADA, get, me_as, origin, post, service, signed_in};

const TOKEN: &str = "/api/auth/token";

fn minutes(number: u64) -> Duration {
    Duration::from_secs(60 * number)
}

#[tokio::test]
async fn a_page_token_is_valid_until_the_session_ends() {
    let (t, mail) = service().await;
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let answer = post(&browser, TOKEN, &json!({"active": true})).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let page = answer.value();
    assert_eq!(
        (&page["token_type"], &page["expires_in"], &page["user"]["email"], page.get("refresh_token")),
        (&json!("bearer"), &json!(900), &json!(ADA), None)
    );
    let me = me_as(&t.visitor(), &page["access_token"]).await.value();
    let current = |me: &Value| me["sessions"].as_array().unwrap().iter().any(|one| one["current"] == true);
    assert!(current(&me), "the browser's session is current: {me}");
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions").await, "1");
    assert_eq!(post(&browser, "/api/auth/logout", &json!({})).await.status, 204);
    assert_eq!(me_as(&t.visitor(), &page["access_token"]).await.status, 401);
    let over = post(&browser, TOKEN, &json!({"active": true})).await;
    assert_eq!(over.refusal(), "401 auth.missing_token");
}

#[tokio::test]
async fn only_same_origin_pages_get_a_token() {
    let (t, mail) = service().await;
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let ours = origin(&browser);
    let body = r#"{"active": true}"#;
    for foreign in ["https://evil.example", "null"] {
        let refused = browser.send("POST", TOKEN, &[JSON, ("origin", foreign)], body).await.unwrap();
        assert_eq!(refused.refusal(), "403 auth.origin_mismatch", "{foreign}");
    }
    let unnamed = browser.send("POST", TOKEN, &[JSON], body).await.unwrap();
    assert_eq!(unnamed.refusal(), "403 auth.origin_mismatch", "browsers name the origin of a POST");
    let form = [("content-type", "text/plain"), ("origin", ours.as_str())];
    let refused = browser.send("POST", TOKEN, &form, body).await.unwrap();
    assert_eq!(refused.refusal(), "415 request.unsupported_media_type");
    for (wrong, pointer) in
        [(json!({}), "/active"), (json!({"active": 1}), "/active"), (json!({"active": true, "x": 1}), "/x")]
    {
        let refused = post(&browser, TOKEN, &wrong).await;
        assert_eq!(refused.status, 422, "{wrong}");
        assert_eq!(refused.value()["detail"]["errors"][0]["pointer"], pointer, "{wrong}");
    }
    assert_eq!(post(&t.visitor(), TOKEN, &json!({"active": true})).await.refusal(), "401 auth.missing_token");
}

#[tokio::test]
async fn an_inactive_page_does_not_extend_the_session() {
    let (t, mail) = service().await;
    let (idle, _) = signed_in(&t, &mail, ADA).await;
    let (used, _) = signed_in(&t, &mail, ADA).await;
    t.advance(minutes(50));
    assert_eq!(post(&idle, TOKEN, &json!({"active": false})).await.status, 200);
    assert_eq!(post(&used, TOKEN, &json!({"active": true})).await.status, 200);
    t.advance(minutes(11));
    assert_eq!(post(&idle, TOKEN, &json!({"active": true})).await.refusal(), "401 auth.missing_token");
    // The session ends after twelve hours, even for a token that was issued just before.
    for _ in 0..13 {
        assert_eq!(get(&used, "/api/auth/me").await.status, 200);
        t.advance(minutes(50));
    }
    let last = post(&used, TOKEN, &json!({"active": true})).await.value();
    // The test's clock starts within a second.
    assert!((539..=540).contains(&last["expires_in"].as_u64().unwrap()), "{last}");
}
