//! Cuts a text into chunks: whole paragraphs, sentences or words where they fit. A user-perceived character is split
//! only if it alone is too long.

use unicode_segmentation::UnicodeSegmentation;

/// The unit that is kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutUnit {
    /// Text between empty lines.
    Paragraphs,
    /// Sentences (UAX 29).
    Sentences,
    /// Words (UAX 29); the size counts words.
    Words,
    /// Grapheme clusters.
    Characters,
}

impl CutUnit {
    /// The smaller unit for a part that is too long.
    fn smaller(self) -> Option<Self> {
        match self {
            Self::Paragraphs => Some(Self::Sentences),
            Self::Sentences => Some(Self::Words),
            Self::Words => Some(Self::Characters),
            Self::Characters => None,
        }
    }

    fn parts(self, text: &str) -> Vec<&str> {
        match self {
            Self::Paragraphs => paragraphs(text),
            Self::Sentences => sentences(text),
            Self::Words => text.split_word_bounds().collect(),
            Self::Characters => text.graphemes(true).collect(),
        }
    }
}

/// Maximum sentence bytes; a longer one is cut here. Finding the end looks ahead; in some texts, from every letter to
/// the end of the window.
const SENTENCE: usize = 2_048;

/// Splits a text into sentences (UAX 29) and the text between them.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let window = rest.get(..rest.floor_char_boundary(SENTENCE.min(rest.len()))).unwrap_or(rest);
        let whole = window.len() == rest.len();
        let mut parts: Vec<&str> = window.split_sentence_bounds().collect();
        // The last sentence may continue after the window.
        if !whole && parts.len() > 1 {
            parts.pop();
        }
        let taken: usize = parts.iter().map(|part| part.len()).sum();
        found.extend(parts);
        rest = rest.get(taken..).unwrap_or_default();
    }
    found
}

/// Chunk settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) by: CutUnit,
    /// Maximum chunk size, in words or characters.
    pub(crate) size: usize,
    /// Maximum overlap between neighbours; at most half of `size`.
    pub(crate) overlap: usize,
}

/// A chunk; `start` and `end` are character offsets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The smallest part that is not cut.
#[derive(Debug, Clone, Copy)]
struct Atom {
    /// End offset in the text, in bytes.
    until: usize,
    /// Number of characters.
    letters: usize,
    /// Amount that it adds to a chunk's size.
    counts: usize,
}

/// Returns a text's chunks without surrounding white space; `None` if there are more than `most`.
pub(crate) fn cut(text: &str, how: Cut, most: usize) -> Option<Vec<Piece<'_>>> {
    let mut atoms = Vec::new();
    divide(text, how.by, how, &mut atoms);
    let counts = |at: usize| atoms.get(at).map_or(0, |atom: &Atom| atom.counts);
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let (mut first, mut bytes, mut letters) = (0, 0, 0);
    while first < atoms.len() {
        let (mut behind, mut held) = (first, 0);
        while behind < atoms.len() && (behind == first || held + counts(behind) <= how.size) {
            held += counts(behind);
            behind += 1;
        }
        let until = atoms.get(behind - 1).map_or(bytes, |atom| atom.until);
        let last = pieces.last().map_or(0, |last| last.end);
        let piece = trimmed(text.get(bytes..until).unwrap_or_default(), letters);
        // A chunk that adds only white space is dropped.
        if let Some(piece) = piece.filter(|piece| piece.end > last) {
            if pieces.len() >= most {
                return None;
            }
            pieces.push(piece);
        }
        // The next chunk begins with the allowed overlap, but needs room for what follows.
        let (mut next, mut shared) = (behind, 0);
        let room = how.size.saturating_sub(counts(behind)).min(how.overlap);
        while behind < atoms.len() && next > first + 1 && shared + counts(next - 1) <= room {
            next -= 1;
            shared += counts(next);
        }
        for atom in atoms.get(first..next).unwrap_or_default() {
            (bytes, letters) = (atom.until, letters + atom.letters);
        }
        first = next;
    }
    Some(pieces)
}

/// Splits parts that are too long into smaller ones.
fn divide(text: &str, by: CutUnit, how: Cut, atoms: &mut Vec<Atom>) {
    for part in by.parts(text) {
        let letters = part.chars().count();
        if how.by == CutUnit::Words
            && part.unicode_words().next().is_none()
            && let Some(last) = atoms.last_mut()
        {
            // Text between words belongs to the preceding word.
            (last.until, last.letters) = (last.until + part.len(), last.letters + letters);
            continue;
        }
        let mut add = |bytes: usize, letters: usize, counts: usize| {
            let from = atoms.last().map_or(0, |atom: &Atom| atom.until);
            atoms.push(Atom { until: from + bytes, letters, counts });
        };
        if how.by == CutUnit::Words {
            add(part.len(), letters, usize::from(part.unicode_words().next().is_some()));
        } else if letters <= how.size {
            add(part.len(), letters, letters);
        } else if let Some(smaller) = by.smaller() {
            divide(part, smaller, how, atoms);
        } else {
            part.chars().for_each(|letter| add(letter.len_utf8(), 1, 1));
        }
    }
}

