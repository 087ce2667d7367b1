//! The file checks of `cargo xtask layers`: plain text rules that no lint covers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::language::Language;
use crate::modules::Modules;
use crate::rules::MAX_LINES;
use crate::unlinked::Files;

/// Written in two parts, so that the check does not match this file.
const UNFINISHED: &str = concat!("todo", "!(");
/// Path prefixes that exist only on the writer's machine.
const MACHINE_PATHS: &[&str] = &["/work/", "/root/", "/tmp/"];
/// Files with texts for people: pages, browser files, and the table of variables.
const TEXTS: &[&str] = &[".md", ".html", ".js", ".toml"];
const CODE: &[&str] = &["src/", "actors/", "integration-tests/"];

/// Returns the findings in all source files and pages under `root`, and the counts of the language rules.
///
/// # Errors
/// When a folder or file cannot be read.
pub(crate) fn check(root: &Path) -> Result<(Vec<String>, Language)> {
    let mut findings = Vec::new();
    let (mut language, mut modules, mut files) = (Language::default(), Modules::default(), Files::default());
    walk(root, "", &mut |path, text, folder| {
        language.count(path, text);
        if is_code(path) || path.ends_with(".md") {
            findings.extend(scan(path, text));
            findings.extend(links(path, text, folder));
        }
        if is_code(path) {
            modules.read(path, text);
            files.read(path, text);
        }
    })?;
    findings.extend(modules.arrows());
    findings.extend(files.unlinked());
    findings.sort();
    Ok((findings, language))
}

/// Calls `see` with the path, text and folder of every source file, page and text table.
fn walk(folder: &Path, prefix: &str, see: &mut impl FnMut(&str, &str, &Path)) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            walk(&entry.path(), &format!("{path}/"), see)?;
        } else if kind.is_file() && (is_code(&path) || TEXTS.iter().any(|ending| name.ends_with(ending))) {
            let text = fs::read_to_string(entry.path()).with_context(|| path.clone())?;
            see(&path, &text, folder);
        }
    }
    Ok(())
}

fn is_code(path: &str) -> bool {
    path.ends_with(".rs") && CODE.iter().any(|folder| path.starts_with(folder))
}

fn scan(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let code = is_code(path);
    for (number, line) in (1..).zip(text.lines()) {
        if code && line.contains(UNFINISHED) {
            findings.push(format!("{path}:{number}: {UNFINISHED}…) is left"));
        }
        if code && path.starts_with("src/server/") && line.contains("diesel::") {
            findings.push(format!("{path}:{number}: diesel:: in the server; only `store` contains SQL"));
        }
        if path.ends_with(".md")
            && let Some(found) = MACHINE_PATHS.iter().find(|found| names_path(line, found))
        {
            findings.push(format!("{path}:{number}: {found} is a path of one machine"));
        }
    }
    let lines = text.lines().count();
    // A table may have any length.
    let table = path.ends_with("/table.rs");
    if code && !table && lines > MAX_LINES {
        findings.push(format!("{path}: {lines} lines, more than {MAX_LINES}; split it"));
    }
    findings
}

/// Links and images of a page whose target file does not exist.
fn links(path: &str, text: &str, folder: &Path) -> Vec<String> {
    // Page sources under src/ are checked in the generated page.
    if !path.ends_with(".md") || path.starts_with("src/") {
        return Vec::new();
    }
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let attributes = ["src=\"", "srcset=\"", "href=\""];
    let quoted =
        attributes.iter().flat_map(|mark| text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()));
    let files = targets.chain(quoted).filter_map(|target| target.split('#').next());
    // Links to other hosts, and links within the page.
    let elsewhere = |file: &str| file.is_empty() || file.contains(':') || file.starts_with('/');
    files
        .filter(|file| !elsewhere(file) && !folder.join(file).exists())
        .map(|file| format!("{path}: broken link to {file}"))
        .collect()
}

/// Whether `found` starts a path in `line`; false in the middle of a URL or a relative path.
fn names_path(line: &str, found: &str) -> bool {
    line.match_indices(found).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-~/}>".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_is_found_in_every_code_folder() {
        let text = format!("fn main() {{\n    {UNFINISHED})\n}}\n");
        for path in ["src/cli/src/main.rs", "actors/src/lib.rs", "integration-tests/tests/all.rs"] {
            let found = scan(path, &text);
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
        }
        assert!(scan("docs/notes.md", &text).is_empty());
    }

    #[test]
    fn sql_is_found_in_the_server_but_not_in_the_store() {
        assert_eq!(scan("src/server/src/http/chat.rs", "use diesel::prelude::*;").len(), 1);
        assert!(scan("src/store/src/lib.rs", "use diesel::prelude::*;").is_empty());
    }

    #[test]
    fn long_files_are_found() {
        assert!(scan("src/kernel/src/lib.rs", &"//\n".repeat(MAX_LINES)).is_empty());
        assert_eq!(
            scan("src/kernel/src/lib.rs", &"//\n".repeat(MAX_LINES + 1)),
            ["src/kernel/src/lib.rs: 451 lines, more than 450; split it"]
        );
        assert!(scan("docs/API.md", &"a\n".repeat(5000)).is_empty());
        assert!(scan("src/wire/src/error_code/table.rs", &"//\n".repeat(5000)).is_empty());
    }

    #[test]
    fn machine_paths_in_pages_are_found() {
        for text in ["see /work/main", "`/root/.cargo`", "--data=/tmp/x", "/tmp/x"] {
            assert_eq!(scan("README.md", text).len(), 1, "{text}");
            assert!(scan("src/cli/src/main.rs", text).is_empty(), "code may: {text}");
        }
        for text in ["https://example.org/work/x", "./tmp/x", "$HOME/work/x", "{dir}/tmp/x"] {
            assert!(scan("docs/API.md", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_broken_link_is_found() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page =
            "[a](Cargo.toml) [b](src/nothing.rs#top) [c](https://e.org/x) [d](#here) <img src=\"none.png\">";
        assert_eq!(
            links("README.md", page, folder),
            ["README.md: broken link to src/nothing.rs", "README.md: broken link to none.png"]
        );
        assert!(links("main.rs", page, folder).is_empty());
    }

    #[test]
    fn the_walk_skips_build_output() {
        let root = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        for folder in ["src/a/src", "src/a/target", ".git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("lib.rs"), UNFINISHED).unwrap();
        }
        let found = check(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.unwrap().0.len(), 1);
    }
}
