//! `rss_read`: each feed format, and invalid feeds.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::Endpoint;
use crate::ports::{alone, plan};
use crate::world::{World, refused};

const RSS: &str = r#"<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
    <title>News &amp; more</title><link>https://news.test/</link><description>x</description>
    <item><title>Second</title><link>https://news.test/2</link><guid>two</guid><author>ann@news.test</author><category>a</category>
      <description>&lt;p&gt;One&lt;/p&gt;&lt;script&gt;evil()&lt;/script&gt;&lt;p&gt;Two &amp;amp; three&lt;/p&gt;</description>
      <content:encoded><![CDATA[<h1>Whole</h1>text]]></content:encoded>
      <pubDate>Sat, 21 Nov 2026 10:00:00 +0100</pubDate></item>
    <item><title>Undated</title></item>
    <item><title>First</title><link>https://news.test/1</link><pubDate>Fri, 20 Nov 2026 09:00:00 GMT</pubDate></item>
    </channel></rss>"#;
const ATOM: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><id>urn:a</id><updated>2026-11-21T09:00:00Z</updated>
    <link rel="self" href="https://atom.test/feed"/><link href="https://atom.test/"/>
    <entry><title type="html">A &lt;b&gt;bold&lt;/b&gt; title</title><id>urn:1</id><updated>2026-11-21T09:00:00Z</updated>
    <author><name>Ann</name></author><link href="https://atom.test/1"/><link rel="related" href="/other"/><summary>1 &lt; 2</summary></entry></feed>"#;
const JSON_FEED: &str = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "Json", "home_page_url": "https://json.test/",
    "items": [{"id": "1", "title": "T", "content_text": "words", "date_published": "2026-11-21T09:00:00Z", "tags": ["x"]}]}"#;

