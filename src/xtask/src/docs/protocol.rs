//! `docs/PROTOCOL.md`: the prose of `protocol/page.md`, with examples that serde writes from the wire types.

mod chat;
mod runs;
mod sign_in;
mod socket;
mod threads;
mod triggers;
mod vault;
mod workflows;

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Serialize;

/// A marker such as `{{events}}` stands alone in its line.
const PROSE: &str = include_str!("protocol/page.md");

pub(super) fn page() -> Result<String> {
    fill(
        PROSE,
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
            ("create_workflow", workflows::create_workflow()?),
            ("workflow", workflows::workflow()?),
            ("update_workflow", workflows::update_workflow()?),
            ("public_workflow", workflows::public_workflow()?),
            ("create_version", workflows::create_version()?),
            ("version", workflows::version()?),
            ("versions", workflows::versions()?),
            ("publish", workflows::publish()?),
            ("check", workflows::check()?),
            ("diff", workflows::diff()?),
            ("node", workflows::node()?),
            ("create_run", runs::create()?),
            ("run", runs::record()?),
            ("run_list", runs::list()?),
            ("run_waiting", runs::waiting()?),
            ("rerun", runs::rerun()?),
            ("run_states", runs::states()),
            ("run_stream", runs::stream()?),
            ("run_events", runs::event_table()?),
            ("trace", runs::trace()?),
            ("cron_config", triggers::cron_config()?),
            ("cron", triggers::cron()?),
            ("webhook_config", triggers::webhook_config()?),
            ("webhook", triggers::webhook()?),
            ("webhook_begun", triggers::webhook_begun()?),
            ("create_credential", vault::create()?),
            ("credential", vault::record()?),
            ("start_sign_in", sign_in::start()?),
            ("sign_in_started", sign_in::started()?),
            ("verify_code", sign_in::verify()?),
            ("signed_in", sign_in::signed_in()?),
            ("refresh", sign_in::refresh()?),
            ("me", sign_in::me()?),
            ("socket_requests", socket::requests()?),
            ("socket_answers", socket::answers()?),
        ],
    )
}

pub(super) fn fill(prose: &str, parts: &[(&str, String)]) -> Result<String> {
    let mut page = prose.to_owned();
    for (name, text) in parts {
        let marker = format!("\n{{{{{name}}}}}\n");
        ensure!(page.matches(&marker).count() == 1, "`{{{{{name}}}}}` must stand once, alone in its line");
        page = page.replace(&marker, &format!("\n{}\n", text.trim_end()));
    }
    let list = contents(&page);
    page = page.replace("\n{{contents}}\n", &format!("\n{}\n", list.trim_end()));
    ensure!(!page.contains("\n{{"), "a marker of the page has no text");
    Ok(page)
}

/// Links to the headings of a page, except those of single nodes.
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

/// The anchor that GitHub gives to a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A fenced block of indented JSON.
fn block(value: &impl Serialize) -> Result<String> {
    Ok(format!("```json\n{}\n```", serde_json::to_string_pretty(value)?))
}

/// The `type` of a tagged value.
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
    fn contents_link_to_the_headings_outside_of_blocks() {
        let page =
            "# A\n\n{{contents}}\n\n## One of two\n```\n## No heading\n```\n### A run's end\n### `llm`\n";
        let list = "- [One of two](#one-of-two)\n  - [A run's end](#a-runs-end)\n";
        assert_eq!(contents(page), list);
        assert!(fill(page, &[]).unwrap().starts_with(&format!("# A\n\n{list}\n## One of two\n")));
    }

    /// The paths that handlers are registered for, as they stand in the sources.
    fn routes(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let calls = text.split("resource(").skip(1).map(|rest| rest.trim_start());
            let paths = calls.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
            found.extend(paths.map(str::to_owned));
        }
    }

    /// A path with its parameters as `*`.
    fn bare(path: &str) -> String {
        let segment = |one: &str| if one.starts_with('{') { "*".to_owned() } else { one.to_owned() };
        path.split('/').map(segment).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn every_route_is_on_the_page_and_known_to_a_slip() {
        let http = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src/http");
        let mut found = Vec::new();
        routes(&http, &mut found);
        assert!(found.len() > 20, "{found:?}");
        let known = std::fs::read_to_string(http.join("paths.rs")).unwrap();
        let page = page().unwrap();
        let words =
            page.split(|c: char| c.is_whitespace() || matches!(c, '`' | '?' | '|' | '"' | '\'' | ','));
        let told: std::collections::BTreeSet<String> =
            words.filter(|word| word.starts_with('/')).map(bare).collect();
        for path in found.iter().map(|path| bare(path)) {
            assert!(known.contains(&format!("\"{path}\"")), "{path} is missing in PATHS of http/paths.rs");
            assert!(told.contains(&path), "{path} is missing in docs/protocol/page.md; it has {told:?}");
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
