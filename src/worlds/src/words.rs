//! Nonce vocabulary, and word splitting.

use std::collections::BTreeSet;

use super::random::Draw;

const CONSONANTS: &[u8] = b"bdfgklmnprstv";
/// Middle consonants of every nonce word: English words with them are rare.
const MIDDLE: &[u8] = b"zxj";
const VOWELS: &[u8] = b"aeiou";
/// Ticket letters: without vowels, so that a ticket never equals a nonce word.
const TICKET: &[u8] = b"bcdfghklmnprstvw";

/// The words of a text in lowercase, without punctuation.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// The distinct words of a text.
pub(super) fn word_set(text: &str) -> BTreeSet<String> {
    words(text).collect()
}

/// Whether a word looks like an action: consonant, vowel, three times.
pub(super) fn is_action(word: &str) -> bool {
    let is = |letter: &u8, kind: &[u8]| kind.contains(letter);
    match word.as_bytes() {
        [a, b, c, d, e, f] => {
            let vowels = [b, d, f].into_iter().all(|letter| is(letter, VOWELS));
            vowels && is(a, CONSONANTS) && is(c, MIDDLE) && is(e, CONSONANTS)
        }
        _ => false,
    }
}

/// Makes nonce words, each only once.
pub(super) struct Vocabulary {
    draw: Draw,
    made: usize,
    known: BTreeSet<String>,
}

impl Vocabulary {
    pub(super) fn new(draw: Draw) -> Self {
        Self { draw, made: 0, known: BTreeSet::new() }
    }

    /// A five-letter word for triggers and distractors.
    pub(super) fn trigger(&mut self) -> String {
        self.make(&[CONSONANTS, VOWELS, MIDDLE, VOWELS, CONSONANTS])
    }

    /// A six-letter word that an output must contain.
    pub(super) fn action(&mut self) -> String {
        self.make(&[CONSONANTS, VOWELS, MIDDLE, VOWELS, CONSONANTS, VOWELS])
    }

    /// A desk name: `desk-` and four letters.
    pub(super) fn desk(&mut self) -> String {
        format!("{DESK}{}", self.make(&[CONSONANTS, VOWELS, MIDDLE, VOWELS]))
    }

    /// The six-letter prefix for one ticket kind.
    pub(super) fn ticket_prefix(&mut self) -> String {
        self.make(&[TICKET; 6])
    }

    fn make(&mut self, letters: &[&[u8]]) -> String {
        loop {
            self.made += 1;
            let draw = self.draw.at(self.made);
            let letter = |(at, letters): (usize, &&[u8])| {
                draw.at(at).choose(letters).map(|letter| char::from(*letter))
            };
            let word: String = letters.iter().enumerate().filter_map(letter).collect();
            if self.known.insert(word.clone()) {
                return word;
            }
        }
    }
}

/// The desk name prefix.
const DESK: &str = "desk-";

/// The first desk name in a text.
pub(super) fn desk_in(text: &str) -> Option<&str> {
    let from = text.find(DESK)?;
    let rest = text.get(from..)?;
    let name = rest.get(DESK.len()..)?;
    let length = name.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(name.len());
    rest.get(..DESK.len() + length).filter(|_| length > 0)
}

/// A unique ticket: the prefix, an index and two letters against guessing.
pub(super) fn ticket(prefix: &str, index: usize, draw: Draw) -> String {
    let letter = |number: usize| TICKET.get(number % TICKET.len()).map_or('b', |letter| char::from(*letter));
    let mut written = prefix.to_owned();
    let mut rest = index;
    for _ in 0..4 {
        written.push(letter(rest));
        rest /= TICKET.len();
    }
    (0..2).for_each(|at| written.push(letter(draw.at(at).below(TICKET.len()))));
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_has_each_word_once() {
        let mut vocabulary = Vocabulary::new(Draw::new(1, "test"));
        let actions: Vec<String> = (0..200).map(|_| vocabulary.action()).collect();
        assert!(actions.iter().all(|word| is_action(word)));
        assert_eq!(actions.iter().collect::<BTreeSet<_>>().len(), 200);
        let trigger = vocabulary.trigger();
        assert!(trigger.len() == 5 && !is_action(&trigger));
        assert!(!is_action("nothing") && !is_action("members"));
    }

    #[test]
    fn words_have_no_marks() {
        assert_eq!(
            words("If \"Tozab\", write “kezami”.").collect::<Vec<_>>(),
            ["if", "tozab", "write", "kezami"]
        );
    }

    #[test]
    fn a_desk_is_found_in_a_text() {
        assert_eq!(desk_in("Note x for desk-kozu: y"), Some("desk-kozu"));
        assert_eq!(desk_in("the desk"), None);
        assert_eq!(desk_in("desk- "), None);
    }

    #[test]
    fn tickets_are_unique() {
        let draw = Draw::new(1, "test");
        let tickets: BTreeSet<String> =
            (0..5_000).map(|index| ticket("qqqqqq", index, draw.at(index))).collect();
        assert_eq!(tickets.len(), 5_000);
    }
}
