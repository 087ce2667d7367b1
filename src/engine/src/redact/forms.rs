//! The forms in which a secret appears in a text.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use secrecy::zeroize::Zeroizing;

use super::SHORTEST;

/// HTML and XML escapes.
const ENTITIES: [(char, &[&str]); 5] = [
    ('&', &["&amp;", "&#38;", "&#x26;"]),
    ('<', &["&lt;", "&#60;", "&#x3c;"]),
    ('>', &["&gt;", "&#62;", "&#x3e;"]),
    ('"', &["&quot;", "&#34;", "&#x22;"]),
    ('\'', &["&apos;", "&#39;", "&#x27;"]),
];

/// Maximum bytes of an escaped character: four bytes, or two UTF-16 units.
const LONGEST_ESCAPE: usize = 12;

/// A secret and its encoded forms.
pub(super) struct Forms {
    plain: Zeroizing<String>,
    /// Lower-case hexadecimal.
    hex: Zeroizing<String>,
    /// Base64 of the secret after 0, 1 and 2 other bytes: only the characters that depend on the secret alone.
    base64: [Zeroizing<String>; 3],
    /// Bytes that can begin one of the forms.
    starts: [bool; 256],
}

impl Forms {
    pub(super) fn new(plain: &str) -> Self {
        let base64 = [0, 1, 2].map(|before: usize| {
            let bytes = Zeroizing::new([vec![0_u8; before], plain.as_bytes().to_vec()].concat());
            let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
            // Each character carries six bits: the first and the last ones also carry bits of the surrounding text.
            let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
            Zeroizing::new(encoded.get(start..end).unwrap_or_default().to_owned())
        });
        let mut forms = Self {
            plain: Zeroizing::new(plain.to_owned()),
            hex: Zeroizing::new(hex::encode(plain)),
            base64,
            starts: [false; 256],
        };
        let mut starts: Vec<u8> = b"%\\&".to_vec();
        let whole = [forms.plain.as_bytes(), forms.hex.as_bytes()];
        starts.extend(whole.iter().filter_map(|form| form.first()));
        starts.extend(forms.hex.bytes().next().map(|byte| byte.to_ascii_uppercase()));
        starts.extend(forms.base64.iter().filter_map(|form| form.bytes().next()));
        for (byte, others) in [(b' ', b"+".as_slice()), (b'+', b"-"), (b'/', b"_")] {
            if starts.contains(&byte) {
                starts.extend(others);
            }
        }
        for start in starts {
            if let Some(start) = forms.starts.get_mut(usize::from(start)) {
                *start = true;
            }
        }
        forms
    }

    /// Whether the secret is `plain`.
    pub(super) fn is(&self, plain: &str) -> bool {
        self.plain.as_str() == plain
    }

