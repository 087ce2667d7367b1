//! Search index algorithms, without storage: terms, normalised vectors, top results, and the fusion of two rankings.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum characters per term.
const TERM_LETTERS: usize = 64;
/// Weight constant for lower ranks (reciprocal rank fusion).
const RRF: f64 = 60.0;

/// A chunk's location in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkLocation {
    /// The document's number in the index.
    pub document: i64,
    /// The chunk's position in the document.
    pub number: i32,
}

/// A chunk in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Its location.
    pub place: ChunkLocation,
    /// Higher is better.
    pub score: f64,
}

/// A chunk to index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChunk {
    /// Its text.
    pub text: String,
    /// Members that a search may filter by.
    pub metadata: Map<String, Value>,
    /// Normalised.
    pub vector: Option<Vec<f32>>,
    /// Its distinct terms, each with its count.
    pub terms: BTreeMap<String, u32>,
}

impl IndexedChunk {
    /// Creates a chunk and counts its terms.
    #[must_use]
    pub fn new(text: String, metadata: Map<String, Value>, vector: Option<Vec<f32>>) -> Self {
        let mut counted = BTreeMap::new();
        for term in terms(&text) {
            *counted.entry(term).or_insert(0) += 1;
        }
        Self { text, metadata, vector, terms: counted }
    }
}

/// Returns a text's terms in order: its words (UAX 29) as lower-case NFKC. No stop words or stemming, because an
/// index does not know the language.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let small: String = text.nfkc().collect::<String>().to_lowercase();
    small.unicode_words().map(|word| word.chars().take(TERM_LETTERS).collect()).collect()
}

/// Scales the vector to length 1; `None` if its length is zero or not finite.
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

/// Encodes a normalised vector for storage: 32-bit floats, little-endian.
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

/// Keeps only the best results.
#[derive(Debug)]
pub struct Best {
    most: usize,
    kept: BinaryHeap<WorstFirst>,
}

/// Orders the worst result first, so that it is dropped first.
#[derive(Debug)]
struct WorstFirst(Ranked);

impl Ord for WorstFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.place.cmp(&other.0.place))
    }
}

impl PartialOrd for WorstFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorstFirst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WorstFirst {}

impl Best {
    /// Keeps at most `most` results.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, kept: BinaryHeap::new() }
    }

    /// Adds a result.
    pub fn add(&mut self, place: ChunkLocation, score: f64) {
        self.kept.push(WorstFirst(Ranked { place, score }));
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// Returns the best results first; ties are ordered by location.
    #[must_use]
    pub fn sorted(self) -> Vec<Ranked> {
        self.kept.into_sorted_vec().into_iter().map(|WorstFirst(ranked)| ranked).collect()
    }
}

/// A location with its ranks, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fused {
    pub(crate) place: ChunkLocation,
    pub(crate) score: f64,
    pub(crate) rank_text: Option<u32>,
    pub(crate) rank_vector: Option<u32>,
}

/// Fuses two rankings, best first: each contributes 1 / (60 + rank).
pub(crate) fn fused(text: &[Ranked], vector: &[Ranked]) -> Vec<Fused> {
    let mut all: BTreeMap<ChunkLocation, Fused> = BTreeMap::new();
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
    fn equivalent_spellings_are_the_same_term() {
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
    fn the_best_matches_are_kept_and_two_rankings_are_merged() {
        let at = |number| ChunkLocation { document: 1, number };
        let mut best = Best::new(3);
        for (number, score) in [(0, 0.1), (1, 0.9), (2, 0.5), (3, 0.9), (4, 0.2)] {
            best.add(at(number), score);
        }
        let sorted = best.sorted();
        assert_eq!(sorted.iter().map(|ranked| ranked.place.number).collect::<Vec<_>>(), [1, 3, 2]);
        let other = [Ranked { place: at(2), score: 7.0 }, Ranked { place: at(9), score: 6.0 }];
        let both = fused(&sorted, &other);
        assert_eq!(both.iter().map(|one| one.place.number).collect::<Vec<_>>(), [2, 1, 3, 9]);
        assert_eq!((both[0].rank_text, both[0].rank_vector), (Some(3), Some(1)));
        assert!((both[0].score - (1.0 / 63.0 + 1.0 / 61.0)).abs() < 1e-12);
    }
}
