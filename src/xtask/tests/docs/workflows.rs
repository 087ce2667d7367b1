//! `docs/WORKFLOWS.md`: the prose in `workflows/page.md`, with the node catalogue from the engine's table.

use std::fmt::Write as _;

use anyhow::Result;
use engine::nodes::{CATALOGUE, Effect, FieldRow, Needed, NodeType, common_fields};
use engine::{TEMPLATE_FILTERS, TEMPLATE_TESTS};
use models::Prices;

use super::protocol::fill;

/// The prose; a marker such as `{{nodes}}` has a line to itself.
const PROSE: &str = include_str!("workflows/page.md");

pub(super) fn page() -> Result<String> {
    let parts = [
        ("common", fields(&common_fields())),
        ("prices", prices()),
        ("cached", cached()),
        ("overview", overview()),
        ("filters", words("Filters", &TEMPLATE_FILTERS)),
        ("tests", words("Tests", &TEMPLATE_TESTS)),
        ("nodes", nodes()?),
    ];
    fill(PROSE, &parts)
}

fn words(kind: &str, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("{kind} of MiniJinja: {}.", words.join(", "))
}

fn prices() -> String {
    let Prices { as_of, models } = Prices::known();
    let names: Vec<String> = models.keys().map(|name| format!("`{name}`")).collect();
    format!("Prices of {as_of} are known for {}, and their dated versions.", names.join(", "))
}

fn cached() -> String {
    let pure = CATALOGUE.iter().filter(|kind| kind.effect == Effect::Pure);
    let names: Vec<String> = pure.map(|kind| format!("`{}`", kind.name)).collect();
    format!("- `cache_seconds` is for the pure nodes: {}.", names.join(", "))
}

fn overview() -> String {
    let mut table = "| type | group | does |\n|---|---|---|\n".to_owned();
    for kind in CATALOGUE {
        let NodeType { name, group, summary, .. } = kind;
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| [`{name}`](#{name}) | {group} | {} |", cell(summary));
    }
    table
}

fn nodes() -> Result<String> {
    let mut page = String::new();
    for kind in CATALOGUE {
        let name = kind.name;
        write!(
            page,
            "<a id=\"{name}\"></a>\n\n### `{name}`\n\n{}\n\n{}",
            kind.summary,
            fields(&kind.fields())
        )?;
        writeln!(page, "\n- Result: {}", kind.result)?;
        writeln!(page, "- Effect: `{}`. {}", kind.effect.as_str(), kind.effect.meaning())?;
        write!(page, "\n```json\n{}\n```\n\n", kind.example_text())?;
    }
    Ok(page)
}

fn fields(rows: &[FieldRow]) -> String {
    let mut table = "| field | needed | is | for |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let needed = match row.needed {
            Needed::Yes => "yes",
            Needed::OneOf => "one of these",
            Needed::No => "",
        };
        let default = row.default.as_ref().map(|value| format!("; default `{value}`")).unwrap_or_default();
        let (kind, text) = (cell(&row.kind), cell(&row.description));
        let _ = writeln!(table, "| `{}` | {needed} | {kind}{default} | {text} |", row.name);
    }
    table
}

/// Escapes bars, which would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_section_with_its_example() {
        let page = page().unwrap();
        for kind in CATALOGUE {
            assert!(page.contains(&format!("\n### `{}`\n", kind.name)), "{}", kind.name);
            assert!(page.contains(&kind.example_text()), "{}", kind.name);
        }
    }

    #[test]
    fn every_graph_on_the_page_checks() {
        let page = page().unwrap();
        let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        let graphs: Vec<serde_json::Value> = blocks
            .map(|block| serde_json::from_str(block).unwrap())
            .filter(|value: &serde_json::Value| value.get("format").is_some())
            .collect();
        assert!(graphs.len() >= 2, "{}", graphs.len());
        for graph in graphs {
            assert_eq!(engine::check(&graph).err(), None, "{graph}");
        }
    }
}
