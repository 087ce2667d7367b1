//! The limit of each count. A limit only falls.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const FILE: &str = "src/xtask/src/language/limits.txt";
const TEXT: &str = include_str!("limits.txt");

/// A count or a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) package: String,
    pub(super) rule: String,
    pub(super) count: usize,
}

pub(super) fn read() -> Vec<Row> {
    TEXT.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let [package, rule, count] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    Some(Row { package: package.to_owned(), rule: rule.to_owned(), count: count.parse().ok()? })
}

fn count_in(rows: &[Row], wanted: &Row) -> usize {
    let found = rows.iter().find(|row| row.package == wanted.package && row.rule == wanted.rule);
    found.map_or(0, |row| row.count)
}

/// A finding for each count that is not its limit.
pub(super) fn compare(counts: &[Row], limits: &[Row]) -> Vec<String> {
    let above = counts.iter().filter_map(|row| {
        let limit = count_in(limits, row);
        let Row { package, rule, count } = row;
        (*count > limit).then(|| {
            format!(
                "{package}: {count} {rule}, the limit is {limit}; see \"Language\" in docs/CONTRIBUTING.md"
            )
        })
    });
    let below = limits.iter().filter_map(|row| {
        let count = count_in(counts, row);
        let Row { package, rule, count: limit } = row;
        (count < *limit).then(|| {
            format!("{package}: {count} {rule}; `cargo xtask layers --lower` lowers the limit of {limit}")
        })
    });
    above.chain(below).collect()
}

/// Writes the lower one of count and limit for each row.
pub(super) fn lower(root: &Path, counts: &[Row]) -> Result<()> {
    let mut text = String::new();
    for limit in read() {
        let count = count_in(counts, &limit).min(limit.count);
        if count > 0 {
            writeln!(text, "{} {} {count}", limit.package, limit.rule)?;
        }
    }
    fs::write(root.join(FILE), text).context(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(count: usize) -> Vec<Row> {
        vec![Row { package: "store".into(), rule: "tuples".into(), count }]
    }

    #[test]
    fn a_count_above_or_below_its_limit_is_a_finding() {
        assert!(compare(&one(2), &one(2)).is_empty());
        assert!(compare(&one(3), &one(2))[0].starts_with("store: 3 tuples, the limit is 2;"));
        assert_eq!(
            compare(&[], &one(2)),
            ["store: 0 tuples; `cargo xtask layers --lower` lowers the limit of 2"]
        );
        assert_eq!(compare(&one(1), &[]).len(), 1);
    }

    #[test]
    fn every_limit_is_read() {
        assert_eq!(read().len(), TEXT.lines().count());
    }
}
