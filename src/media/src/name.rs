//! Makes file names safe to store, display and send in a header.

use unicode_normalization::UnicodeNormalization;

/// Maximum characters in a name.
const MAX_CHARS: usize = 200;

/// Maximum characters after the last dot that count as an extension.
const MAX_EXTENSION_CHARS: usize = 16;

/// Returns the name without its path and without control, bidi and other invisible characters: in NFC, trimmed, at
/// most 200 characters.
///
/// A long name keeps its extension. An empty name, or one with dots only, becomes `file`. Trailing dots are removed,
/// because Windows ignores them. Idempotent.
#[must_use]
pub fn file_name(raw: &str) -> String {
    // Normalised before joiners are removed, because some non-ASCII characters become ASCII; and again afterwards,
    // because marks may now follow their letters.
    let visible: String = raw.chars().filter(|letter| !is_invisible(*letter)).nfc().collect();
    let normal: String = without_loose_joiners(&visible).nfc().collect();
    let last = normal.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = cut(trimmed(last));
    if name.is_empty() { "file".to_owned() } else { name }
}

/// Returns the part after the last dot, if the part before it is not empty.
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

/// Joiners are part of emoji and of words in some scripts. They stay between two non-ASCII characters only, where
/// they cannot disguise an extension.
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

/// Whether a character is invisible: control and format characters (bidi included), line and paragraph separators,
/// blank fillers, and noncharacters. Joiners are excluded. As `kernel::text`, because this package imports no other.
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
