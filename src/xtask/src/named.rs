//! Checks that each repository path that a page names in back quotes exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// File endings that are used in the repository.
const ENDINGS: &[&str] = &[".rs", ".md", ".html", ".js", ".css", ".toml", ".json", ".sql", ".py"];
/// Top-level folders.
const TOP: &[&str] =
    &["src/", "actors/", "docs/", "examples/", "integration-tests/", "migrations/", "deploy/"];
/// Pages that describe the tree as it was when they were written.
const HISTORY: &str = "docs/adr/";

/// The paths that pages name but that do not exist.
///
/// # Errors
/// When a folder or page cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut tree = BTreeSet::new();
    walk(root, "", &mut tree)?;
    let mut findings = Vec::new();
    for page in tree.iter().filter(|path| path.ends_with(".md") && !path.starts_with(HISTORY)) {
        let text = fs::read_to_string(root.join(page)).with_context(|| page.clone())?;
        findings.extend(missing(page, &text, &tree));
    }
    Ok(findings)
}

fn walk(folder: &Path, prefix: &str, tree: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), tree)?;
        }
        tree.insert(path);
    }
    Ok(())
}

fn missing(page: &str, text: &str, tree: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        // The text between an odd and an even back quote.
        for span in line.split('`').skip(1).step_by(2).filter(|span| is_path(span)) {
            let span = span.trim_end_matches('/');
            let end = format!("/{span}");
            if !tree.iter().any(|path| path == span || path.ends_with(&end)) {
                findings.push(format!("{page}:{number}: `{span}` is not in the repository"));
            }
        }
    }
    findings
}

/// Whether a span can only be a path in the repository: not an address, a pattern or a media type.
fn is_path(span: &str) -> bool {
    let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
    let ours = ENDINGS.iter().any(|ending| span.ends_with(ending))
        || TOP.iter().any(|folder| span.starts_with(folder));
    plain && ours && span.contains('/') && !span.starts_with(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_found() {
        let tree: BTreeSet<String> =
            ["src", "src/wire", "src/wire/src/run.rs", "docs/A.md"].map(str::to_owned).into();
        let found = |text: &str| missing("docs/A.md", text, &tree);
        for fine in [
            "`src/wire/src/run.rs` and `wire/src/run.rs`",
            "`src/wire/`",
            "`text/html`, `/api/runs`, `src/<noun>.rs`, `run.rs`, `../x/y.rs`, `https://a/b.json`",
            "src/gone.rs without quotes",
        ] {
            assert_eq!(found(fine), Vec::<String>::new(), "{fine}");
        }
        assert_eq!(found("a\n`src/gone.rs`"), ["docs/A.md:2: `src/gone.rs` is not in the repository"]);
        assert_eq!(found("`ire/src/run.rs`").len(), 1);
    }
}
