//! `discord_message`: by webhook, as a bot, and Discord's errors.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::{Act, Endpoint};
use crate::ports::{alone, plan};
use crate::world::{World, refused};

const TOKEN: &str = "canary.GhIjKl.0123456789";
const JSON: &str = "Content-Type: application/json\r\n";
const SAID: &str = r#"{"id": "11", "channel_id": "22", "content": "hi"}"#;

fn node(more: Value) -> Value {
    let mut node = json!({"name": "tell", "type": "discord_message", "text": "hi {{ inputs.name }}"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world(endpoint: &Arc<Endpoint>) -> World {
    let webhook = format!("http://{}/api/webhooks/1/canary-hook?thread_id=9", endpoint.at);
    let world = World::new().allowing(endpoint.at).credential("bot", TOKEN).credential("hook", &webhook);
    world.inputs(json!({"name": "@everyone"}))
}

fn body(sent: &str) -> Value {
    serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_message_is_sent_by_webhook_or_bot_without_mentions() {
    let done = Ok(json!({"ok": true, "message_id": "11", "channel": "22"}));
    let endpoint = Endpoint::answering(200, JSON, SAID).await;
    let by_webhook = node(json!({"webhook_url": "[[hook]]", "embeds": [{"title": "{{ inputs.name }}"}]}));
    let world_of = world(&endpoint);
    assert_eq!(world_of.run_outside(&plan(&alone(&by_webhook))).await, done);
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with("POST /api/webhooks/1/canary-hook?thread_id=9&wait=true HTTP/1.1"), "{sent}");
    assert_eq!(
        body(&sent),
        json!({"content": "hi @everyone", "embeds": [{"title": "@everyone"}], "allowed_mentions": {"parse": []}})
    );

    let as_bot = json!({"token": "[[bot]]", "channel": 22, "reply_to": "7", "allowed_mentions": {"parse": ["users"]},
                        "base_url": format!("http://{}/api", endpoint.at)});
    assert_eq!(world_of.run_outside(&plan(&alone(&node(as_bot.clone())))).await, done);
    assert_eq!(world_of.run_outside(&plan(&alone(&node(as_bot)))).await, done);
    let sent: Vec<String> = endpoint.requests.lock()[1..].to_vec();
    assert!(sent[0].starts_with("POST /api/channels/22/messages HTTP/1.1"), "{}", sent[0]);
    assert!(sent[0].contains(&format!("authorization: Bot {TOKEN}")), "{}", sent[0]);
    let first_body = body(&sent[0]);
    assert_eq!(
        (&first_body["message_reference"], &first_body["enforce_nonce"]),
        (&json!({"message_id": "7"}), &json!(true))
    );
    assert_eq!(first_body["allowed_mentions"], json!({"parse": ["users"]}));
    // The same visit in the same run, so Discord accepts it once.
    assert!(first_body["nonce"].as_str().unwrap().len() <= 25);
    assert_eq!(first_body["nonce"], body(&sent[1])["nonce"]);
    let other = node(
        json!({"name": "again", "token": "[[bot]]", "channel": "22", "reply_to": "{{ inputs.none | default('') }}",
                            "base_url": format!("http://{}/api", endpoint.at)}),
    );
    assert_eq!(world_of.run_outside(&plan(&alone(&other))).await, done);
    let second_body = body(&endpoint.requests.lock()[3]);
    assert!(
        second_body["nonce"] != first_body["nonce"] && second_body.get("message_reference").is_none(),
        "{second_body}"
    );
    assert_eq!(second_body["allowed_mentions"], json!({"parse": []}));
    assert!(sent[0].contains("user-agent: DiscordBot (Callboard, "), "{}", sent[0]);
    assert!(!format!("{:?}", world_of.journal.rows.lock()).contains("canary"));
}

#[tokio::test]
async fn empty_fields_are_not_sent_and_mention_no_one() {
    let nothing = "{{ inputs.none | default(none) }}";
    let ran = async |more: Value| {
        let endpoint = Endpoint::answering(200, JSON, SAID).await;
        let ran = world(&endpoint).run_outside(&plan(&alone(&node(more)))).await;
        let sent = endpoint.requests.lock().first().map(|sent| body(sent));
        ran.map(|_| sent).map_err(|error| error.message)
    };
    let hook = |more: Value| {
        let mut all = json!({"webhook_url": "[[hook]]"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let no_mentions = json!({"parse": []});
    assert_eq!(
        ran(hook(json!({"allowed_mentions": nothing}))).await,
        Ok(Some(json!({"content": "hi @everyone", "allowed_mentions": no_mentions})))
    );
    assert_eq!(
        ran(hook(json!({"allowed_mentions": "{{ {'parse': ['users']} }}"}))).await,
        Ok(Some(json!({"content": "hi @everyone", "allowed_mentions": {"parse": ["users"]}})))
    );
    for made in ["all {{ inputs.name }}", "{{ [1] }}"] {
        let error = ran(hook(json!({"allowed_mentions": made}))).await.unwrap_err();
        assert!(error.contains("'allowed_mentions' must be an object"), "{error}");
    }
    assert_eq!(
        ran(hook(json!({"text": "", "embeds": [{"title": "t"}]}))).await,
        Ok(Some(json!({"embeds": [{"title": "t"}], "allowed_mentions": no_mentions})))
    );
    for text in ["", nothing] {
        let error = ran(hook(json!({"text": text, "embeds": nothing}))).await.unwrap_err();
        assert!(error.contains("'text'"), "{error}");
    }
}

#[tokio::test]
async fn rejections_have_a_reason_and_a_retry_hint() {
    let retry = json!({"max_attempts": 2, "initial_delay_seconds": 0});
    for (status, answer_body, message, attempts) in [
        (400, format!(r#"{{"message": "no {TOKEN}"}}"#), r#"answered 400: {"message": "no [redacted]"}"#, 1),
        (429, r#"{"retry_after": 0}"#.to_owned(), r#"answered 429: {"retry_after": 0}"#, 2),
        (200, "fine".to_owned(), "did not respond like Discord", 1),
    ] {
        let endpoint = Endpoint::answering(status, JSON, &answer_body).await;
        let more = json!({"token": "[[bot]]", "channel": "1/../2", "retry": retry,
                          "base_url": format!("http://{}", endpoint.at)});
        let error = world(&endpoint).run_outside(&plan(&alone(&node(more)))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NodeFailed);
        assert!(error.message.ends_with(message), "{error}");
        let sent = endpoint.requests.lock().clone();
        assert_eq!(sent.len(), attempts, "{message}");
        assert!(sent[0].starts_with("POST /channels/1%2F..%2F2/messages "), "{}", sent[0]);
    }
}

#[tokio::test]
async fn a_posted_message_is_not_repeated_after_a_truncated_answer() {
    let acts = vec![Act::Head(200, JSON), Act::Chunk(SAID.as_bytes()[..9].to_vec()), Act::Cut];
    let endpoint = Endpoint::new(acts).await;
    let retry = json!({"max_attempts": 3, "initial_delay_seconds": 0});
    let node = node(json!({"webhook_url": "[[hook]]", "retry": retry}));
    let error = world(&endpoint).run_outside(&plan(&alone(&node))).await.unwrap_err();
    assert!(!error.retryable, "{error}");
    assert_eq!(endpoint.requests.lock().len(), 1);
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({}), vec!["/webhook_url required"]),
        (json!({"webhook_url": "[[x]]", "token": "[[y]]"}), vec!["/webhook_url required"]),
        (json!({"token": "y", "channel": 1}), vec!["/token secret"]),
        (json!({"webhook_url": "https://discord.com/api/webhooks/0/x"}), vec!["/webhook_url secret"]),
        (json!({"webhook_url": "[[a]]", "allowed_mentions": []}), vec!["/allowed_mentions type"]),
        (json!({"token": "[[a]]"}), vec!["/channel required"]),
        (json!({"webhook_url": "[[a]]", "reply_to": 1}), vec!["/reply_to reply_to"]),
        (json!({"webhook_url": "[[a]]", "embeds": "{{ nothing }"}), vec!["/embeds template"]),
        (json!({"token": "[[a]]", "channel": 1}), vec![]),
    ] {
        assert_eq!(refused(&node(more.clone())), problems, "{more}");
    }
}
