//! Counts words that hide who acts or what happens; `cargo xtask layers` refuses more of them than there are.

use std::cmp::Ordering;

/// Words and phrases in lower case. Split, so that this file does not find itself.
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

/// The maximum of each group. A limit only goes down.
const LIMITS: Words = Words { pages: 1, code: 270, comments: 138 };

/// Vague words by the kind of line that has them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// In Markdown.
    pages: usize,
    /// In code outside comments: names, help, error and log texts, pages of the browser.
    code: usize,
    /// In lines that are comments.
    comments: usize,
}

impl Words {
    /// Adds the words of one file.
    pub(crate) fn count(&mut self, path: &str, text: &str) {
        for line in text.lines() {
            let start = line.trim_start();
            let group = if path.ends_with(".md") {
                &mut self.pages
            } else if start.starts_with("//") || start.starts_with('#') && path.ends_with(".toml") {
                &mut self.comments
            } else {
                &mut self.code
            };
            *group += vague(line);
        }
    }

    /// One finding for each group that is over its limit, and for each limit that can go down.
    pub(crate) fn findings(self) -> Vec<String> {
        self.against(LIMITS)
    }

    fn against(self, limits: Self) -> Vec<String> {
        let groups = [
            ("pages", self.pages, limits.pages),
            ("code", self.code, limits.code),
            ("comments", self.comments, limits.comments),
        ];
        let over = |(group, count, limit): (&str, usize, usize)| match count.cmp(&limit) {
            Ordering::Greater => Some(format!(
                "{group}: {count} vague words, the limit is {limit}; say who acts and what happens instead of {}",
                VAGUE.join(", ")
            )),
            Ordering::Less => Some(format!(
                "{group}: {count} vague words; lower the limit of {limit} in src/xtask/src/words.rs"
            )),
            Ordering::Equal => None,
        };
        groups.into_iter().filter_map(over).collect()
    }
}

fn vague(line: &str) -> usize {
    let line = line.to_lowercase();
    VAGUE.iter().map(|word| line.matches(word).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!("Nob", "ody waits; somebo", "dy goes", " on.");

    #[test]
    fn vague_words_are_counted_by_the_kind_of_their_line() {
        let mut words = Words::default();
        words.count("docs/ACCESS.md", &format!("// {LINE}\nThe sweeper polls for due runs."));
        words.count("src/kernel/src/ids.rs", &format!("    /// {LINE}\nlet id = 1;\nlet text = \"{LINE}\";"));
        words.count("src/config/src/variables.toml", &format!("# {LINE}\nmeaning = \"{LINE}\""));
        assert_eq!(words, Words { pages: 3, code: 6, comments: 6 });
    }

    #[test]
    fn a_count_over_or_under_its_limit_is_a_finding() {
        let (found, limits) =
            (Words { pages: 2, code: 1, comments: 0 }, Words { pages: 1, code: 1, comments: 1 });
        let findings = found.against(limits);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("pages: 2 vague words, the limit is 1;"), "{findings:?}");
        assert_eq!(findings[1], "comments: 0 vague words; lower the limit of 1 in src/xtask/src/words.rs");
    }
}
