//! Counts departures from the language rules of docs/CONTRIBUTING.md; `cargo xtask layers` refuses more of them than its limits allow.

mod comments;
mod commits;
mod limits;
mod phrases;
mod signatures;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

pub(crate) use commits::{Hooks, check_new_commits};

/// Departures of one package, by rule.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Comment lines that begin with a clause instead of a noun or a verb.
    clauses: usize,
    /// Comment sentences with more than two "of".
    chains: usize,
    /// Phrases that hide the actor, in comments, documents and string literals.
    phrases: usize,
    /// Functions named `of`.
    functions: usize,
    /// Parameters with a tuple type.
    tuples: usize,
}

/// Counts of the whole workspace.
#[derive(Debug, Default)]
pub(crate) struct Language {
    packages: BTreeMap<String, Counts>,
    /// The modules that declare a type, by the type's name.
    types: BTreeMap<String, BTreeSet<String>>,
}

impl Language {
    /// Adds the counts of one file.
    pub(crate) fn count(&mut self, path: &str, text: &str) {
        let counts = self.packages.entry(package(path).to_owned()).or_default();
        if !path.ends_with(".rs") {
            counts.phrases += text.lines().map(phrases::count).sum::<usize>();
            return;
        }
        for block in comments::blocks(text) {
            counts.clauses += block.clauses;
            counts.chains += comments::chains(&block.text);
            counts.phrases += phrases::count(&block.text);
        }
        counts.phrases += comments::code_lines(text).map(phrases::count_in_literals).sum::<usize>();
        let found = signatures::scan(text);
        counts.functions += found.named_of;
        counts.tuples += found.tuples;
        if path.contains("/src/") && !path.contains("/tests/") {
            for name in found.types {
                self.types.entry(name).or_default().insert(path.to_owned());
            }
        }
    }

    /// A line for each count above its limit, and for each limit above its count.
    pub(crate) fn findings(&self) -> Vec<String> {
        limits::compare(&self.rows(), &limits::read())
    }

    /// Lowers the limits to the counts where these are lower.
    ///
    /// # Errors
    /// The limits cannot be written.
    pub(crate) fn lower(&self, root: &Path) -> Result<()> {
        limits::lower(root, &self.rows())
    }

    fn rows(&self) -> Vec<limits::Row> {
        let shared = self.types.values().filter(|modules| modules.len() > 3).count();
        let packages = self.packages.iter().filter(|(_, counts)| **counts != Counts::default());
        let rows = packages.flat_map(|(package, counts)| {
            [
                ("clauses", counts.clauses),
                ("chains", counts.chains),
                ("phrases", counts.phrases),
                ("functions", counts.functions),
                ("tuples", counts.tuples),
            ]
            .map(|(rule, count)| limits::Row {
                package: package.clone(),
                rule: rule.to_owned(),
                count,
            })
        });
        let workspace =
            limits::Row { package: "workspace".to_owned(), rule: "types".to_owned(), count: shared };
        rows.chain([workspace]).filter(|row| row.count > 0).collect()
    }
}

/// `store` of `src/store/src/lib.rs`, `docs` of `docs/API.md`.
fn package(path: &str) -> &str {
    let path = path.strip_prefix("src/").unwrap_or(path);
    path.split('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_counted_by_package() {
        let mut language = Language::default();
        let code = concat!(
            "//! Rows.\n\n/// What a row has.\nstruct Row;\n\n/// The size of the rows of the table of a store.\n",
            "fn of((a, b): (u8, u8), row: &(u8, u8)) -> String {\n    format!(\"the queue is none that waits\")\n}\n"
        );
        language.count("src/store/src/rows.rs", code);
        language.count("docs/API.md", "The server is told a name.\n");
        let store = Counts { clauses: 1, chains: 1, phrases: 1, functions: 1, tuples: 2 };
        assert_eq!(language.packages["store"], store);
        assert_eq!(language.packages["docs"], Counts { phrases: 1, ..Counts::default() });
    }

    #[test]
    fn type_names_in_more_than_three_modules_are_counted_without_tests() {
        let mut language = Language::default();
        for module in ["a", "b", "c"] {
            language.count(&format!("src/store/src/{module}.rs"), "pub(crate) struct Place {}\n");
        }
        language.count("src/store/tests/all.rs", "struct Place;\n");
        assert!(language.rows().is_empty());
        language.count("src/store/src/d.rs", "enum Place<T> { One(T) }\n");
        assert_eq!(language.rows().len(), 1);
    }
}
