//! Feed parsing.

use feed_rs::model::{Entry, Link, Text};
use feed_rs::parser;

use super::damaged;
use crate::document::{DocumentLimits, DocumentProblem};
use crate::feed::{Feed, FeedItem, FeedText};

/// Reads the first items, up to the page limit.
pub(super) fn read(bytes: &[u8], from: String, limits: DocumentLimits) -> Result<Feed, DocumentProblem> {
    // A later step converts HTML to text; it is never rendered as a page.
    let parser = parser::Builder::new().sanitize_content(false).base_uri(Some(from)).id_generator(id).build();
    let feed = parser.parse(bytes).map_err(|error| damaged(error.to_string()))?;
    let items: Vec<FeedItem> = feed.entries.into_iter().take(limits.pages).map(item).collect();
    let length = |text: &Option<FeedText>| text.as_ref().map_or(0, |text| text.text.len());
    let said = items.iter().flat_map(|item| [&item.title, &item.summary, &item.content]).map(length);
    if said.sum::<usize>() > limits.text {
        return Err(DocumentProblem::TooLarge(format!(
            "its items have more than {} bytes of text",
            limits.text
        )));
    }
    Ok(Feed { title: feed.title.map(text), link: page(feed.links), items })
}

/// A stable id for an item without one.
fn id(links: &[Link], title: &Option<Text>, from: Option<&str>) -> String {
    match (links, title) {
        ([], None) => String::new(),
        _ => parser::generate_id(links, title, from),
    }
}

fn item(entry: Entry) -> FeedItem {
    let id = if entry.id.is_empty() { beginning(&entry) } else { entry.id };
    let content = entry.content.and_then(|content| {
        let html = is_html(content.content_type.subty().as_str());
        content.body.map(|text| FeedText { text, html })
    });
    FeedItem {
        id,
        title: entry.title.map(text),
        link: page(entry.links),
        summary: entry.summary.map(text),
        content,
        authors: entry.authors.into_iter().filter_map(|author| author.name.or(author.email)).collect(),
        categories: entry
            .categories
            .into_iter()
            .map(|category| category.label.unwrap_or(category.term))
            .collect(),
        published_at: entry.published,
        updated_at: entry.updated,
    }
}

fn text(text: Text) -> FeedText {
    FeedText { html: is_html(text.content_type.subty().as_str()), text: text.content }
}

fn is_html(kind: &str) -> bool {
    matches!(kind, "html" | "xhtml" | "xml")
}

/// An id for an item without id, link and title: its time and its first characters.
fn beginning(entry: &Entry) -> String {
    let said = entry.summary.as_ref().map(|summary| summary.content.as_str());
    let said =
        said.or(entry.content.as_ref().and_then(|content| content.body.as_deref())).unwrap_or_default();
    let time =
        entry.published.or(entry.updated).map(|time| format!("{} ", time.to_rfc3339())).unwrap_or_default();
    time + &said.chars().take(80).collect::<String>()
}

/// The item's web page: a link without another purpose.
fn page(links: Vec<Link>) -> Option<String> {
    let is_page = |link: &&Link| link.rel.as_deref().is_none_or(|rel| rel == "alternate");
    links.iter().find(is_page).or(links.first()).map(|link| link.href.clone())
}
