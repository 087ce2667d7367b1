//! `docs/PROTOCOL.md`: the prose in `protocol/page.md`, with tables and examples for the declared operations.

mod chat;
mod nodes;
mod operations;
mod runs;
mod socket;
mod threads;

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Serialize;

/// The prose; a marker such as `{{events}}` has a line to itself.
const PROSE: &str = include_str!("protocol/page.md");

pub(super) fn page() -> Result<String> {
    let page = operations::fill(PROSE)?;
    fill(
        &page,
        &[
            ("create_thread", chat::create_thread()?),
            ("add_user_message", chat::add_user_message()?),
            ("retry_after_item", chat::retry_after_item()?),
            ("turn_interface", chat::turn(wire::chat::Dialect::Interface)?),
            ("turn_chatkit", chat::turn(wire::chat::Dialect::Chatkit)?),
            ("events", chat::event_table()?),
            ("updates", chat::update_table()?),
            ("items", chat::item_table()?),
            ("stop", chat::stop_table()?),
            ("failure", chat::failures()?),
            ("list_items", threads::list_items()?),
            ("page_of_items", threads::page_of_items()?),
            ("node", nodes::node()?),
            ("run_waiting", runs::waiting()?),
            ("run_states", runs::states()),
            ("run_stream", runs::stream()?),
            ("run_events", runs::event_table()?),
            ("trace", runs::trace()?),
            ("audit_actions", audit_actions()),
            ("socket_requests", socket::requests()?),
            ("socket_answers", socket::answers()?),
        ],
    )
}

fn audit_actions() -> String {
    let row = |action: &wire::AuditAction| format!("| `{}` | {} |\n", action.as_str(), action.meaning());
    let rows: String = wire::AuditAction::ALL.iter().map(row).collect();
    format!("| action | meaning |\n|---|---|\n{rows}")
}

pub(super) fn fill(prose: &str, parts: &[(&str, String)]) -> Result<String> {
    let mut page = prose.to_owned();
    for (name, text) in parts {
        let marker = format!("\n{{{{{name}}}}}\n");
        ensure!(
            page.matches(&marker).count() == 1,
            "`{{{{{name}}}}}` must occur exactly once, alone on its line"
        );
        page = page.replace(&marker, &format!("\n{}\n", text.trim_end()));
    }
    let list = contents(&page);
    page = page.replace("\n{{contents}}\n", &format!("\n{}\n", list.trim_end()));
    ensure!(!page.contains("\n{{"), "a marker of the page has no text");
    Ok(page)
}

/// Links to a page's headings, except those for single nodes.
fn contents(page: &str) -> String {
    let mut list = String::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let (indent, title) = match (line.strip_prefix("## "), line.strip_prefix("### ")) {
            (Some(title), _) => ("", title),
            (None, Some(title)) => ("  ", title),
            (None, None) => continue,
        };
        if !fenced && !title.starts_with('`') {
            // Writing to a String cannot fail.
            let _ = writeln!(list, "{indent}- [{title}](#{})", anchor(title));
        }
    }
    list
}

/// The anchor that GitHub gives a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A fenced block of indented JSON.
fn block(value: &impl Serialize) -> Result<String> {
    Ok(format!("```json\n{}\n```", serde_json::to_string_pretty(value)?))
}

/// A tagged value's `type`.
fn tag(value: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(value)?;
    Ok(value.get("type").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_and_parts_must_match() {
        let part = |name| [(name, "x\n".to_owned())];
        assert_eq!(fill("a\n{{p}}\nb\n", &part("p")).unwrap(), "a\nx\nb\n");
        assert!(fill("a\n", &part("p")).is_err());
        assert!(fill("a\n{{p}}\n\n{{q}}\n", &part("p")).is_err());
    }

    #[test]
    fn contents_link_to_headings_outside_code_blocks() {
        let page =
            "# A\n\n{{contents}}\n\n## One of two\n```\n## No heading\n```\n### A run's end\n### `llm`\n";
        let list = "- [One of two](#one-of-two)\n  - [A run's end](#a-runs-end)\n";
        assert_eq!(contents(page), list);
        assert!(fill(page, &[]).unwrap().starts_with(&format!("# A\n\n{list}\n## One of two\n")));
    }

    #[test]
    fn every_operation_is_on_the_page() {
        let page = page().unwrap();
        for operation in wire::operations::all() {
            let row = format!("| `{} {}` |", operation.method.as_str(), operation.path);
            assert_eq!(page.matches(&row).count(), 1, "{row}");
        }
    }

    #[test]
    fn every_code_on_the_page_exists() {
        let page = page().unwrap();
        for (at, link) in page.match_indices("ERRORS.md#") {
            let rest = &page[at + link.len()..];
            let code: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != ')').collect();
            assert!(wire::ErrorCode::from_code(&code).is_some(), "{code}");
        }
    }
}
