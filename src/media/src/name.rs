//! Names of files made safe to store, show and send in a header.

use unicode_normalization::UnicodeNormalization;

/// Longest name, in characters.
const MAX_CHARS: usize = 200;

/// Longest part after the last dot that is kept as an extension, in characters.
const MAX_EXTENSION_CHARS: usize = 16;

/// The name without its path, control, bidi and other invisible characters, in NFC, trimmed, of at most 200 characters.
///
/// A long name keeps its extension. An empty name, or one of dots only, becomes `file`. Trailing dots are removed,
/// because Windows ignores them. Applying the function twice changes nothing more.
#[must_use]
pub fn file_name(raw: &str) -> String {
    // Before the joiners, because some characters beyond ASCII become ASCII; after them, because marks may have moved to
    // their letters.
    let visible: String = raw.chars().filter(|letter| !is_invisible(*letter)).nfc().collect();
    let normal: String = without_loose_joiners(&visible).nfc().collect();
    let last = normal.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = cut(trimmed(last));
    if name.is_empty() { "file".to_owned() } else { name }
}

/// What is after the last dot, if something is before it.
pub(crate) fn extension(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then_some(extension)
}

fn trimmed(name: &str) -> &str {
    let is_loose = |letter: char| letter == '.' || letter.is_whitespace() || is_joiner(letter);
    name.trim_start().trim_end_matches(is_loose)
}

fn cut(name: &str) -> String {
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    let kept = extension(name).map(|extension| (extension, extension.chars().count()));
    if let Some((extension, chars)) = kept.filter(|(_, chars)| *chars <= MAX_EXTENSION_CHARS) {
        let stem: String = name.chars().take(MAX_CHARS - 1 - chars).collect();
        return format!("{}.{extension}", trimmed(&stem));
    }
    let start: String = name.chars().take(MAX_CHARS).collect();
    trimmed(&start).to_owned()
}

/// Joiners are part of emoji and of words of some scripts, so they stay between two characters beyond ASCII, and only
/// there can they not disguise an extension.
fn without_loose_joiners(letters: &str) -> String {
    let mut kept = String::with_capacity(letters.len());
    let mut rest = letters.chars().peekable();
    while let Some(letter) = rest.next() {
        if !is_joiner(letter) {
            kept.push(letter);
            continue;
        }
        let joins = |letter: char| !letter.is_ascii() && !letter.is_whitespace() && !is_joiner(letter);
        if kept.chars().next_back().is_some_and(joins) && rest.peek().copied().is_some_and(joins) {
            kept.push(letter);
        }
    }
    kept
}

const fn is_joiner(letter: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}')
}

/// Control characters, format characters (bidi included), separators of lines and paragraphs, fillers that show
/// nothing, and noncharacters. Joiners are not among them.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
            | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
        || u32::from(letter) & 0xfffe == 0xfffe
}
