//! `callboard node list` and `callboard node show`: the node catalogue. Neither needs a service.

use std::fmt::Write as _;

use engine::nodes::{CATALOGUE, FieldRow, Needed, NodeType, common_fields, find};
use textwrap::WordSplitter;

use crate::output::{CommandError, pretty, say};

/// Line width in characters.
const WIDTH: usize = 100;
/// Column of a field's text.
const INDENT: usize = 34;

pub(crate) fn list(json: bool) -> Result<(), CommandError> {
    if json {
        return say(pretty(&CATALOGUE.iter().map(NodeType::record).collect::<Vec<_>>())?);
    }
    let mut text = row("TYPE", "GROUP", "SUMMARY");
    for kind in CATALOGUE {
        text.push_str(&row(kind.name, kind.group, kind.summary));
    }
    text.push_str("\n`callboard node show <type>` describes one.");
    say(text)
}

fn row(name: &str, group: &str, summary: &str) -> String {
    format!("{name:<16} {group:<7} {summary}\n")
}

pub(crate) fn show(name: &str, json: bool) -> Result<(), CommandError> {
    let kind = find(name).map_err(|unknown| unknown.to_string())?;
    if json { say(pretty(&kind.record())?) } else { say(page(kind)) }
}

fn page(kind: &NodeType) -> String {
    let mut text = format!("{} ({})\n", kind.name, kind.group);
    paragraph(&mut text, "", kind.summary);
    paragraph(&mut text, "Effect: ", &format!("{}. {}", kind.effect.as_str(), kind.effect.meaning()));
    paragraph(&mut text, "Result: ", kind.result);
    fields(&mut text, "Fields", &kind.fields());
    fields(&mut text, "Fields of every node, besides name and type", &common_fields());
    let _ = write!(text, "\nExample\n{}", kind.example_text());
    text
}

fn paragraph(text: &mut String, label: &str, words: &str) {
    for (index, line) in textwrap::wrap(&format!("{label}{words}"), width(0)).iter().enumerate() {
        let indent = if index == 0 { 0 } else { label.len() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}

fn fields(text: &mut String, title: &str, rows: &[FieldRow]) {
    let _ = writeln!(text, "\n{title}");
    for row in rows {
        let needed = match row.needed {
            Needed::Yes => "required",
            Needed::OneOf => "one of",
            Needed::No => "",
        };
        let default = row.default.as_ref().map(|value| format!("; default {value}")).unwrap_or_default();
        let described =
            if row.description.is_empty() { String::new() } else { format!(" {}", row.description) };
        let words = format!("{}{default}.{described}", row.kind);
        for (index, line) in textwrap::wrap(&words, width(INDENT)).iter().enumerate() {
            let (name, needed) = if index == 0 { (row.name.as_str(), needed) } else { ("", "") };
            let _ = writeln!(text, "  {name:<20} {needed:<10} {line}");
        }
    }
}

/// Wrap options for a line after an indent; words are not split at hyphens.
fn width(indent: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(WIDTH - indent).word_splitter(WordSplitter::NoHyphenation).break_words(false)
}