fn node(more: Value) -> Value {
    let mut node = json!({"name": "news", "type": "rss_read", "url": "{{ inputs.url }}"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world(endpoint: &Arc<Endpoint>) -> World {
    let world = World::new().allowing(endpoint.at).credential("key", "sk-canary-000111222");
    world.inputs(json!({"url": format!("http://{}/feed", endpoint.at), "since": "2026-11-21T00:00:00Z"}))
}

#[tokio::test]
async fn every_feed_format_is_read() {
    let endpoint = Endpoint::answering(200, "Content-Type: application/rss+xml\r\n", RSS).await;
    let with_key = node(json!({"headers": {"Authorization": "Bearer [[key]]"}}));
    let done = world(&endpoint).run_outside(&plan(&alone(&with_key))).await.unwrap();
    assert_eq!((&done["title"], &done["link"]), (&json!("News & more"), &json!("https://news.test/")));
    assert_eq!(
        done["items"][0],
        json!({"id": "two", "title": "Second", "link": "https://news.test/2", "summary": "One\n\nTwo & three",
               "content": "Whole\n\ntext", "authors": ["ann@news.test"], "categories": ["a"],
               "published_at": "2026-11-21T09:00:00Z", "updated_at": "2026-11-21T09:00:00Z"})
    );
    assert_eq!(done["items"].as_array().unwrap().len(), 3);
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with("GET /feed HTTP/1.1") && sent.contains("Bearer sk-canary-000111222"), "{sent}");

    // An item without an id gets the same one each time.
    let undated = done["items"][1]["id"].clone();
    let done = world(&endpoint).run_outside(&plan(&alone(&with_key))).await.unwrap();
    assert_eq!(done["items"][1]["id"], undated);

    let endpoint = Endpoint::answering(200, "", ATOM).await;
    let done = world(&endpoint).run_outside(&plan(&alone(&node(json!({}))))).await.unwrap();
    let item = &done["items"][0];
    assert_eq!((&done["link"], &item["link"]), (&json!("https://atom.test/"), &json!("https://atom.test/1")));
    assert_eq!((&item["title"], &item["summary"]), (&json!("A bold title"), &json!("1 < 2")));
    assert_eq!((&item["authors"], &item["updated_at"]), (&json!(["Ann"]), &json!("2026-11-21T09:00:00Z")));

    let endpoint = Endpoint::answering(200, "Content-Type: application/feed+json\r\n", JSON_FEED).await;
    let done = world(&endpoint).run_outside(&plan(&alone(&node(json!({}))))).await.unwrap();
    assert_eq!((&done["title"], &done["items"][0]["content"]), (&json!("Json"), &json!("words")));
    assert_eq!(done["items"][0]["categories"], json!(["x"]));
}

#[tokio::test]
async fn limit_and_since_restrict_the_items() {
    let titles = async |more: Value| -> Vec<String> {
        let endpoint = Endpoint::answering(200, "", RSS).await;
        let done = world(&endpoint).run_outside(&plan(&alone(&node(more)))).await.unwrap();
        let items = done["items"].as_array().unwrap().iter();
        items.map(|item| item["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles(json!({"limit": 1})).await, ["Second"]);
    assert_eq!(titles(json!({"since": "{{ inputs.never | default(none) }}"})).await.len(), 3);
    assert_eq!(titles(json!({"since": "{{ inputs.since }}"})).await, ["Second", "Undated"]);
    assert_eq!(titles(json!({"since": "2026-11-20T10:00:00+01:00"})).await, ["Second", "Undated", "First"]);
    let endpoint = Endpoint::answering(200, "", RSS).await;
    let error = world(&endpoint)
        .run_outside(&plan(&alone(&node(json!({"since": "{{ 'yesterday' }}"})))))
        .await
        .unwrap_err();
    assert!(
        error.code == ErrorCode::NodeFailed && error.message.contains("'yesterday' in 'since'"),
        "{error}"
    );
    assert!(endpoint.requests.lock().is_empty());
}

#[tokio::test]
async fn an_invalid_feed_has_a_clear_error() {
    for (status, body, code) in [
        (200, "<html><body>Not found</body></html>".to_owned(), ErrorCode::DocumentDamaged),
        (200, "{\"version\": 1}".to_owned(), ErrorCode::DocumentDamaged),
        (200, String::new(), ErrorCode::DocumentDamaged),
        (200, format!("{}{}", &RSS[..400], "\u{0}"), ErrorCode::DocumentDamaged),
        (
            200,
            RSS.replace("<title>First", &format!("<title>{}", "x".repeat(5 << 20))),
            ErrorCode::DocumentTooLarge,
        ),
        (404, "gone".to_owned(), ErrorCode::NodeFailed),
    ] {
        let endpoint = Endpoint::answering(status, "", &body).await;
        let ended = world(&endpoint).run_outside(&plan(&alone(&node(json!({}))))).await;
        assert_eq!(ended.unwrap_err().code, code, "{:.80}", body);
    }
    // Input after the limit is not read.
    let long = RSS.replace("<title>First", &format!("<title>{}", "x".repeat(5 << 20)));
    let endpoint = Endpoint::answering(200, "", &long).await;
    let done = world(&endpoint).run_outside(&plan(&alone(&node(json!({"limit": 2}))))).await.unwrap();
    assert_eq!(done["items"].as_array().unwrap().len(), 2);
    // An entity bomb is refused or not expanded.
    let bomb = r#"<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><rss version="2.0"><channel>
        <title>&b;</title></channel></rss>"#;
    let endpoint = Endpoint::answering(200, "", bomb).await;
    if let Ok(done) = world(&endpoint).run_outside(&plan(&alone(&node(json!({}))))).await {
        assert!(!done.to_string().contains("aaaa"), "{done}");
    }
    let closed = World::new().inputs(json!({"url": "http://127.0.0.1:9/feed"}));
    let error = closed.run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused);
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({}), vec![]),
        (json!({"limit": 0}), vec!["/limit range"]),
        (json!({"headers": "x"}), vec!["/headers type"]),
        (json!({"since": 5, "format": "atom"}), vec!["/format unknown_field", "/since type"]),
    ] {
        assert_eq!(refused(&node(more.clone())), problems, "{more}");
    }
}
