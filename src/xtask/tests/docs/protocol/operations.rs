//! The operation tables, with example bodies.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use wire::operation::{Access, Answer, Operation};

/// Replaces the markers `{{operations <part>}}`, `{{request <id>}}` and `{{answer <id>}}`, each on its own line.
pub(super) fn fill(prose: &str) -> Result<String> {
    let mut page = String::with_capacity(prose.len() * 2);
    for line in prose.lines() {
        let marker = line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}"));
        let text = match marker.and_then(|marker| marker.split_once(' ')) {
            Some((kind, name)) => text(kind, name).with_context(|| line.to_owned())?,
            None => line.to_owned(),
        };
        page.push_str(text.trim_end());
        page.push('\n');
    }
    Ok(page)
}

fn text(kind: &str, name: &str) -> Result<String> {
    if kind == "operations" {
        let part = wire::operations::PARTS.iter().find(|part| part.name == name);
        return table(part.context("part not found")?.operations);
    }
    let operation = wire::operations::all().find(|operation| operation.id == name);
    let operation = operation.context("operation not found")?;
    let example = match kind {
        "request" => operation.body.and_then(|body| body.shape.example),
        "answer" => operation.answers.iter().find_map(|answer| answer.shape?.example),
        _ => bail!("unknown marker"),
    };
    let example = example.context("it has no example")?;
    Ok(format!("```json\n{example}\n```"))
}

fn table(operations: &[&Operation]) -> Result<String> {
    let mut table = "| method and path | does | scope | success |\n|---|---|---|---|\n".to_owned();
    for operation in operations {
        let scope = match operation.access {
            Access::Scope(scope) | Access::Anywhere(scope) => format!("`{scope}`"),
            Access::User => "a sign-in".to_owned(),
            Access::Own => String::new(),
        };
        let answers: Vec<String> = operation.answers.iter().map(success).collect();
        let (method, path, about) = (operation.method.as_str(), operation.path, operation.about);
        let query: Vec<String> =
            operation.query.iter().map(|parameter| format!("`?{}=`", parameter.name)).collect();
        let query = if query.is_empty() { String::new() } else { format!(" Takes {}.", query.join(", ")) };
        writeln!(table, "| `{method} {path}` | {about}{query} | {scope} | {} |", answers.join("; "))?;
    }
    Ok(table)
}

fn success(answer: &Answer) -> String {
    let Answer { status, when, .. } = answer;
    if when.is_empty() { status.to_string() } else { format!("{status} if {when}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_refer_to_declared_operations() {
        let page = fill("a\n{{request create_workspace}}\n{{contents}}\n").unwrap();
        assert!(
            page.starts_with("a\n```json\n{")
                && page.contains("\"support\"")
                && page.ends_with("{{contents}}\n")
        );
        assert!(fill("{{operations health}}").unwrap().contains("| `GET /healthz` |"));
        for bad in
            ["{{operations nothing}}", "{{request nothing}}", "{{answer delete_workspace}}", "{{x healthz}}"]
        {
            assert!(fill(bad).is_err(), "{bad}");
        }
    }
}