    pub(super) fn can_begin_with(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// Whether the text from `at` may become the secret with further input. Only for secrets that contain white
    /// space.
    pub(super) fn has_begun(&self, text: &str, at: usize, effort: &mut Effort) -> bool {
        let is_spaced = self.plain.contains(char::is_whitespace);
        is_spaced
            && text
                .get(at..)
                .is_some_and(|rest| matches!(plainly(rest, &self.plain, effort), PrefixMatch::Begun))
    }

    /// Returns the range of the secret that begins at `at`, in any form.
    pub(super) fn at(&self, text: &str, at: usize, effort: &mut Effort) -> Option<Range<usize>> {
        let rest = text.get(at..)?;
        let mut found = match plainly(rest, &self.plain, effort) {
            PrefixMatch::All(length) => Some(length),
            PrefixMatch::Begun | PrefixMatch::Else => hexed(rest, &self.hex, effort),
        };
        let mut start = at;
        for (before, form) in self.base64.iter().enumerate() {
            if let Some(length) = encoded(rest, form, effort) {
                let partial = !(before + self.plain.len()).is_multiple_of(3);
                start -= usize::from(
                    start == at && before > 0 && is_base64(text.as_bytes().get(at.wrapping_sub(1))),
                );
                let length = length + tail(rest.get(length..).unwrap_or_default(), partial);
                found = found.max(Some(length));
            }
        }
        found.map(|length| start..at + length)
    }
}

/// The beginning of a text, compared with a secret.
enum PrefixMatch {
    /// The whole secret, in this many bytes.
    All(usize),
    /// A prefix of the secret at the end of the text, or the comparison took too long.
    Begun,
    Else,
}

/// Remaining character comparisons: a user may create a secret and a text that are alike nearly everywhere.
pub(super) struct Effort {
    left: usize,
}

impl Effort {
    pub(super) fn for_text(text: &str) -> Self {
        Self { left: text.len().saturating_mul(16).saturating_add(1 << 20) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn spend(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}

/// Length of the match with these hexadecimal digits, in either case.
fn hexed(text: &str, hex: &str, effort: &mut Effort) -> Option<usize> {
    for (at, digit) in hex.bytes().enumerate() {
        effort.spend()?;
        if !text.as_bytes().get(at)?.eq_ignore_ascii_case(&digit) {
            return None;
        }
    }
    Some(hex.len())
}

/// Length of the match with the secret, each character literal or escaped.
fn plainly(text: &str, secret: &str, effort: &mut Effort) -> PrefixMatch {
    // A character such as % may be literal or begin its escape; follows both.
    let (mut ends, mut further) = (vec![0], Vec::new());
    let mut otherwise = PrefixMatch::Else;
    for letter in secret.chars() {
        for end in ends.drain(..) {
            let rest = text.get(end..).unwrap_or_default();
            if effort.spend().is_none() {
                return PrefixMatch::Begun;
            }
            if is_cut(rest) {
                otherwise = PrefixMatch::Begun;
            }
            let spelt = [literal(rest, letter), spelling(rest, letter)];
            further.extend(spelt.into_iter().flatten().map(|length| end + length));
        }
        if further.is_empty() {
            return otherwise;
        }
        further.sort_unstable();
        further.dedup();
        std::mem::swap(&mut ends, &mut further);
    }
    ends.last().map_or(PrefixMatch::Else, |end| PrefixMatch::All(*end))
}

/// Whether the text is empty or may be the beginning of an escape.
fn is_cut(text: &str) -> bool {
    text.is_empty() || text.len() < LONGEST_ESCAPE && text.starts_with(['%', '\\', '&'])
}

fn literal(text: &str, letter: char) -> Option<usize> {
    text.starts_with(letter).then(|| letter.len_utf8())
}

/// Length of this character in another spelling.
fn spelling(text: &str, letter: char) -> Option<usize> {
    match text.as_bytes().first()? {
        b'+' if letter == ' ' => Some(1),
        b'%' => percent(text, letter),
        b'\\' => escaped(text, letter),
        b'&' => {
            let (_, spellings) = ENTITIES.iter().find(|(known, _)| *known == letter)?;
            let is = |spelling: &&&str| {
                text.get(..spelling.len()).is_some_and(|part| part.eq_ignore_ascii_case(spelling))
            };
            spellings.iter().find(is).map(|spelling| spelling.len())
        }
        _ => None,
    }
}

fn percent(text: &str, letter: char) -> Option<usize> {
    let mut buffer = [0; 4];
    let mut length = 0;
    for byte in letter.encode_utf8(&mut buffer).bytes() {
        let code = text.get(length..length + 3)?.strip_prefix('%')?;
        if u8::from_str_radix(code, 16) != Ok(byte) {
            return None;
        }
        length += 3;
    }
    Some(length)
}

/// JSON escapes, which most languages share.
fn escaped(text: &str, letter: char) -> Option<usize> {
    let short = match letter {
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        other => other,
    };
    let rest = text.strip_prefix('\\')?;
    if rest.starts_with(short) && (short != letter || letter.is_ascii_punctuation()) {
        return Some(1 + short.len_utf8());
    }
    let mut units = [0; 2];
    let mut length = 0;
    for unit in letter.encode_utf16(&mut units) {
        let code = text.get(length..length + 6)?.strip_prefix("\\u")?;
        if u16::from_str_radix(code, 16) != Ok(*unit) {
            return None;
        }
        length += 6;
    }
    Some(length)
}

/// Length of the match with this base64, in either alphabet, including percent-encoded characters.
fn encoded(text: &str, form: &str, effort: &mut Effort) -> Option<usize> {
    // Very short ones would match everywhere.
    if form.len() < SHORTEST {
        return None;
    }
    let mut at = 0;
    for letter in form.chars() {
        effort.spend()?;
        let rest = text.get(at..)?;
        let other = match letter {
            '+' => '-',
            '/' => '_',
            same => same,
        };
        at += match rest.chars().next()? {
            found if found == letter || found == other => 1,
            _ => percent(rest, letter).or_else(|| escaped(rest, letter))?,
        };
    }
    Some(at)
}

/// Length of the rest of the secret: a character with its last bits, and padding.
fn tail(rest: &str, partial: bool) -> usize {
    let mut length = 0;
    if partial && is_base64(rest.as_bytes().first()) {
        length += 1;
    }
    loop {
        let rest = rest.get(length..).unwrap_or_default();
        length += match rest {
            _ if rest.starts_with('=') => 1,
            _ if rest.get(..3).is_some_and(|part| part.eq_ignore_ascii_case("%3d")) => 3,
            _ => return length,
        };
    }
}

fn is_base64(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
}
