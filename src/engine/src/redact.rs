//! Taking the secrets that a run has used out of everything it says: as they are, and in the forms in which servers like to
//! repeat them (base64 at any place of a text, hexadecimal, URL, JSON and HTML escapes).

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use kernel::Secret;
use parking_lot::RwLock;
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};

use crate::NodeError;

/// What stands in the place of a secret.
const MASK: &str = "[redacted]";
/// Bytes of the shortest secret that is looked for: of a shorter one any text is full.
const SHORTEST: usize = 4;
/// Escapes of HTML and XML.
const ENTITIES: [(char, &[&str]); 5] = [
    ('&', &["&amp;", "&#38;", "&#x26;"]),
    ('<', &["&lt;", "&#60;", "&#x3c;"]),
    ('>', &["&gt;", "&#62;", "&#x3e;"]),
    ('"', &["&quot;", "&#34;", "&#x22;"]),
    ('\'', &["&apos;", "&#39;", "&#x27;"]),
];

/// The secrets that a run has used so far.
#[derive(Default)]
pub(crate) struct Redactor {
    known: RwLock<Vec<Arc<Forms>>>,
}

impl Redactor {
    /// Takes a secret out of everything from now on.
    pub(crate) fn learn(&self, secret: &Secret) {
        // What stands around it is no secret, and may be left out where it is used.
        let plain = secret.expose_secret().trim();
        if plain.len() < SHORTEST {
            return;
        }
        let json = Zeroizing::new(Value::String(plain.to_owned()).to_string());
        // As it is sent: what a server encodes as a whole holds the secret as it stood there.
        let percent = Zeroizing::new(percent_encoded(plain));
        let form = Zeroizing::new(percent.replace("%20", "+"));
        let sent = [plain, percent.as_str(), form.as_str(), json.trim_matches('"')];
        let mut known = self.known.write();
        for text in sent {
            if !known.iter().any(|known| known.plain.as_str() == text) {
                known.push(Arc::new(Forms::of(text)));
            }
        }
    }

    /// The text without secrets.
    pub(crate) fn text(&self, text: String) -> String {
        let known = self.known.read();
        if known.is_empty() {
            return text;
        }
        without(&known, &text).unwrap_or(text)
    }

    /// The value without secrets, names of members included.
    pub(crate) fn value(&self, value: Value) -> Value {
        let known = self.known.read();
        if known.is_empty() { value } else { in_value(&known, value) }
    }

    /// The error without secrets.
    pub(crate) fn error(&self, error: NodeError) -> NodeError {
        NodeError { message: self.text(error.message), ..error }
    }
}

fn in_value(known: &[Arc<Forms>], value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without(known, &text).unwrap_or(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| in_value(known, item)).collect()),
        Value::Object(members) => {
            let mut clean = Map::new();
            for (name, member) in members {
                clean.insert(without(known, &name).unwrap_or(name), in_value(known, member));
            }
            Value::Object(clean)
        }
        Value::Number(number) => match without(known, &number.to_string()) {
            Some(masked) => Value::String(masked),
            None => Value::Number(number),
        },
        other => other,
    }
}

