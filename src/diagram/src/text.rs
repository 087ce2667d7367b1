//! Picture texts: made harmless, shortened, measured.

use kernel::text::is_invisible;

/// Returns a single line of visible characters; white space becomes a single blank.
pub(super) fn line(text: &str) -> String {
    let is_blank = |letter: char| letter.is_control() || letter.is_whitespace();
    let letters = text.chars().map(|letter| if is_blank(letter) { ' ' } else { letter });
    let seen: String = letters.filter(|letter| !is_invisible(*letter)).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates a text that is too long.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let short: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

/// Estimates the width of a text in a sans-serif font, generously.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

fn em(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' => 0.34,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' | 'I' => 0.42,
        'W' => 1.1,
        'm' | 'w' | 'M' | '@' | '%' | '…' => 1.0,
        'A'..='Z' | '=' | '<' | '>' | '+' | '&' | '~' => 0.76,
        ' '..='~' | '\u{a0}'..='\u{2ff}' | '\u{370}'..='\u{5ff}' => 0.64,
        _ => 1.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_its_line_and_element() {
        assert_eq!(line(" a\n\tb\u{0}c \u{202e}d\u{200b}\u{61c}\u{2028}e "), "a b c d e");
        assert_eq!((shortened("abcdef", 6), shortened("abcde fg", 7)), ("abcdef".into(), "abcde…".into()));
        assert_eq!(shortened("日本語日本語", 4), "日本語…");
        assert!(width("WWW", 10.0) > width("iii", 10.0) && width("日本", 10.0) >= 20.0);
    }
}
