//! The hosted widget's script: proxied, cached, and served while its CDN fails.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use integration_tests::{Answer, AnswerExt, Cdn, TestService, until};
use ring::digest::{SHA384, digest};

const PATH: &str = "/api/chat/assets/chat.js";
const SCRIPT: &str = "customElements.define('openai-chatkit', class extends HTMLElement {});";

async fn service(cdn: &Cdn) -> TestService {
    TestService::builder().manual_clock().set("SERVICE_CHAT_CDN_BASE_URL", cdn.base_url()).start().await
}

async fn get(t: &TestService, headers: &[(&str, &str)]) -> Answer {
    t.while_time_passes(t.send("GET", PATH, headers, "")).await
}

#[tokio::test]
async fn the_script_is_served_with_validators_and_ranges_without_cdn_headers() {
    let cdn = Cdn::start(SCRIPT).await;
    let t = service(&cdn).await;
    let headers = [("cookie", "secret=1"), ("authorization", "Bearer secret"), ("accept-language", "de")];
    let answer = get(&t, &headers).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, SCRIPT));
    for (name, value) in [
        ("content-type", "text/javascript; charset=utf-8"),
        ("cache-control", "public, max-age=300"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    assert_eq!((answer.header("set-cookie"), answer.header("x-cdn")), (None, None));
    let requests = cdn.requests();
    assert!(requests[0].starts_with("GET /deployments/chatkit/chatkit.js HTTP/1.1\r\n"), "{requests:?}");
    assert!(!requests[0].contains("secret") && !requests[0].contains("accept-language"), "{requests:?}");
    let tag = answer.header("etag").unwrap().to_owned();
    assert_eq!(get(&t, &[("if-none-match", &tag)]).await.status, 304);
    let head = t.open("HEAD", PATH, &[], "").await;
    assert_eq!((head.status, head.header("etag")), (200, Some(tag.as_str())));
    let length = SCRIPT.len();
    for (range, status, shown, text) in [
        ("bytes=0-4", 206, Some(format!("bytes 0-4/{length}")), &SCRIPT[..5]),
        (
            "bytes=-3",
            206,
            Some(format!("bytes {}-{}/{length}", length - 3, length - 1)),
            &SCRIPT[length - 3..],
        ),
        ("bytes=9999-", 416, Some(format!("bytes */{length}")), ""),
        ("bytes=0-1,3-4", 200, None, SCRIPT),
    ] {
        let part = get(&t, &[("range", range)]).await;
        assert_eq!(
            (part.status, part.header("content-range"), part.text().as_str()),
            (status, shown.as_deref(), text),
            "{range}"
        );
    }
    let other = [("range", "bytes=0-4"), ("if-range", "\"another\"")];
    assert_eq!(get(&t, &other).await.status, 200, "of another version");
    let same = [("range", "bytes=0-4"), ("if-range", tag.as_str())];
    assert_eq!(get(&t, &same).await.status, 206);
    assert_eq!(t.send("POST", PATH, &[], "").await.status, 405);
    assert_eq!(cdn.requests().len(), 1, "cached for all of these");
}

#[tokio::test]
async fn a_script_is_revalidated_and_served_for_a_day_without_the_cdn() {
    let cdn = Cdn::start(SCRIPT).await;
    let t = service(&cdn).await;
    let step = Duration::from_secs(1);
    let fetch_until = async |times: usize| {
        let is_asked = async || {
            t.send("GET", PATH, &[], "").await;
            cdn.requests().len() >= times
        };
        t.while_time_passes_in(step, Box::pin(until("the CDN is asked", is_asked))).await;
    };
    get(&t, &[]).await;
    t.advance(Duration::from_secs(301));
    fetch_until(2).await;
    assert!(cdn.requests()[1].to_ascii_lowercase().contains("if-none-match: "));
    cdn.publish("let newer;");
    t.advance(Duration::from_secs(301));
    let is_newer = async || t.send("GET", PATH, &[], "").await.text() == "let newer;";
    t.while_time_passes_in(step, Box::pin(until("the newer one", is_newer))).await;
    for (status, kind) in [(500, "text/javascript"), (404, "text/html"), (200, "text/html")] {
        cdn.publish("<html>");
        cdn.answers_with(status, kind);
        t.advance(Duration::from_secs(400));
        let before = cdn.requests().len();
        fetch_until(before + 1).await;
        assert_eq!(get(&t, &[]).await.text(), "let newer;", "{status} {kind}");
    }
    // A CDN that does not respond delays no page.
    cdn.hangs(true);
    t.advance(Duration::from_secs(400));
    assert_eq!(t.send("GET", PATH, &[], "").await.text(), "let newer;");
    t.advance(Duration::from_secs(25 * 3_600));
    let gone = get(&t, &[]).await;
    assert_eq!(gone.refusal(), "502 chat.widget_unavailable");
}

#[tokio::test]
async fn callers_without_a_script_share_requests() {
    let cdn = Cdn::start(SCRIPT).await;
    let t = service(&cdn).await;
    cdn.hangs(true);
    let refused = t.while_time_passes(join_all((0..100).map(|_| t.send("GET", PATH, &[], "")))).await;
    assert!(refused.iter().all(|answer| answer.refusal() == "502 chat.widget_unavailable"));
    let after_failure = cdn.requests().len();
    assert!(after_failure < 10, "{after_failure} requests for 100 callers");
    cdn.hangs(false);
    t.advance(Duration::from_secs(11));
    let found = t.while_time_passes(join_all((0..100).map(|_| t.send("GET", PATH, &[], "")))).await;
    assert!(found.iter().all(|answer| answer.text() == SCRIPT));
    assert_eq!(cdn.requests().len(), after_failure + 1);
}

#[tokio::test]
async fn only_the_pinned_script_is_served() {
    let cdn = Cdn::start(SCRIPT).await;
    let pin = format!("sha384-{}", STANDARD.encode(digest(&SHA384, SCRIPT.as_bytes())));
    let t = TestService::builder()
        .manual_clock()
        .set("SERVICE_CHAT_CDN_BASE_URL", cdn.base_url())
        .set("SERVICE_CHAT_CDN_CACHE_TTL", "0")
        .set("SERVICE_CHAT_CDN_INTEGRITY", pin)
        .start()
        .await;
    assert_eq!(get(&t, &[]).await.text(), SCRIPT);
    cdn.publish("let evil;");
    t.advance(Duration::from_secs(1));
    assert_eq!(get(&t, &[]).await.text(), SCRIPT, "the previously pinned script");
    assert_eq!(cdn.requests().len(), 2, "the other script was fetched");
    t.advance(Duration::from_secs(25 * 3_600));
    assert_eq!(get(&t, &[]).await.refusal(), "502 chat.widget_unavailable");
    cdn.publish(SCRIPT);
    t.advance(Duration::from_secs(11));
    assert_eq!(get(&t, &[]).await.text(), SCRIPT);
}
