//! A line diff of two texts. Pure.
//!
//! Source: longest common subsequence by dynamic programming, Wagner and Fischer 1974.

/// Maximum table cells; for larger inputs, the differing part is replaced as a whole.
const MOST_CELLS: usize = 4_000_000;

/// A line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedLine<'a> {
    /// In both texts.
    Kept(&'a str),
    /// Only in the first text.
    Removed(&'a str),
    /// Only in the second text.
    Added(&'a str),
}

/// The lines of both texts in order, with as few differences as possible.
pub(super) fn compare<'a>(before: &'a str, after: &'a str) -> Vec<ComparedLine<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let old_rest = old.get(head..).unwrap_or_default();
    let new_rest = new.get(head..).unwrap_or_default();
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, end) = old_rest.split_at(old_rest.len().saturating_sub(tail));
    let (new_middle, _) = new_rest.split_at(new_rest.len().saturating_sub(tail));
    let kept = |lines: &[&'a str]| lines.iter().copied().map(ComparedLine::Kept).collect::<Vec<_>>();
    let mut compared = kept(old.get(..head).unwrap_or_default());
    compare_middle(old_middle, new_middle, &mut compared);
    compared.extend(kept(end));
    compared
}

fn compare_middle<'a>(old: &[&'a str], new: &[&'a str], compared: &mut Vec<ComparedLine<'a>>) {
    let table = CommonLines::new(old, new);
    let (mut at_old, mut at_new) = (0, 0);
    loop {
        match (old.get(at_old).copied(), new.get(at_new).copied()) {
            (Some(line), Some(other)) if line == other => {
                compared.push(ComparedLine::Kept(line));
                (at_old, at_new) = (at_old + 1, at_new + 1);
            }
            (Some(line), other)
                if other.is_none() || table.get(at_old + 1, at_new) >= table.get(at_old, at_new + 1) =>
            {
                compared.push(ComparedLine::Removed(line));
                at_old += 1;
            }
            (_, Some(line)) => {
                compared.push(ComparedLine::Added(line));
                at_new += 1;
            }
            (_, None) => return,
        }
    }
}

/// For each pair of positions in two texts, the common line count after them.
struct CommonLines {
    width: usize,
    cells: Vec<u32>,
}

impl CommonLines {
    fn new(old: &[&str], new: &[&str]) -> Self {
        let width = new.len().saturating_add(1);
        let size = old.len().saturating_add(1).saturating_mul(width);
        let mut table = Self { width, cells: vec![0; if size > MOST_CELLS { 0 } else { size }] };
        if table.cells.is_empty() {
            return table;
        }
        for (row, line) in old.iter().enumerate().rev() {
            for (column, other) in new.iter().enumerate().rev() {
                let common = if line == other {
                    table.get(row + 1, column + 1) + 1
                } else {
                    table.get(row + 1, column).max(table.get(row, column + 1))
                };
                if let Some(cell) = table.cells.get_mut(row * width + column) {
                    *cell = common;
                }
            }
        }
        table
    }

    /// 0 outside the table, and everywhere without one.
    fn get(&self, row: usize, column: usize) -> u32 {
        self.cells.get(row * self.width + column).copied().unwrap_or_default()
    }
}

/// The differences with `context` kept lines around them; `None` marks omitted lines.
pub(super) fn with_context<'a>(
    compared: &[ComparedLine<'a>],
    context: usize,
) -> Vec<Option<ComparedLine<'a>>> {
    let is_near = |place: usize| {
        let end = place.saturating_add(context).saturating_add(1).min(compared.len());
        let around = compared.get(place.saturating_sub(context)..end).unwrap_or_default();
        around.iter().any(|line| !matches!(line, ComparedLine::Kept(_)))
    };
    let mut shown = Vec::new();
    for (place, line) in compared.iter().enumerate() {
        if is_near(place) {
            shown.push(Some(*line));
        } else if !matches!(shown.last(), Some(None)) {
            shown.push(None);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diff as text: ` ` before kept lines, `-` before removed ones, `+` before added ones.
    fn diff_lines(before: &str, after: &str) -> Vec<String> {
        let line = |line: &ComparedLine<'_>| match line {
            ComparedLine::Kept(line) => format!(" {line}"),
            ComparedLine::Removed(line) => format!("-{line}"),
            ComparedLine::Added(line) => format!("+{line}"),
        };
        compare(before, after).iter().map(line).collect()
    }

    #[test]
    fn lines_are_kept_removed_and_added() {
        assert_eq!(diff_lines("a\nb\nc", "a\nx\nc"), [" a", "-b", "+x", " c"]);
        assert_eq!(diff_lines("a\nb", "a\nb"), [" a", " b"]);
        assert_eq!(diff_lines("", "a\nb"), ["+a", "+b"]);
        assert_eq!(diff_lines("a\nb", ""), ["-a", "-b"]);
        assert_eq!(diff_lines("a\nb\nc\nd", "b\nx\nd\ne"), ["-a", " b", "-c", "+x", " d", "+e"]);
        assert_eq!(diff_lines("a\na", "a\na\na"), [" a", " a", "+a"]);
    }

    #[test]
    fn both_texts_can_be_read_from_a_comparison() {
        let texts = ["", "a", "b\na\nc\na\nb", "a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc", "x\ny"];
        for before in texts {
            for after in texts {
                let compared = compare(before, after);
                let old = compared.iter().filter_map(|line| match line {
                    ComparedLine::Kept(line) | ComparedLine::Removed(line) => Some(*line),
                    ComparedLine::Added(_) => None,
                });
                let new = compared.iter().filter_map(|line| match line {
                    ComparedLine::Kept(line) | ComparedLine::Added(line) => Some(*line),
                    ComparedLine::Removed(_) => None,
                });
                assert_eq!(old.collect::<Vec<_>>().join("\n"), before);
                assert_eq!(new.collect::<Vec<_>>().join("\n"), after);
            }
        }
    }

    #[test]
    fn large_texts_are_replaced_as_a_whole() {
        let text = |word: &str| (0..2_100).map(|number| format!("{word} {number}\n")).collect::<String>();
        let compared = diff_lines(&format!("head\n{}tail", text("a")), &format!("head\n{}tail", text("b")));
        assert_eq!(compared.len(), 2 + 2 * 2_100);
        assert!(compared[1..2_101].iter().all(|line| line.starts_with("-a")));
    }

    #[test]
    fn distant_lines_are_left_out() {
        let (before, after) = ("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nx\n6\n7\n8\n9");
        let compared = compare(before, after);
        let shown: Vec<String> = with_context(&compared, 1)
            .into_iter()
            .map(|line| line.map_or_else(|| "…".to_owned(), |line| format!("{line:?}")))
            .collect();
        let expected = ["…", "Kept(\"4\")", "Removed(\"5\")", "Added(\"x\")", "Kept(\"6\")", "…"];
        assert_eq!(shown, expected);
        assert_eq!(with_context(&compare("a", "a"), 3), [None]);
    }
}
