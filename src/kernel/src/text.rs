//! Text from authors, models and callers, before it is shown.

/// Whether a character is invisible or only affects its neighbours: control and format characters (bidi and joiners
/// included), line and paragraph separators, blank fillers, and noncharacters.
#[must_use]
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
        || u32::from(letter) & 0xfffe == 0xfffe
}

/// Escapes text or an attribute value for XML and HTML.
#[must_use]
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_marks_and_fillers_are_invisible() {
        for letter in
            "\u{0}\u{85}\u{ad}\u{61c}\u{180e}\u{200d}\u{2028}\u{202e}\u{2066}\u{3164}\u{feff}\u{1ffff}"
                .chars()
        {
            assert!(is_invisible(letter), "{letter:?}");
        }
        assert!(!"a é日👍\u{301}\u{fe0f}".chars().any(is_invisible));
    }

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(escape_xml("</text><script>\"'&"), "&lt;/text&gt;&lt;script&gt;&quot;&#39;&amp;");
    }
}