/// The text with every secret masked; `None` when there is none in it.
fn without(known: &[Arc<Forms>], text: &str) -> Option<String> {
    let mut places: Vec<Range<usize>> = known.iter().flat_map(|forms| forms.places(text)).collect();
    if places.is_empty() {
        return None;
    }
    places.sort_unstable_by_key(|place| place.start);
    let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
    let mut places = places.into_iter().peekable();
    while let Some(mut place) = places.next() {
        // What overlaps or follows at once is one place.
        while let Some(next) = places.next_if(|next| next.start <= place.end) {
            place.end = place.end.max(next.end);
        }
        clean.push_str(text.get(at..place.start).unwrap_or_default());
        clean.push_str(MASK);
        at = place.end;
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    Some(clean)
}

/// A secret and how it looks when it is encoded.
struct Forms {
    plain: Zeroizing<String>,
    /// Lower-case.
    hex: Zeroizing<String>,
    /// What base64 makes of the secret behind 0, 1 and 2 other bytes: the letters that depend on it alone.
    base64: [Zeroizing<String>; 3],
    /// Bytes that one of the forms can begin with.
    starts: [bool; 256],
}

impl Forms {
    fn of(plain: &str) -> Self {
        let base64 = [0, 1, 2].map(|before: usize| {
            let bytes = Zeroizing::new([vec![0_u8; before], plain.as_bytes().to_vec()].concat());
            let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
            // Six bits each: the first and the last letters carry bits of what stands around the secret.
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

    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            if !self.starts.get(usize::from(byte)).copied().unwrap_or(false) {
                continue;
            }
            let Some(rest) = text.get(at..) else { continue };
            let plain = plainly(rest, &self.plain);
            let hexed = rest.get(..self.hex.len()).filter(|part| part.eq_ignore_ascii_case(&self.hex));
            if let Some(length) = plain.or(hexed.map(str::len)) {
                found.push(at..at + length);
            }
            for (before, form) in self.base64.iter().enumerate() {
                if let Some(length) = encoded(rest, form) {
                    let partial = !(before + self.plain.len()).is_multiple_of(3);
                    let start =
                        at - usize::from(before > 0 && is_base64(text.as_bytes().get(at.wrapping_sub(1))));
                    found.push(start..at + length + tail(rest.get(length..).unwrap_or_default(), partial));
                }
            }
        }
        found
    }
}

/// How much of the text says the secret, each letter as it is or escaped.
fn plainly(text: &str, secret: &str) -> Option<usize> {
    // A letter such as % may be itself or the beginning of its escape: both are gone after.
    let mut ends = vec![0];
    for letter in secret.chars() {
        let mut further = Vec::new();
        for end in ends {
            let rest = text.get(end..)?;
            let spelt = [literal(rest, letter), spelling(rest, letter)];
            further.extend(spelt.into_iter().flatten().map(|length| end + length));
        }
        further.sort_unstable();
        further.dedup();
        ends = further;
        if ends.is_empty() {
            return None;
        }
    }
    ends.last().copied()
}

fn literal(text: &str, letter: char) -> Option<usize> {
    text.starts_with(letter).then(|| letter.len_utf8())
}

/// How much of the text says this letter in another way.
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

/// As JSON and most languages escape it.
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

/// How much of the text says these letters of base64, in either alphabet, also where they are escaped for an address.
fn encoded(text: &str, form: &str) -> Option<usize> {
    // Very short ones would be found everywhere.
    if form.len() < SHORTEST {
        return None;
    }
    let mut at = 0;
    for letter in form.chars() {
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

/// What follows the letters and is still of the secret: a letter with its last bits, and padding.
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

/// A text in which everything is escaped that an address could take for a part of itself.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let redactor = Redactor::default();
        for secret in secrets {
            redactor.learn(&Secret::from((*secret).to_owned()));
        }
        redactor
    }

    #[test]
    fn every_form_is_masked_and_nothing_else() {
        let secret = "s3cr%t/\"key\" +ö?<&>'\\\n=";
        let redactor = redactor(&[secret]);
        let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let json = serde_json::to_string(secret).unwrap();
        let forms = [
            secret.to_owned(),
            STANDARD.encode(secret),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            percent_encoded(secret),
            percent_encoded(&STANDARD.encode(secret)),
            percent_encoded(secret).to_lowercase(),
            STANDARD.encode(percent_encoded(secret)),
            hex::encode(&json[1..json.len() - 1]),
            form,
            hex::encode(secret),
            hex::encode_upper(secret),
            json[1..json.len() - 1].to_owned(),
            json[1..json.len() - 1].replace('ö', "\\u00f6").replace('/', "\\/"),
            secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        ];
        for form in forms {
            let masked = redactor.text(format!("a {form} b"));
            assert_eq!(masked, "a [redacted] b", "{form}");
        }
        for plain in ["", "nothing", "s3cr%t/", "cmVkYWN0ZWQ=", "%", "\\", "&", "ö"] {
            assert_eq!(redactor.text(plain.to_owned()), plain);
        }
    }

    #[test]
    fn base64_is_found_wherever_it_begins() {
        let redactor = redactor(&["the-secret-of-it"]);
        for before in ["", "u", "us", "user:", "user1:", "user12:"] {
            for behind in ["", "x", "xy", "xyz", ":more of it"] {
                for engine in [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(format!("{before}the-secret-of-it{behind}"));
                    let masked = redactor.text(format!("Basic {encoded}"));
                    assert!(masked.contains(MASK), "{before} {behind}: {masked}");
                    // What is left does not make up any of it.
                    let left = masked.replace("Basic ", "").replace(MASK, "");
                    assert!(left.len() <= encoded.len() - 20, "{before} {behind}: {left}");
                }
            }
        }
    }

    #[test]
    fn values_errors_and_overlaps_are_masked() {
        let redactor = redactor(&["12345678", "abcdef", "defghi", "abcdef", "xyz"]);
        assert_eq!(
            redactor.value(json!({"k-abcdef": [12345678, 9, "abcdefghi", "abcdefabcdef", true, null]})),
            json!({"k-[redacted]": ["[redacted]", 9, "[redacted]", "[redacted]", true, null]})
        );
        let error = redactor.error(NodeError::failed("it said defghi"));
        assert_eq!(error.message, "it said [redacted]");
        assert_eq!(redactor.text("xyz".to_owned()), "xyz", "too short to be looked for");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_secret_gets_through(secret in "\\PC{4,24}", before in "\\PC{0,8}", behind in "\\PC{0,8}") {
            let redactor = redactor(&[&secret]);
            let encoded = [
                secret.clone(),
                STANDARD.encode(&secret),
                URL_SAFE_NO_PAD.encode(&secret),
                percent_encoded(&secret),
                hex::encode(&secret),
            ];
            for form in encoded {
                let masked = redactor.text(format!("{before} {form} {behind}"));
                prop_assert!(masked.contains(MASK), "{masked}");
                // The mask itself, or what stands around, may say the same as a short secret.
                if !format!("{before} {MASK} {behind}").contains(&form) {
                    prop_assert!(!masked.contains(&form), "{masked}");
                }
            }
        }
    }
}
