//! News feeds in a common format.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A feed: RSS, Atom or JSON Feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// The title.
    pub title: Option<FeedText>,
    /// The feed's web page.
    pub link: Option<String>,
    /// The items, in feed order.
    pub items: Vec<FeedItem>,
}

/// A feed item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedItem {
    /// The id; if the feed gives none, it is derived from link and title, or from the feed's address and title.
    pub id: String,
    /// The title.
    pub title: Option<FeedText>,
    /// The item's web page.
    pub link: Option<String>,
    /// A short description.
    pub summary: Option<FeedText>,
    /// The full content.
    pub content: Option<FeedText>,
    /// Author names.
    pub authors: Vec<String>,
    /// Topics.
    pub categories: Vec<String>,
    /// Publication time.
    pub published_at: Option<DateTime<Utc>>,
    /// Last update time.
    pub updated_at: Option<DateTime<Utc>>,
}

/// Text in a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedText {
    /// The text as written.
    pub text: String,
    /// Whether the text is HTML.
    pub html: bool,
}
