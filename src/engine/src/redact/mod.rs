//! Redacts a run's used secrets from all its output: in plain form, and in the forms in which servers often repeat
//! them (base64 at any offset, hexadecimal, URL, JSON and HTML escapes).

mod forms;
mod stream;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use kernel::Secret;
use parking_lot::RwLock;
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};

use self::forms::{Effort, Forms};
pub(crate) use self::stream::Masked;
use crate::NodeError;

/// The replacement for a secret.
const MASK: &str = "[redacted]";
/// Minimum secret bytes to search for: shorter secrets occur in any text.
const SHORTEST: usize = 4;

/// The secrets that a run has used so far.
#[derive(Default)]
pub(crate) struct Redactor {
    known: RwLock<Arc<KnownSecrets>>,
    /// Names of secrets that were relearned after a restart.
    again: RwLock<BTreeSet<String>>,
}

/// The secrets to search for.
#[derive(Clone)]
pub(crate) struct KnownSecrets {
    forms: Vec<Arc<Forms>>,
    /// Per byte, the secrets that can begin with it.
    starts: Vec<Vec<usize>>,
    /// Maximum bytes of any secret's form.
    longest: usize,
    /// The same maximum for secrets that contain white space.
    longest_spaced: usize,
    /// Whether any secret contains a non-ASCII character.
    wide: bool,
}

impl Default for KnownSecrets {
    fn default() -> Self {
        Self { forms: Vec::new(), starts: vec![Vec::new(); 256], longest: 0, longest_spaced: 0, wide: false }
    }
}

impl Redactor {
    /// Redacts a secret from now on.
    pub(crate) fn learn(&self, secret: &Secret) {
        // Surrounding white space is not secret, and may be absent where the secret is used.
        let plain = secret.expose_secret().trim();
        if plain.len() < SHORTEST {
            return;
        }
        let json = Zeroizing::new(Value::String(plain.to_owned()).to_string());
        // Encoded as sent: a server that encodes a whole request encodes the secret in that form.
        let percent = Zeroizing::new(percent_encoded(plain));
        let form = Zeroizing::new(percent.replace("%20", "+"));
        let sent = [plain, percent.as_str(), form.as_str(), json.trim_matches('"')];
        let mut known = self.known.write();
        Arc::make_mut(&mut known).measure(plain);
        for text in sent {
            if !known.forms.iter().any(|known| known.is(text)) {
                Arc::make_mut(&mut known).learn(Forms::new(text));
            }
        }
    }

    /// Returns the names that have not been requested yet, and marks them as requested.
    pub(crate) fn not_learned<'n>(&self, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        let mut again = self.again.write();
        names.filter(|name| again.insert((*name).clone())).cloned().collect()
    }

    /// Returns the current secrets.
    pub(crate) fn known(&self) -> Arc<KnownSecrets> {
        Arc::clone(&self.known.read())
    }

    /// Redacts a text.
    pub(crate) fn text(&self, text: String) -> String {
        self.known().text(text)
    }

    /// Redacts an error.
    pub(crate) fn error(&self, error: NodeError) -> NodeError {
        NodeError { message: self.text(error.message), ..error }
    }
}

impl KnownSecrets {
    /// Updates the number of bytes that must be held back for this secret.
    fn measure(&mut self, plain: &str) {
        // An escaped character takes up to six times its bytes.
        let longest = plain.len().saturating_mul(6);
        self.longest = self.longest.max(longest);
        if plain.contains(char::is_whitespace) {
            self.longest_spaced = self.longest_spaced.max(longest);
        }
        self.wide |= !plain.is_ascii();
    }

    fn learn(&mut self, forms: Forms) {
        let index = self.forms.len();
        for (byte, starts) in (0..=u8::MAX).zip(&mut self.starts) {
            if forms.can_begin_with(byte) {
                starts.push(index);
            }
        }
        self.forms.push(Arc::new(forms));
    }

    /// The secrets that can begin with this byte, by index.
    fn starting_with(&self, byte: u8) -> impl Iterator<Item = (usize, &Forms)> {
        let indexes = self.starts.get(usize::from(byte)).into_iter().flatten();
        indexes.filter_map(|index| Some((*index, self.forms.get(*index)?.as_ref())))
    }

