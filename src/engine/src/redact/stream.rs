//! Masks a text that arrives in pieces: the possible beginning of a secret is held back until it is decided.

use async_trait::async_trait;
use parking_lot::Mutex;

use super::forms::Effort;
use super::{KnownSecrets, MASK, Redactor};
use models::Pieces;

/// Maximum bytes held back before giving up the search for the end of a secret.
const LONGEST_HELD: usize = 4 << 10;

/// Forwards pieces without secrets.
pub(crate) struct Masked<'a> {
    to: &'a dyn Pieces,
    redactor: &'a Redactor,
    held: Mutex<HeldText>,
}

#[derive(Default)]
struct HeldText {
    text: String,
    /// Drops all further text.
    given_up: bool,
}

impl<'a> Masked<'a> {
    pub(crate) fn new(to: &'a dyn Pieces, redactor: &'a Redactor) -> Self {
        Self { to, redactor, held: Mutex::default() }
    }

    /// Ends the text and forwards the held part.
    pub(crate) async fn finish(self) {
        let rest = self.redactor.text(self.held.into_inner().text);
        if !rest.is_empty() {
            self.to.piece(&rest).await;
        }
    }
}

#[async_trait]
impl Pieces for Masked<'_> {
    async fn piece(&self, text: &str) {
        let ready = {
            let mut held = self.held.lock();
            if held.given_up {
                return;
            }
            held.text.push_str(text);
            let known = self.redactor.known();
            match known.ready(&held.text) {
                Some(end) => known.text(held.text.drain(..end).collect()),
                None => {
                    *held = HeldText { text: String::new(), given_up: true };
                    MASK.to_owned()
                }
            }
        };
        if !ready.is_empty() {
            self.to.piece(&ready).await;
        }
    }
}

impl KnownSecrets {
    /// Returns the length of the prefix that no further text can turn into a secret; `None` if that is unknown.
    fn ready(&self, text: &str) -> Option<usize> {
        if self.is_empty() {
            return Some(text.len());
        }
        let far = |longest: usize| text.floor_char_boundary(text.len().saturating_sub(longest));
        // A secret without white space has none in any form, and no characters outside its own: it ends with its
        // word.
        let ends_word = |letter: char| letter.is_whitespace() || (!self.wide && !letter.is_ascii());
        let word = text.rfind(ends_word).map_or(0, |at| text.ceil_char_boundary(at.saturating_add(1)));
        let begun = self.begun(text, far(self.longest_spaced));
        let end = word.max(far(self.longest)).min(begun.unwrap_or(text.len()));
        if end == word && self.longest_spaced == 0 { Some(end) } else { self.before_secret(text, end) }
    }

    /// Returns the first position from `from` on where an unfinished secret with white space may begin.
    fn begun(&self, text: &str, from: usize) -> Option<usize> {
        let mut effort = Effort::for_text(text);
        let mut places = text.bytes().enumerate().skip(from);
        let begun = places.find(|(at, byte)| {
            self.starting_with(*byte).any(|(_, forms)| forms.has_begun(text, *at, &mut effort))
        });
        begun.map(|(at, _)| at)
    }

    /// Returns the last position up to `end` that does not split a secret: a split secret is held until it is
    /// complete.
    fn before_secret(&self, text: &str, end: usize) -> Option<usize> {
        let across = self.places(text)?.into_iter().find(|place| place.start < end && end < place.end);
        let at = across.map_or(end, |place| place.start);
        // Endless adjacent secrets would be held forever.
        (at > 0 || text.len() <= self.longest.saturating_mul(4).max(LONGEST_HELD)).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use kernel::Secret;

    use super::*;

    #[derive(Default)]
    struct Collected(Mutex<Vec<String>>);

    #[async_trait]
    impl Pieces for Collected {
        async fn piece(&self, text: &str) {
            self.0.lock().push(text.to_owned());
        }
    }

    async fn masked_pieces(secrets: &[&str], pieces: &[&str]) -> Vec<String> {
        let (redactor, collected) = (Redactor::default(), Collected::default());
        secrets.iter().for_each(|secret| redactor.learn(&Secret::from((*secret).to_owned())));
        let masked = Masked::new(&collected, &redactor);
        for piece in pieces {
            masked.piece(piece).await;
        }
        masked.finish().await;
        collected.0.into_inner()
    }

    #[tokio::test]
    async fn a_secret_is_masked_across_any_pieces() {
        for secret in ["sk-canary-0123456789", "a secret of words", "ö\"&\u{1F600}x-y"] {
            let forms = [
                secret.to_owned(),
                STANDARD.encode(secret),
                hex::encode(secret),
                super::super::percent_encoded(secret),
            ];
            for form in forms {
                let text = format!("It is {form}, and {form} again. {}", "More words. ".repeat(40));
                for size in 1..12 {
                    let letters: Vec<char> = text.chars().collect();
                    let pieces: Vec<String> =
                        letters.chunks(size).map(|piece| piece.iter().collect()).collect();
                    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                    let masked = masked_pieces(&[secret], &pieces).await.concat();
                    assert_eq!(masked, text.replace(&form, "[redacted]"), "{form} in pieces of {size}");
                }
            }
        }
    }

    #[tokio::test]
    async fn words_are_sent_when_they_are_complete() {
        assert_eq!(
            masked_pieces(&["sk-canary-0123456789"], &["One ", "two", " three", "."]).await,
            ["One ", "two ", "three."]
        );
        assert_eq!(masked_pieces(&[], &["One", " tw", "o"]).await, ["One", " tw", "o"]);
        assert_eq!(
            masked_pieces(&["sk-canary-0123456789"], &["早上", "好，sk", "-x"]).await,
            ["早上", "好，", "sk-x"]
        );
        // Secrets with white space are held back only where they may have begun.
        let spaced = ["sk-canary-0123456789", "two words of one secret"];
        assert_eq!(
            masked_pieces(&spaced, &["One ", "tw", "o wo", "nders ", "and two words of", " many"]).await,
            ["One ", "two wonders ", "and ", "two words of ", "many"]
        );
        assert_eq!(
            masked_pieces(&spaced, &["It is two+words%20o", "f one %7", "3ecret. "]).await,
            ["It is ", "[redacted]. "]
        );
        // An endless word is not held forever.
        let long = "x".repeat(4_000);
        let masked = masked_pieces(&["sk-canary-0123456789"], &[&long, "y"]).await;
        assert!(
            masked.len() >= 2 && masked[0].len() > 3_500 && masked.concat() == format!("{long}y"),
            "{}",
            masked.len()
        );
    }

    #[tokio::test]
    async fn endless_secrets_do_not_hold_back_all_text() {
        let secret = "sk-canary-0123456789";
        let pieces = vec![secret; 2_000];
        let masked = masked_pieces(&[secret], &pieces).await;
        assert_eq!(masked, ["[redacted]"]);
        // A text that takes too long to search is not held forever either.
        let (hard, long) = (format!("{}b", "a".repeat(5_000)), "a".repeat(200_000));
        let pieces: Vec<&str> =
            long.as_bytes().chunks(997).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
        let masked =
            masked_pieces(&[&hard], &[&pieces[..], &[hard.as_str()], &pieces[..]].concat()).await.concat();
        assert!(!masked.contains(&hard), "{}", masked.len());
    }
}