/// Returns paragraphs, each with the empty lines after it.
fn paragraphs(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut at, mut empty) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        let is_empty = line.trim().is_empty();
        if empty && !is_empty {
            found.push(text.get(from..at).unwrap_or_default());
            from = at;
        }
        empty = is_empty;
        at += line.len();
    }
    found.push(text.get(from..).unwrap_or_default());
    found
}

/// Trims white space; `None` if nothing remains.
fn trimmed(text: &str, before: usize) -> Option<Piece<'_>> {
    let rest = text.trim_start();
    let start = before + text.chars().count() - rest.chars().count();
    let text = rest.trim_end();
    let end = start + text.chars().count();
    (!text.is_empty()).then_some(Piece { text, start, end })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, by: CutUnit, size: usize, overlap: usize) -> Vec<&str> {
        let pieces = cut(text, Cut { by, size, overlap }, 1_000).unwrap();
        pieces.iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn units_that_fit_are_not_split() {
        let text = "One is here. Two is there.\n\nThree is a paragraph of its own, and it is long.\n \nFour.";
        assert_eq!(
            texts(text, CutUnit::Paragraphs, 50, 0),
            ["One is here. Two is there.", "Three is a paragraph of its own, and it is long.", "Four."]
        );
        assert_eq!(
            texts(text, CutUnit::Sentences, 30, 0)[..2],
            ["One is here. Two is there.", "Three is a paragraph of its"]
        );
        assert_eq!(
            texts(text, CutUnit::Sentences, 30, 15)[..2],
            ["One is here. Two is there.", "Two is there.\n\nThree is a"]
        );
        assert_eq!(texts("a b c, d e", CutUnit::Words, 2, 1), ["a b", "b c,", "c, d", "d e"]);
        assert_eq!(texts("abcdefg", CutUnit::Characters, 4, 2), ["abcd", "cdef", "efg"]);
        assert_eq!(texts("", CutUnit::Words, 2, 0), [""; 0]);
        assert_eq!(texts(" \n\n ", CutUnit::Paragraphs, 1, 0), [""; 0]);
    }

    #[test]
    fn sentences_follow_the_standard_at_every_window_end() {
        let text = "Mr. Fox came late (at 8 p.m.) again. \u{201c}Why?\u{201d} she asked... Nobody knew!  It rained.\n".repeat(100);
        assert_eq!(sentences(&text), text.split_sentence_bounds().collect::<Vec<_>>());
        // Texts that are searched from every letter to the end, and one sentence longer than a window.
        for long in [format!("A.{}b", " ".repeat(200_000)), "word ".repeat(50_000), "ö)".repeat(50_000)] {
            let parts = sentences(&long);
            assert_eq!(parts.concat(), long);
            assert!(parts.iter().all(|part| part.len() <= SENTENCE));
        }
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        let family = "👨‍👩‍👧";
        assert_eq!(texts(&family.repeat(3), CutUnit::Characters, 7, 0), [family; 3]);
        // It is cut if it is longer than a chunk.
        assert_eq!(texts(&format!("e{}", "\u{301}".repeat(5)), CutUnit::Sentences, 3, 0).len(), 2);
        assert_eq!(cut("a b c", Cut { by: CutUnit::Words, size: 1, overlap: 0 }, 2), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn chunks_cover_the_text_within_the_limit(
            text in "(\\PC|[a-z ,.\n]|\u{301}){0,80}", way in 0_usize..4, size in 1_usize..20, half in 0_usize..10,
        ) {
            let by = [CutUnit::Paragraphs, CutUnit::Sentences, CutUnit::Words, CutUnit::Characters][way];
            let how = Cut { by, size, overlap: half.min(size / 2) };
            let letters: Vec<char> = text.chars().collect();
            let mut covered = vec![false; letters.len()];
            let mut last = (0, 0);
            for piece in cut(&text, how, 1_000).unwrap() {
                prop_assert_eq!(piece.text, letters[piece.start..piece.end].iter().collect::<String>());
                prop_assert!(piece.end > last.1 && piece.start >= last.0, "{:?} after {:?}", piece, last);
                last = (piece.start, piece.end);
                covered[piece.start..piece.end].fill(true);
                let held = if by == CutUnit::Words { piece.text.unicode_words().count() } else { piece.end - piece.start };
                prop_assert!(held <= size, "{:?}", piece);
            }
            for (letter, covered) in letters.iter().zip(covered) {
                prop_assert!(covered || letter.is_whitespace());
            }
        }
    }
}
