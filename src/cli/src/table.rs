//! Tables for people.

use std::fmt::Display;

use serde::Serialize;

use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

/// Prints a list: as JSON for programs, as a table for people; `if_empty` explains to people that nothing was found.
pub(crate) fn print_list<T: Serialize, const N: usize>(
    output: Output,
    records: Vec<T>,
    if_empty: impl Display,
    head: [&str; N],
    row: impl FnMut(T) -> [String; N],
) -> Result<(), CommandError> {
    if output == Output::Json {
        return say(pretty(&records)?);
    }
    if records.is_empty() {
        complain(if_empty);
        return Ok(());
    }
    print(head, records.into_iter().map(row).collect())
}

/// Prints a table; each column except the last is as wide as its widest cell.
pub(crate) fn print<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> Result<(), CommandError> {
    let rows: Vec<[String; N]> = rows.into_iter().map(|row| row.map(|cell| one_line(&cell))).collect();
    let mut widths = head.map(|cell| cell.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    say(Paint::stdout().bold(line(&widths, head)))?;
    rows.iter().try_for_each(|row| say(line(&widths, row.each_ref().map(String::as_str))))
}

fn line<const N: usize>(widths: &[usize; N], cells: [&str; N]) -> String {
    let cells = widths.iter().zip(cells).map(|(width, cell)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Makes an external text safe for a cell.
fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// A timestamp to the minute, for people.
pub(crate) fn minute(at: &str) -> String {
    format!("{}Z", at.get(..16).unwrap_or(at).replace('T', " "))
}

/// A timestamp to the second, for people.
pub(crate) fn second(at: &str) -> String {
    format!("{}Z", at.get(..19).unwrap_or(at).replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        assert_eq!(line(&[4, 3, 5], ["é", "abc", ""]), "é     abc");
        assert_eq!(one_line("a\u{1b}[2J\nb\tc"), "a[2J b c");
        assert_eq!(minute("2026-11-22T06:05:07.123Z"), "2026-11-22 06:05Z");
        assert_eq!(second("2026-11-22T06:05:07Z"), "2026-11-22 06:05:07Z");
    }
}
