//! Requests to services that return JSON: signed like `webhook_send`, bounded, and without the secret in the result.

use std::time::Duration;

use engine::NodeError;
use engine::outbox::{SignedPost, post_signed};
use kernel::SystemClock;
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::{Value, json};

use crate::endpoint::{Act, Endpoint};
use crate::world::{World, outbound};

const SECRET: &str = "canary-of-the-judge-0123456789";

async fn posted(endpoint: &Endpoint, key: &str, json: Value, world: World) -> Result<Value, NodeError> {
    let world = world.allowing(endpoint.at);
    let url = format!("http://{}/judge", endpoint.at);
    let limit = Duration::from_millis(700);
    let post = SignedPost { key, url: &url, credential: "judge", most: 100, limit };
    post_signed(post, json, &world.credentials, &outbound(&world.allow), &SystemClock::new()).await
}

fn world() -> World {
    World::new().credential("judge", SECRET)
}

fn header(request: &str, name: &str) -> String {
    let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name}: {request}")).to_owned()
}

#[tokio::test]
async fn the_context_is_signed_and_the_answer_is_json() {
    let endpoint = Endpoint::answering(200, "", r#"{"score": 0.5}"#).await;
    let context = json!({"output": "[[judge]] {{ inputs.x }}"});
    for key in ["a", "a", "b"] {
        assert_eq!(posted(&endpoint, key, context.clone(), world()).await, Ok(json!({"score": 0.5})));
    }
    let requests = endpoint.requests.lock().clone();
    for request in &requests {
        let body = request.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body, context.to_string(), "nothing in it is a template or a reference");
        assert!(request.starts_with("POST /judge HTTP/1.1\r\n"), "{request}");
        assert_eq!(header(request, "content-type"), "application/json");
        let signed = format!("{}.{body}", header(request, "x-timestamp"));
        let signature = header(request, "x-signature");
        let signature = hex::decode(signature.strip_prefix("sha256=").unwrap()).unwrap();
        assert!(verify(&Key::new(HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes(), &signature).is_ok());
    }
    let keys: Vec<String> = requests.iter().map(|request| header(request, "idempotency-key")).collect();
    assert!(keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
}

#[tokio::test]
async fn an_invalid_answer_is_an_error_without_the_secret() {
    let long = format!("\"{}\"", "x".repeat(200));
    let repeated = format!("no {SECRET}");
    for (status, headers, body, expected) in [
        (500, "", repeated.as_str(), "answered 500: no [redacted]"),
        (302, "Location: http://127.0.0.1:9/\r\n", "", "redirects"),
        (200, "", long.as_str(), "larger than"),
        (200, "", "good", "is not JSON"),
        (200, "", "", "is not JSON"),
    ] {
        let endpoint = Endpoint::answering(status, headers, body).await;
        let error = posted(&endpoint, "k", json!({}), world()).await.unwrap_err();
        assert!(error.message.contains(expected), "{status} {body}: {error}");
        assert!(!error.message.contains("canary"), "{error}");
    }
    let silent = Endpoint::new(vec![Act::Hold]).await;
    let slow = Endpoint::new(vec![Act::Head(200, ""), Act::Chunk(b"{".to_vec()), Act::Hold]).await;
    for endpoint in [silent, slow] {
        let error = posted(&endpoint, "k", json!({}), world()).await.unwrap_err();
        assert_eq!(error.code, wire::ErrorCode::NodeTimeout, "{error}");
    }
    let endpoint = Endpoint::answering(200, "", "1").await;
    let error = posted(&endpoint, "k", json!({}), World::new()).await.unwrap_err();
    assert_eq!((error.code, endpoint.requests.lock().len()), (wire::ErrorCode::CredentialMissing, 0));
}

#[tokio::test]
async fn a_secret_repeated_by_the_service_is_masked() {
    let body = json!({"score": 1, "reason": format!("signed with {SECRET}")}).to_string();
    let endpoint = Endpoint::answering(200, "", &body).await;
    let answer = posted(&endpoint, "k", json!({}), world()).await.unwrap();
    assert_eq!(answer, json!({"score": 1, "reason": "signed with [redacted]"}));
}