    /// Whether the set of secrets is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Redacts a value, including member names.
    pub(crate) fn value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, member)| (self.text(name), self.value(member)))
                        .collect::<Map<_, _>>(),
                )
            }
            Value::Number(number) => match self.without(&number.to_string()) {
                Some(masked) => Value::String(masked),
                None => Value::Number(number),
            },
            other => other,
        }
    }

    fn text(&self, text: String) -> String {
        self.without(&text).unwrap_or(text)
    }

    /// Masks every secret in a text; `None` if it contains none.
    fn without(&self, text: &str) -> Option<String> {
        // The text consists of beginnings of secrets.
        let Some(places) = self.places(text) else { return Some(MASK.to_owned()) };
        if places.is_empty() {
            return None;
        }
        let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
        for place in places {
            clean.push_str(text.get(at..place.start).unwrap_or_default());
            clean.push_str(MASK);
            at = place.end;
        }
        clean.push_str(text.get(at..).unwrap_or_default());
        Some(clean)
    }

    /// Finds the positions of secrets; `None` if the search takes too long.
    fn places(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let mut effort = Effort::for_text(text);
        // Overlapping or adjacent matches form one range.
        let mut places: Vec<Range<usize>> = Vec::new();
        // Per secret, the end of its last match.
        let mut found = vec![0; self.forms.len()];
        for (at, byte) in text.bytes().enumerate() {
            for (index, forms) in self.starting_with(byte) {
                let Some(found) = found.get_mut(index) else { continue };
                let Some(place) = (at >= *found).then(|| forms.at(text, at, &mut effort)).flatten() else {
                    continue;
                };
                *found = place.end;
                match places.last_mut().filter(|last| place.start <= last.end) {
                    Some(last) => *last = last.start.min(place.start)..last.end.max(place.end),
                    None => places.push(place),
                }
            }
            if effort.is_spent() {
                return None;
            }
        }
        Some(places)
    }
}

/// Escapes every character that an address could interpret.
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
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
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
    fn only_secrets_are_masked_in_every_form() {
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
    fn base64_is_found_at_any_offset() {
        let redactor = redactor(&["the-secret-of-it"]);
        for before in ["", "u", "us", "user:", "user1:", "user12:"] {
            for after in ["", "x", "xy", "xyz", ":more of it"] {
                for engine in [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(format!("{before}the-secret-of-it{after}"));
                    let masked = redactor.text(format!("Basic {encoded}"));
                    assert!(masked.contains(MASK), "{before} {after}: {masked}");
                    // The remaining characters do not reveal the secret.
                    let left = masked.replace("Basic ", "").replace(MASK, "");
                    assert!(left.len() <= encoded.len() - 20, "{before} {after}: {left}");
                }
            }
        }
    }

    #[test]
    fn values_errors_and_overlaps_are_masked() {
        let redactor = redactor(&["12345678", "abcdef", "defghi", "abcdef", "xyz"]);
        assert_eq!(
            redactor
                .known()
                .value(json!({"k-abcdef": [12345678, 9, "abcdefghi", "abcdefabcdef", true, null]})),
            json!({"k-[redacted]": ["[redacted]", 9, "[redacted]", "[redacted]", true, null]})
        );
        let error = redactor.error(NodeError::failed("it said defghi"));
        assert_eq!(error.message, "it said [redacted]");
        assert_eq!(redactor.text("xyz".to_owned()), "xyz", "too short to be looked for");
    }

    #[test]
    fn a_text_that_takes_too_long_to_search_is_masked_as_a_whole() {
        let secret = format!("{}b", "a".repeat(5_000));
        let redactor = redactor(&[&secret]);
        assert_eq!(redactor.text("a".repeat(200_000)), MASK);
        // A text that is quick to search is masked as usual.
        let around = ["x".repeat(200_000), "a".repeat(20)];
        let masked = redactor.text(around.join(&secret));
        assert!(masked == around.join(MASK), "{} letters are left", masked.len());
    }

    #[test]
    fn many_secrets_are_found_in_one_pass() {
        let secrets: Vec<String> = (0..50).map(|n| format!("secret-number-{n:03}")).collect();
        let redactor = redactor(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        let masked = redactor.text(secrets.join(" and "));
        assert_eq!(masked, vec![MASK; 50].join(" and "));
        let names = ["one".to_owned(), "two".to_owned()];
        assert_eq!(redactor.not_learned(names.iter()), names);
        assert!(redactor.not_learned(names.iter()).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_secret_gets_through(secret in "\\PC{4,24}", before in "\\PC{0,8}", after in "\\PC{0,8}") {
            let redactor = redactor(&[&secret]);
            let encoded = [
                secret.clone(),
                STANDARD.encode(&secret),
                URL_SAFE_NO_PAD.encode(&secret),
                percent_encoded(&secret),
                hex::encode(&secret),
            ];
            for form in encoded {
                let masked = redactor.text(format!("{before} {form} {after}"));
                prop_assert!(masked.contains(MASK), "{masked}");
                // The mask or the surrounding text may equal a short secret.
                if !format!("{before} {MASK} {after}").contains(&form) {
                    prop_assert!(!masked.contains(&form), "{masked}");
                }
            }
        }
    }
}
