//! `rss_read`: fetches a feed and returns its items.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use minijinja::Value as View;
use sandbox::FeedItem;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::document;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::outbound;
use crate::template::{as_text, fill, has_holes};

/// Default time limit per attempt, to fetch and read the feed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Default and maximum number of items.
const ITEMS: u32 = 20;
const MOST_ITEMS: u32 = 500;

pub(crate) const TYPE: NodeType = NodeType {
    name: "rss_read",
    group: "network",
    summary: "Fetches a feed (RSS, Atom or JSON Feed) of at most 10 MiB and returns its items. `[[name]]` in url and headers is \
              a secret of the vault.",
    effect: Effect::Reads,
    secrets: &["url", "headers"],
    schema,
    result: "`{title, link, items: [{id, title, link, summary, content, authors, categories, published_at, updated_at}]}` in the \
             feed's order; HTML is returned as plain text, times are RFC 3339, and missing values are null. An item without an id receives \
             a stable one; RSS has only one time, which is used for both.",
    members: &["title", "link", "items"],
    example: || {
        json!({"name": "news", "type": "rss_read", "url": "https://example.com/feed.xml", "limit": 10,
               "since": "{{ inputs.since }}"})
    },
    build,
};

struct RssRead {
    url: Value,
    headers: Option<Value>,
    limit: u32,
    since: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["url"], "properties": {
        "url": {"type": "string", "description": "An http or https address of a public host; a template."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Texts; templates."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": ITEMS, "description": "Maximum number of items."},
        "since": {"type": "string",
                  "description": "Omits items published and changed before this time; RFC 3339, a template. Items without a \
                                  time are kept."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let url = outbound::url(fields, "url", check);
    let headers = outbound::object(fields, "headers", check);
    outbound::check_headers(headers.as_ref(), &fields.at("headers"), check);
    let limit = fields.whole("limit", 1..=MOST_ITEMS, &mut check.problems).unwrap_or(ITEMS);
    let since = optional_text_field(fields, "since", check);
    if let Some(given) = since.as_ref().and_then(Value::as_str).filter(|given| !has_holes(given))
        && let Err(error) = time(given)
    {
        let problem = FieldError::new(fields.at("since"), "time", error.message);
        check.note_at_saving(problem.suggest("\"since\": \"{{ inputs.since }}\""));
    }
    Some(Box::new(RssRead { url: url?, headers, limit, since }))
}

#[async_trait]
impl Node for RssRead {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = fill_fields([("url", Some(&self.url)), ("headers", self.headers.as_ref())], scope)?;
        if let (Some(since), Some(members)) = (&self.since, input.as_object_mut()) {
            let since = fill(since, scope)?;
            if !since.is_null() {
                members.insert("since".to_owned(), Value::String(as_text(&since)));
            }
        }
        Ok(input)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let since = input.get("since").and_then(Value::as_str).map(time).transpose()?;
        let fields = outbound::reveal(input, call).await?;
        let answer = outbound::get(&fields, document::MOST_BYTES, call).await?;
        let from = answer.url().to_string();
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        // New items may be anywhere in a feed.
        let read = if since.is_none() { most } else { usize::MAX };
        let bytes = document::bytes_of(answer).await?;
        let feed = document::read_feed(bytes, from, read, call.sandbox()).await?;
        let items = feed.items.into_iter().filter(|item| is_since(item, since)).take(most);
        let items: Vec<Value> = items.map(written).collect();
        Ok(json!({"title": feed.title.map(|title| title.text), "link": feed.link, "items": items}))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

fn time(text: &str) -> Result<DateTime<Utc>, NodeError> {
    let read = DateTime::parse_from_rfc3339(text.trim());
    read.map(|time| time.to_utc()).map_err(|_| {
        NodeError::failed(format!("'{text}' in 'since' is not a time; write it like 2026-01-31T09:00:00Z"))
    })
}

fn is_since(item: &FeedItem, since: Option<DateTime<Utc>>) -> bool {
    let latest = item.published_at.max(item.updated_at);
    since.zip(latest).is_none_or(|(since, latest)| latest >= since)
}

fn written(item: FeedItem) -> Value {
    let text = |text: Option<sandbox::FeedText>| text.map(|text| text.text);
    json!({"id": item.id, "title": text(item.title), "link": item.link, "summary": text(item.summary),
           "content": text(item.content), "authors": item.authors, "categories": item.categories,
           "published_at": item.published_at, "updated_at": item.updated_at})
}
