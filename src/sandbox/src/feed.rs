//! Feeds of news, whichever of their formats one has.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A feed: RSS, Atom or JSON Feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// Its title.
    pub title: Option<FeedText>,
    /// Its page.
    pub link: Option<String>,
    /// What is in it, in its order.
    pub items: Vec<FeedItem>,
}

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedItem {
    /// What it is known by; made of link and title, or the feed's address and title, where it has none.
    pub id: String,
    /// Its title.
    pub title: Option<FeedText>,
    /// Its page.
    pub link: Option<String>,
    /// A few words about it.
    pub summary: Option<FeedText>,
    /// The whole of it.
    pub content: Option<FeedText>,
    /// Names.
    pub authors: Vec<String>,
    /// What it is about.
    pub categories: Vec<String>,
    /// When it came out.
    pub published_at: Option<DateTime<Utc>>,
    /// When it was changed.
    pub updated_at: Option<DateTime<Utc>>,
}

/// A text of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedText {
    /// As it is written.
    pub text: String,
    /// Whether it is HTML.
    pub html: bool,
}
