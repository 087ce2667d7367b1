//! Characters that hide, move or replace others.

use unicode_normalization::UnicodeNormalization;

/// Unicode's general category Cf: invisible format characters.
const FORMAT: &[(u32, u32)] = &[
    (0x00AD, 0x00AD),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    // Includes the line and paragraph separators.
    (0x2028, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
];

/// A control, format or bidi character, or a line separator.
pub(crate) fn is_hidden(char: char) -> bool {
    let code = u32::from(char);
    char.is_control() || FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

/// A code point that is never a character.
pub(crate) fn is_noncharacter(char: char) -> bool {
    let code = u32::from(char);
    code & 0xFFFE == 0xFFFE || (0xFDD0..=0xFDEF).contains(&code)
}

/// A comparison key: equal for names that some systems treat as equal.
pub(crate) fn key(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let folded: String = caseless::default_case_fold_str(&name.nfkc().collect::<String>());
    folded.nfkc().collect()
}

/// The key of a name to compare with keys of at most `most` ASCII characters; `None` if the name is longer.
pub(crate) fn short_key(name: &str, most: usize) -> Option<String> {
    // A key never has fewer ASCII characters than its name has characters.
    name.chars().nth(most).is_none().then(|| key(name))
}
