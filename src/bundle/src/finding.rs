//! Findings: a bundle's problems in a fixed order, limited in number, with paths that are safe to print.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::unicode;

/// Maximum findings per refusal.
pub const MAX_FINDINGS: usize = 50;
/// Maximum path characters in a finding.
const PATH_CHARS: usize = 256;

/// A reason for refusing a bundle. Findings are ordered by precedence, then by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The stable code.
    pub code: Code,
    /// The file, escaped and shortened; `None` if the finding concerns the whole archive.
    pub path: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// The specific problem.
    pub detail: String,
}

impl Finding {
    /// A finding about one file; its name is escaped and shortened.
    #[must_use]
    pub fn of_file(code: Code, name: &[u8], detail: impl Into<String>) -> Self {
        Self { code, path: Some(printable(name)), line: None, detail: detail.into() }
    }
}

/// A remark that does not lead to refusal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// `external_url`, `large_html` or `wasm`.
    pub code: &'static str,
    /// The file.
    pub path: String,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// The expected consequence.
    pub detail: String,
}

/// The first findings by precedence, independent of the order of discovery.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeSet<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, finding: Finding) {
        self.0.insert(finding);
        if self.0.len() > MAX_FINDINGS {
            self.0.pop_last();
        }
    }

    /// Adds a finding about the whole archive.
    pub(crate) fn archive(&mut self, code: Code, detail: impl Into<String>) {
        self.add(Finding { code, path: None, line: None, detail: detail.into() });
    }

    /// Adds a finding about one file.
    pub(crate) fn file(&mut self, code: Code, name: &[u8], detail: impl Into<String>) {
        self.add(Finding::of_file(code, name, detail));
    }

    /// Adds a finding about one line of a file.
    pub(crate) fn line(&mut self, code: Code, path: &str, line: Option<u32>, detail: impl Into<String>) {
        self.add(Finding { code, path: Some(printable(path.as_bytes())), line, detail: detail.into() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.0.into_iter().collect()
    }
}

/// Escapes and shortens a name from an archive: no characters that hide or move others.
pub(crate) fn printable(name: &[u8]) -> String {
    let mut text = String::new();
    let mut count = 0_usize;
    let mut push = |part: &str| {
        count += part.chars().count();
        if count <= PATH_CHARS {
            text.push_str(part);
        }
        count <= PATH_CHARS
    };
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            let fits = if unicode::is_hidden(char) {
                push(&char.escape_unicode().to_string())
            } else {
                push(char.encode_utf8(&mut [0; 4]))
            };
            if !fits {
                return text;
            }
        }
        for byte in chunk.invalid() {
            if !push(&format!("\\x{byte:02x}")) {
                return text;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_long_names_are_cut() {
        assert_eq!(printable(b"a\xff\x1b\xe2\x80\xaeb"), "a\\xff\\u{1b}\\u{202e}b");
        assert_eq!(printable("é".repeat(300).as_bytes()).chars().count(), PATH_CHARS);
    }

    #[test]
    fn the_first_findings_are_kept_in_any_order() {
        let all: Vec<String> = (0..120).map(|n| format!("{n:03}")).collect();
        let (mut up, mut down) = (Findings::default(), Findings::default());
        for name in &all {
            up.file(Code::UnsafePath, name.as_bytes(), "x");
        }
        for name in all.iter().rev() {
            down.file(Code::UnsafePath, name.as_bytes(), "x");
        }
        down.file(Code::SensitiveFile, b"000", "x");
        let up = up.into_vec();
        assert_eq!(up, down.into_vec());
        assert_eq!((up.len(), up[49].path.as_deref()), (MAX_FINDINGS, Some("049")));
    }
}
