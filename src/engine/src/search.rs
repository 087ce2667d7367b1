//! What a search index is made of, without where it is kept: terms, normalised vectors, the best of many, and how two
//! rankings become one.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Letters of a term that count.
const TERM_LETTERS: usize = 64;
/// How much a rank further down still counts (reciprocal rank fusion).
const RRF: f64 = 60.0;

/// A chunk's place in an index: its document's number, and which of the document's it is.
pub type ChunkPlace = (i64, i32);

/// A chunk in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Where it is.
    pub place: ChunkPlace,
    /// The more the better.
    pub score: f64,
}

/// A chunk as an index takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChunk {
    /// What it says.
    pub text: String,
    /// What a search may ask for.
    pub metadata: Map<String, Value>,
    /// Normalised.
    pub vector: Option<Vec<f32>>,
    /// Its terms, each once, and how often each stands there.
    pub terms: BTreeMap<String, u32>,
}

impl IndexedChunk {
    /// Reads the terms of a text.
    #[must_use]
    pub fn new(text: String, metadata: Map<String, Value>, vector: Option<Vec<f32>>) -> Self {
        let mut counted = BTreeMap::new();
        for term in terms(&text) {
            *counted.entry(term).or_insert(0) += 1;
        }
        Self { text, metadata, vector, terms: counted }
    }
}

/// The terms of a text in their order: its words (UAX 29) as NFKC in small letters. Nothing is left out or stemmed, as an
/// index does not know the language.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let small: String = text.nfkc().collect::<String>().to_lowercase();
    small.unicode_words().map(|word| word.chars().take(TERM_LETTERS).collect()).collect()
}

/// The vector with a length of 1; `None` when it has none, or is not finite.
#[must_use]
#[expect(clippy::as_conversions, reason = "narrowing to f32 is what is meant")]
pub fn normalised(vector: &[f64]) -> Option<Vec<f32>> {
    let largest = vector.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return None;
    }
    let length = vector.iter().map(|number| (number / largest).powi(2)).sum::<f64>().sqrt() * largest;
    let vector: Vec<f32> = vector.iter().map(|number| (number / length) as f32).collect();
    vector.iter().all(|number| number.is_finite()).then_some(vector)
}

/// A normalised vector as it is kept: 32-bit floats, little-endian.
#[must_use]
pub fn packed(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Cosine of two normalised vectors, one of them packed.
#[must_use]
pub fn cosine(vector: &[f32], packed: &[u8]) -> f64 {
    let (numbers, _) = packed.as_chunks::<4>();
    let product = |(a, b): (&f32, &[u8; 4])| f64::from(a * f32::from_le_bytes(*b));
    vector.iter().zip(numbers).map(product).sum()
}

/// The best of many, without keeping the others.
#[derive(Debug)]
pub struct Best {
    most: usize,
    kept: BinaryHeap<Worse>,
}

/// The worst comes first, so that it is the one that gives way.
#[derive(Debug)]
struct Worse(Ranked);

impl Ord for Worse {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.place.cmp(&other.0.place))
    }
}

impl PartialOrd for Worse {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worse {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worse {}

impl Best {
    /// Keeps at most so many.
    #[must_use]
    pub fn of(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    /// One more.
    pub fn add(&mut self, place: ChunkPlace, score: f64) {
        self.kept.push(Worse(Ranked { place, score }));
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// The best first; of equal ones the earlier place.
    #[must_use]
    pub fn sorted(self) -> Vec<Ranked> {
        self.kept.into_sorted_vec().into_iter().map(|Worse(ranked)| ranked).collect()
    }
}

/// A place in the rankings that have it, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fused {
    pub(crate) place: ChunkPlace,
    pub(crate) score: f64,
    pub(crate) rank_text: Option<u32>,
    pub(crate) rank_vector: Option<u32>,
}

/// Two rankings as one, the best first: each gives 1 / (60 + rank).
pub(crate) fn fused(text: &[Ranked], vector: &[Ranked]) -> Vec<Fused> {
    let mut all: BTreeMap<ChunkPlace, Fused> = BTreeMap::new();
    let none = |place| Fused { place, score: 0.0, rank_text: None, rank_vector: None };
    for (rank, ranked) in (1_u32..).zip(text) {
        let one = all.entry(ranked.place).or_insert_with(|| none(ranked.place));
        one.score += 1.0 / (RRF + f64::from(rank));
        one.rank_text = Some(rank);
    }
    for (rank, ranked) in (1_u32..).zip(vector) {
        let one = all.entry(ranked.place).or_insert_with(|| none(ranked.place));
        one.score += 1.0 / (RRF + f64::from(rank));
        one.rank_vector = Some(rank);
    }
    let mut all: Vec<Fused> = all.into_values().collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_the_same_are_the_same_term() {
        assert_eq!(
            terms("Größe, ＡＢＣ ﬁn—can't 3.5 e\u{301}"),
            ["größe", "abc", "fin", "can't", "3.5", "é"]
        );
        assert_eq!(terms("東京 👍 !"), ["東", "京"]);
        assert_eq!(terms(&"x".repeat(500))[0].len(), TERM_LETTERS);
    }

    #[test]
    fn vectors_are_normalised_and_compared() {
        let vector = normalised(&[3e200, 4e200]).unwrap();
        assert!((cosine(&vector, &packed(&vector)) - 1.0).abs() < 1e-6);
        let other = normalised(&[-4.0, 3.0]).unwrap();
        assert!(cosine(&vector, &packed(&other)).abs() < 1e-6);
        for none in [vec![], vec![0.0, 0.0], vec![f64::NAN, 1.0], vec![f64::INFINITY]] {
            assert_eq!(normalised(&none), None, "{none:?}");
        }
    }

    #[test]
    fn the_best_are_kept_and_two_rankings_become_one() {
        let mut best = Best::of(3);
        for (number, score) in [(0, 0.1), (1, 0.9), (2, 0.5), (3, 0.9), (4, 0.2)] {
            best.add((1, number), score);
        }
        let sorted = best.sorted();
        assert_eq!(sorted.iter().map(|ranked| ranked.place.1).collect::<Vec<_>>(), [1, 3, 2]);
        let other = [Ranked { place: (1, 2), score: 7.0 }, Ranked { place: (1, 9), score: 6.0 }];
        let both = fused(&sorted, &other);
        assert_eq!(both.iter().map(|one| one.place.1).collect::<Vec<_>>(), [2, 1, 3, 9]);
        assert_eq!((both[0].rank_text, both[0].rank_vector), (Some(3), Some(1)));
        assert!((both[0].score - (1.0 / 63.0 + 1.0 / 61.0)).abs() < 1e-12);
    }
}
