//! Characters that hide, move or replace others.

use unicode_normalization::UnicodeNormalization;

/// The general category Cf of Unicode: characters that format others and are not seen.
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
    // With the separators of lines and paragraphs.
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

/// The same key for names that some system takes for the same.
pub(crate) fn key(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let folded: String = caseless::default_case_fold_str(&name.nfkc().collect::<String>());
    folded.nfkc().collect()
}

/// The key of a name that is compared with keys of at most `most` ASCII characters; `None` if it is longer than all of them.
pub(crate) fn short_key(name: &str, most: usize) -> Option<String> {
    // A key never has fewer ASCII characters than its name has characters.
    name.chars().nth(most).is_none().then(|| key(name))
}
