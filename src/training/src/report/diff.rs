//! Line diffs between two texts.

use std::collections::BTreeMap;

/// Texts with more lines are not compared line by line.
const MAX_LINES: usize = 2_000;
/// Equal lines shown around changed ones.
const CONTEXT: usize = 3;

/// The lines of both texts: `- ` prefixes lines only in `before`, `+ ` lines only in `after`, two blanks equal lines.
///
/// Every line ends with a line feed. A text that ends with one gets an empty last line, so that its loss is visible.
/// Above 2,000 lines in a text, the diff replaces the whole text.
///
/// Source: longest common subsequence, Wagner and Fischer 1974.
#[must_use]
pub fn line_diff(before: &str, after: &str) -> String {
    let (old, new) = (lines(before), lines(after));
    if old.len() > MAX_LINES || new.len() > MAX_LINES {
        return old.iter().map(|line| row('-', line)).chain(new.iter().map(|line| row('+', line))).collect();
    }
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (same, old_rest) = old.split_at(start);
    let (_, new_rest) = new.split_at(start);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, same_end) = old_rest.split_at(old_rest.len() - end);
    let (new_middle, _) = new_rest.split_at(new_rest.len() - end);
    let equal = |lines: &[&str]| lines.iter().map(|line| row(' ', line)).collect::<String>();
    format!("{}{}{}", equal(same), changed(old_middle, new_middle), equal(same_end))
}

fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

fn row(sign: char, line: &str) -> String {
    format!("{sign} {line}\n")
}

/// The diff between the first and the last change.
fn changed(old: &[&str], new: &[&str]) -> String {
    // Numbers compare faster than lines, and a line can be long.
    let mut numbers = BTreeMap::new();
    let mut number = |line: &&str| {
        let next = numbers.len();
        *numbers.entry((*line).to_owned()).or_insert(next)
    };
    let (old_numbers, new_numbers): (Vec<usize>, Vec<usize>) =
        (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect());
    let table = common_lengths(&old_numbers, &new_numbers);
    let length = |row: usize, column: usize| -> u16 {
        table.get(row).and_then(|lengths| lengths.get(column)).copied().unwrap_or_default()
    };
    // Runs from the end to the start, additions first, so that they follow the removed lines in the result.
    let (mut row_at, mut column_at, mut rows) = (old.len(), new.len(), Vec::new());
    while row_at > 0 || column_at > 0 {
        let above = row_at.checked_sub(1).and_then(|at| Some((at, old.get(at)?, old_numbers.get(at)?)));
        let left = column_at.checked_sub(1).and_then(|at| Some((at, new.get(at)?, new_numbers.get(at)?)));
        match (above, left) {
            (Some((row_before, line, one)), Some((column_before, _, other))) if one == other => {
                rows.push(row(' ', line));
                (row_at, column_at) = (row_before, column_before);
            }
            (Some((row_before, line, _)), Some((column_before, ..)))
                if length(row_before, column_at) > length(row_at, column_before) =>
            {
                rows.push(row('-', line));
                row_at = row_before;
            }
            (_, Some((column_before, line, _))) => {
                rows.push(row('+', line));
                column_at = column_before;
            }
            (Some((row_before, line, _)), None) => {
                rows.push(row('-', line));
                row_at = row_before;
            }
            (None, None) => break,
        }
    }
    rows.into_iter().rev().collect()
}

/// Row r, column c: the length of the longest common subsequence of the first r old and c new lines.
fn common_lengths(old: &[usize], new: &[usize]) -> Vec<Vec<u16>> {
    let mut table = Vec::with_capacity(old.len() + 1);
    let mut above = vec![0_u16; new.len() + 1];
    for one in old {
        let (mut row, mut left) = (Vec::with_capacity(above.len()), 0);
        row.push(left);
        for (other, pair) in new.iter().zip(above.windows(2)) {
            let [diagonal, up] = pair else { continue };
            left = if one == other { diagonal + 1 } else { left.max(*up) };
            row.push(left);
        }
        table.push(std::mem::replace(&mut above, row));
    }
    table.push(above);
    table
}

