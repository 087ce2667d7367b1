//! Makes texts by authors and models visible: every character can be seen, and none controls a terminal or a browser.

use std::fmt::Write as _;

pub(super) use kernel::text::escape_xml as escaped;
use kernel::text::is_invisible;

/// Replaces each invisible character by a sign: `␛` for escape, `[U+202E]` for a direction change.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match u32::from(letter) {
            code @ 0..=0x1f => shown.push(char::from_u32(0x2400 + code).unwrap_or('␀')),
            0x7f => shown.push('␡'),
            code if is_invisible(letter) => {
                // Writing to a String cannot fail.
                let _ = write!(shown, "[U+{code:04X}]");
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Cuts a text to one visible line with at most `most` characters; white space becomes a single blank.
pub(super) fn line(text: &str, most: usize) -> String {
    // A longer text is cut anyway: each word has at least one character, and a cut one ends with `…`.
    let start: String = text.chars().take(most.saturating_mul(4)).collect();
    let shown = visible(&start.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_cut = start.len() < text.len();
    if shown.chars().count() <= most && !is_cut {
        return shown;
    }
    let short: String = shown.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_visible() {
        assert_eq!(visible("a\u{0}\u{1b}[31m\r\tb\u{7f}"), "a␀␛[31m␍␉b␡");
        assert_eq!(
            visible("\u{202e}\u{200b}\u{85}\u{2028}é日本👍"),
            "[U+202E][U+200B][U+0085][U+2028]é日本👍"
        );
        let all: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
        assert!(visible(&all).chars().all(|letter| !letter.is_control() && !is_invisible(letter)));
    }

    #[test]
    fn a_line_stays_one_line_and_is_cut() {
        assert_eq!(line(" a\n\tb\u{1b}c ", 20), "a b␛c");
        assert_eq!((line("abcdef", 6), line("abcde fg", 7)), ("abcdef".into(), "abcde…".into()));
        assert_eq!(line("日本語日本語", 4), "日本語…");
        assert_eq!(
            line(&format!("a{}b", " ".repeat(1_000)), 10),
            "a…",
            "unread text is not dropped silently"
        );
        assert_eq!(line("", 10), "");
    }
}
