//! Thread titles.

use super::UserMessageContent;

/// Maximum characters for a caller's title.
pub const LONGEST_TITLE: usize = 200;
/// Maximum characters for a title made from a message.
const LONGEST_MADE: usize = 60;

/// Normalises a title to one line for storage; may return an empty text.
#[must_use]
pub fn title_of(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// A thread's title from its first message: the first line with content, cut between two words.
#[must_use]
pub fn title_of_message(content: &[UserMessageContent]) -> Option<String> {
    let characters = content.iter().flat_map(|part| {
        let (mark, text) = match part {
            UserMessageContent::InputText { text } => ("", text),
            UserMessageContent::InputTag { text, .. } => ("@", text),
        };
        mark.chars().chain(text.chars())
    });
    // One more character, to see whether a word ends there.
    let mut line: Vec<char> = Vec::with_capacity(LONGEST_MADE + 1);
    for c in characters {
        match c {
            '\n' | '\r' if line.is_empty() => {}
            '\n' | '\r' => break,
            _ if line.is_empty() && (c.is_whitespace() || c.is_control()) => {}
            _ => line.push(if c.is_control() { ' ' } else { c }),
        }
        if line.len() > LONGEST_MADE {
            break;
        }
    }
    if line.len() > LONGEST_MADE {
        let word = line.iter().rposition(|c| c.is_whitespace());
        line.truncate(word.unwrap_or(LONGEST_MADE));
    }
    let title = line.iter().collect::<String>().trim_end().to_owned();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title_of(parts: &[&str]) -> Option<String> {
        let text = |text: &&str| UserMessageContent::InputText { text: (*text).to_owned() };
        title_of_message(&parts.iter().map(text).collect::<Vec<_>>())
    }

    #[test]
    fn the_first_line_with_text_is_the_title() {
        for (parts, title) in [
            (&["Where is my order?"][..], Some("Where is my order?")),
            (&["one\ntwo"], Some("one")),
            (&["\r\n  \n one \r\ntwo"], Some("one")),
            (&["a ", "b\nc", "d"], Some("a b")),
            (&["\n", "b"], Some("b")),
            (&["a\tb\u{0}c"], Some("a b c")),
            (&[" \n "], None),
            (&[], None),
        ] {
            assert_eq!(title_of(parts).as_deref(), title, "{parts:?}");
        }
        let tag = UserMessageContent::InputTag {
            id: "1".into(),
            text: "ann".into(),
            data: serde_json::Map::new(),
            group: None,
            interactive: false,
        };
        assert_eq!(title_of_message(&[tag]).as_deref(), Some("@ann"));
    }

    #[test]
    fn a_long_title_is_cut_between_two_words() {
        let words = "word ".repeat(20);
        assert_eq!(title_of(&[&words]).unwrap(), "word ".repeat(12).trim_end());
        let exact = format!("{} tail", "x".repeat(60));
        assert_eq!(title_of(&[&exact]).unwrap(), "x".repeat(60));
        assert_eq!(title_of(&[&"é".repeat(60)]).unwrap(), "é".repeat(60));
        assert_eq!(title_of(&[&"漢".repeat(90)]).unwrap(), "漢".repeat(60), "no words to cut between");
        let late = format!("a {}", "x".repeat(90));
        assert_eq!(title_of(&[&late]).unwrap(), "a");
    }
}
