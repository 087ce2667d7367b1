//! `practice/embed`: text vectors that are close for texts with common words or word parts.

use super::text::words;
use super::{READ, tokens};
use models::{EmbedRequest, Embeddings, ModelError, ModelErrorKind, Usage};

/// Default and maximum vector dimensions.
const DIMENSIONS: u32 = 256;
const MOST_DIMENSIONS: u32 = 4_096;
/// Letters per word part.
const PART: usize = 3;
/// Weights: a word, an empty word such as "the", and a word part.
const WORD: f64 = 1.0;
const EMPTY_WORD: f64 = 0.15;
const WORD_PART: f64 = 0.4;

/// The vectors for a request: a function of the request alone.
pub(super) fn embeddings(request: &EmbedRequest) -> Result<Embeddings, ModelError> {
    let dimensions = request.dimensions.unwrap_or(DIMENSIONS);
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        let message = format!("practice/embed supports 1 to {MOST_DIMENSIONS} dimensions");
        return Err(ModelError { kind: ModelErrorKind::Rejected, message, retry_after: None });
    }
    let vectors = request.texts.iter().map(|text| vector(text, dimensions)).collect();
    let input_tokens = request.texts.iter().map(|text| tokens::count(text)).sum();
    let usage = Some(Usage { input_tokens, ..Usage::default() });
    Ok(Embeddings { vectors, usage, model: Some("practice/embed".to_owned()) })
}

/// A unit vector; all zeros for a text without words.
fn vector(text: &str, dimensions: u32) -> Vec<f64> {
    let mut sums = vec![0.0; usize::try_from(dimensions).unwrap_or(1)];
    let text = text.get(..text.floor_char_boundary(READ)).unwrap_or(text);
    let mut add = |what: &str, weight: f64| {
        let hash = hash(what);
        let place = usize::try_from(hash % u64::from(dimensions)).unwrap_or(0);
        let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
        if let Some(sum) = sums.get_mut(place) {
            *sum += sign * weight;
        }
    };
    for word in words(text) {
        let says = !super::text::is_empty_word(&word);
        add(&word, if says { WORD } else { EMPTY_WORD });
        if !says {
            continue;
        }
        let letters: Vec<char> = format!("<{word}>").chars().collect();
        for part in letters.windows(PART) {
            add(&part.iter().collect::<String>(), WORD_PART);
        }
    }
    let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
    if length > 0.0 {
        for sum in &mut sums {
            *sum = (*sum / length * 1e6).round() / 1e6;
        }
    }
    sums
}

/// FNV-1a with a final mix, so that every bit affects the place.
fn hash(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}
