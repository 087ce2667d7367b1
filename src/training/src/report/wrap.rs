//! Wraps plain text to a column width.

/// Terminal columns that a character takes, for the usual alphabets.
fn columns_of(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Terminal columns that a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Cuts a text into pieces with at most `width` columns, after a blank if possible; joined, the pieces equal the
/// text. An empty text is one empty piece.
pub(super) fn pieces(text: &str, width: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut taken) = (Vec::new(), String::new(), 0);
    let mut after_blank: Option<usize> = None;
    for letter in text.chars() {
        let more = columns_of(letter);
        if taken + more > width && !piece.is_empty() {
            let rest = after_blank.take().map(|at| piece.split_off(at)).unwrap_or_default();
            pieces.push(std::mem::replace(&mut piece, rest));
            taken = columns(&piece);
        }
        piece.push(letter);
        taken += more;
        if letter == ' ' {
            after_blank = Some(piece.len());
        }
    }
    pieces.push(piece);
    pieces
}

/// Wraps prose at `width` columns: the first line starts with `first`, the others are indented by its width.
pub(super) fn paragraph(text: &str, first: &str, width: usize) -> String {
    let indent = columns(first);
    let mut lines = String::new();
    for (number, piece) in pieces(text, width.saturating_sub(indent)).iter().enumerate() {
        let start = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
        lines.push_str(format!("{start}{piece}").trim_end());
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_blanks_and_nothing_is_lost() {
        assert_eq!(pieces("aaa bbb ccc", 8), ["aaa bbb ", "ccc"]);
        assert_eq!(pieces("aaaabbbbcc", 4), ["aaaa", "bbbb", "cc"]);
        assert_eq!((pieces("", 4), pieces("abcd", 4)), (vec![String::new()], vec!["abcd".to_owned()]));
        for text in ["  a  b   c    ", "日本語 日本語日本語", "a\u{301}b c", "     "] {
            let pieces = pieces(text, 5);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| columns(piece) <= 5), "{pieces:?}");
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((columns("日本"), columns("e\u{301}"), columns("👍")), (4, 1, 2));
        assert_eq!(pieces("日本語", 5), ["日本", "語"]);
    }

    #[test]
    fn a_paragraph_is_indented_below_its_mark() {
        assert_eq!(paragraph("one two three", "* ", 10), "* one two\n  three\n");
        assert_eq!(paragraph("", "* ", 9), "*\n");
    }
}
