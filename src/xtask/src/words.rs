//! The part of `cargo xtask layers` that counts words: texts name who acts and what happens, in the field's words.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Words and phrases that hide who acts or what happens, in lower case.
const VAGUE: &[&str] = &[
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("who", "ever"),
    concat!("it is", " looked"),
    concat!("it was not", " looked"),
    concat!("is told", " of"),
    concat!("what it comes", " to"),
    concat!("is none", " that"),
    concat!("goes", " on"),
];

/// Where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Pages that users read.
    Pages,
    /// Code outside comments: names, help, error and log texts.
    Code,
    /// Comments.
    Comments,
}

/// The most that each group may hold. A limit only goes down.
const LIMITS: [(Group, usize); 3] = [(Group::Pages, 138), (Group::Code, 344), (Group::Comments, 146)];

/// Findings of every group that is over its limit; prints the limits that can go down.
///
/// # Errors
/// When a folder or file cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut counts = [0; LIMITS.len()];
    walk(root, "", &mut counts)?;
    let mut findings = Vec::new();
    for ((group, limit), count) in LIMITS.into_iter().zip(counts) {
        if count > limit {
            findings.push(format!(
                "{group:?}: {count} vague words, at most {limit}; say who acts and what happens instead of {VAGUE:?}"
            ));
        } else if count < limit {
            println!(
                "words: {group:?} has {count} vague words; lower its limit of {limit} in src/xtask/src/words.rs"
            );
        }
    }
    Ok(findings)
}

fn walk(folder: &Path, prefix: &str, counts: &mut [usize; LIMITS.len()]) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            walk(&entry.path(), &format!("{path}/"), counts)?;
        } else if kind.is_file() && (name.ends_with(".rs") || name.ends_with(".md")) {
            let text = fs::read_to_string(entry.path()).with_context(|| path.clone())?;
            for line in text.lines() {
                let group = group(&path, line);
                for ((of, _), count) in LIMITS.iter().zip(counts.iter_mut()) {
                    *count += if *of == group { vague(line) } else { 0 };
                }
            }
        }
    }
    Ok(())
}

fn group(path: &str, line: &str) -> Group {
    match (path.ends_with(".md"), line.trim_start().starts_with("//")) {
        (true, _) => Group::Pages,
        (false, true) => Group::Comments,
        (false, false) => Group::Code,
    }
}

fn vague(line: &str) -> usize {
    let line = line.to_lowercase();
    VAGUE.iter().map(|word| line.matches(word).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_words_are_counted_in_any_case() {
        assert_eq!(vague(concat!("Nob", "ody waits; somebo", "dy goes", " on.")), 3);
        assert_eq!(vague("The sweeper polls for due runs."), 0);
    }

    #[test]
    fn a_line_is_a_page_a_comment_or_code() {
        assert_eq!(group("docs/ACCESS.md", "// text"), Group::Pages);
        assert_eq!(group("src/kernel/src/ids.rs", "    /// An id."), Group::Comments);
        assert_eq!(group("src/kernel/src/ids.rs", "let id = 1; // made here"), Group::Code);
    }
}