/// A diff row as a report shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffRow<'a> {
    /// A line only in the seed.
    Removed(&'a str),
    /// A line only in the returned text.
    Added(&'a str),
    /// A line in both texts.
    Equal(&'a str),
    /// Omitted equal lines.
    Skipped(usize),
}

/// The diff rows without equal lines far from every change.
pub(super) fn rows(diff: &str) -> Vec<DiffRow<'_>> {
    let parsed = diff.split_terminator('\n').map(|line| match line.split_at_checked(2) {
        Some(("- ", line)) => DiffRow::Removed(line),
        Some(("+ ", line)) => DiffRow::Added(line),
        Some((_, line)) => DiffRow::Equal(line),
        None => DiffRow::Equal(line),
    });
    let parsed: Vec<DiffRow<'_>> = parsed.collect();
    let is_equal = |row: &DiffRow<'_>| matches!(row, DiffRow::Equal(_));
    let mut rows = Vec::new();
    for (number, run) in parsed.chunk_by(|one, next| is_equal(one) == is_equal(next)).enumerate() {
        // Before the first change only the last lines are near, after the last change only the first ones.
        let is_last = std::ptr::eq(run.as_ptr_range().end, parsed.as_ptr_range().end);
        let head = if number == 0 { 0 } else { CONTEXT };
        let tail = if is_last { 0 } else { CONTEXT };
        // A single line needs no more room than the note about its omission.
        let skipped = run.len().saturating_sub(head + tail);
        if run.first().is_some_and(|row| !is_equal(row)) || skipped < 2 {
            rows.extend_from_slice(run);
            continue;
        }
        rows.extend(run.iter().take(head));
        rows.push(DiffRow::Skipped(skipped));
        rows.extend(run.iter().skip(head + skipped));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reconstructs both texts from a diff.
    fn sides(diff: &str) -> (String, String) {
        let side = |sign: &str| {
            let lines = diff
                .split_terminator('\n')
                .filter(|line| line.starts_with([' ', sign.chars().next().unwrap()]));
            lines.map(|line| &line[2..]).collect::<Vec<_>>().join("\n")
        };
        (side("-"), side("+"))
    }

    #[test]
    fn changed_lines_have_signs() {
        assert_eq!(line_diff("a\nb\nc", "a\nx\nc"), "  a\n- b\n+ x\n  c\n");
        assert_eq!(line_diff("a\nb\nc\nd", "b\nd\ne"), "- a\n  b\n- c\n  d\n+ e\n");
        assert_eq!(line_diff("a", "a"), "  a\n");
        assert_eq!(
            (line_diff("", ""), line_diff("", "a"), line_diff("a", "")),
            ("".into(), "+ a\n".into(), "- a\n".into())
        );
    }

    #[test]
    fn a_line_feed_at_the_end_and_a_carriage_return_are_changes() {
        assert_eq!(line_diff("a", "a\n"), "  a\n+ \n");
        assert_eq!(line_diff("a\r\nb", "a\nb"), "- a\r\n+ a\n  b\n");
    }

    #[test]
    fn lines_that_look_like_signs_stay_lines() {
        assert_eq!(line_diff("- a\n+ b", "- a\n  c"), "  - a\n- + b\n+   c\n");
    }

    #[test]
    fn both_texts_can_be_read_from_a_diff_and_it_is_as_short_as_it_can_be() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let mut text = |len| (0..len).map(|_| next(4).to_string()).collect::<Vec<_>>().join("\n");
            let (before, after) = (text(9), text(7));
            let diff = line_diff(&before, &after);
            assert_eq!(sides(&diff), (before.clone(), after.clone()));
            let equal = diff.lines().filter(|line| line.starts_with("  ")).count();
            let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
            assert_eq!(equal, most_common(&old, &new), "{diff}");
        }
    }

    /// The same by brute force.
    fn most_common(old: &[&str], new: &[&str]) -> usize {
        let (Some((one, old_rest)), Some((other, new_rest))) = (old.split_first(), new.split_first()) else {
            return 0;
        };
        if one == other {
            return 1 + most_common(old_rest, new_rest);
        }
        most_common(old_rest, new).max(most_common(old, new_rest))
    }

    #[test]
    fn very_long_texts_are_replaced_as_a_whole() {
        let text = |count: usize| vec!["line"; count].join("\n");
        assert_eq!(line_diff(&text(2_000), &text(1_999)).matches("- ").count(), 1);
        let whole = line_diff(&text(2_001), &text(1));
        assert_eq!((whole.matches("- ").count(), whole.matches("+ ").count()), (2_001, 1));
        let different =
            |from: usize| (from..from + 2_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(line_diff(&different(0), &different(5_000)).lines().count(), 4_000);
    }

    #[test]
    fn equal_lines_far_from_changes_are_left_out() {
        let equal = |count: usize| (0..count).map(|n| format!("  {n}\n")).collect::<String>();
        let diff = format!("{}- a\n+ b\n{}+ c\n{}", equal(6), equal(9), equal(4));
        let shown: Vec<DiffRow<'_>> = rows(&diff);
        let skipped: Vec<&DiffRow<'_>> =
            shown.iter().filter(|row| matches!(row, DiffRow::Skipped(_))).collect();
        assert_eq!(skipped, [&DiffRow::Skipped(3), &DiffRow::Skipped(3)], "one line at the end is shown");
        assert_eq!(
            shown[..4],
            [DiffRow::Skipped(3), DiffRow::Equal("3"), DiffRow::Equal("4"), DiffRow::Equal("5")]
        );
        assert_eq!(shown[4..6], [DiffRow::Removed("a"), DiffRow::Added("b")]);
        assert_eq!(shown.last(), Some(&DiffRow::Equal("3")));
        assert_eq!(rows(""), []);
        assert_eq!(rows("+ - a\n"), [DiffRow::Added("- a")]);
    }
}
