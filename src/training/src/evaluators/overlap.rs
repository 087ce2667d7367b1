//! Text overlap evaluators. Sources: SQuAD (token F1), BLEU (Papineni 2002, smoothed as Lin and Och 2004), ROUGE-L
//! (Lin 2004), chrF (Popović 2015, β = 2).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;

use super::config::Config;
use super::judge::Judge;
use super::subject::{Subject, shown};
use super::verdict::Verdict;
use crate::numbers::{float, share};

/// Maximum words and characters compared per text: the time grows with their product.
const MOST_WORDS: usize = 2_000;
const MOST_CHARACTERS: usize = 4_000;
/// Maximum n-gram lengths.
const BLEU_ORDER: usize = 4;
const CHRF_ORDER: usize = 6;

/// A measure from 0 to 1 for an expected text and an output.
pub(super) type Measure = fn(&str, &str) -> f64;

/// Compares texts by a measure.
pub(super) struct Overlap {
    measure: Measure,
    case: bool,
    expected: Option<String>,
}

impl Overlap {
    pub(super) fn read(config: &mut Config<'_, '_>, measure: Measure) -> Option<Box<dyn Judge>> {
        let case = config.flag("case_sensitive").unwrap_or(false);
        let expected = config.optional_text("expected").map(str::to_owned);
        Some(Box::new(Self { measure, case, expected }))
    }
}

impl Judge for Overlap {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let expected = self.expected.clone().or_else(|| subject.expected_text());
        let expected = expected.ok_or("the case has no expected_output")?;
        let of = |text: &str| if self.case { text.to_owned() } else { text.to_lowercase() };
        let score = (self.measure)(&of(&expected), &of(subject.text));
        let verdict = Verdict::from_score(score, threshold.unwrap_or(0.5));
        if score >= 1.0 {
            return Ok(verdict);
        }
        let (expected, got) = (shown(&expected), shown(subject.text));
        Ok(verdict.because(format!("Scored {score:.2}. Expected “{expected}”. Got “{got}”.")))
    }
}

fn words(text: &str) -> Vec<&str> {
    text.unicode_words().take(MOST_WORDS).collect()
}

fn counts<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

/// The size of the multiset intersection.
fn common<T: Ord>(a: &BTreeMap<T, usize>, b: &BTreeMap<T, usize>) -> usize {
    a.iter().map(|(item, count)| b.get(item).map_or(0, |other| *count.min(other))).sum()
}

fn f1(common: usize, expected: usize, got: usize) -> f64 {
    match (expected, got) {
        (0, 0) => 1.0,
        _ => 2.0 * float(common) / float(expected + got).max(1.0),
    }
}

/// F1 over words.
pub(super) fn token_f1(expected: &str, got: &str) -> f64 {
    let (expected, got) = (words(expected), words(got));
    f1(common(&counts(expected.iter()), &counts(got.iter())), expected.len(), got.len())
}

/// 1 minus the edit distance relative to the longer text.
pub(super) fn levenshtein(expected: &str, got: &str) -> f64 {
    let cut = |text: &str| text.trim().chars().take(MOST_CHARACTERS).collect::<String>();
    strsim::normalized_levenshtein(&cut(expected), &cut(got))
}

/// F1 from the longest common subsequence over words.
pub(super) fn rouge_l(expected: &str, got: &str) -> f64 {
    let (expected, got) = (words(expected), words(got));
    let mut row = vec![0_usize; got.len() + 1];
    for word in &expected {
        let mut before = 0;
        for (place, other) in got.iter().enumerate() {
            let (left, above) =
                (row.get(place).copied().unwrap_or(0), row.get(place + 1).copied().unwrap_or(0));
            let best = if word == other { before + 1 } else { above.max(left) };
            before = above;
            if let Some(cell) = row.get_mut(place + 1) {
                *cell = best;
            }
        }
    }
    f1(row.last().copied().unwrap_or(0), expected.len(), got.len())
}

/// The geometric mean of n-gram precisions, with add-one smoothing for n above 1, and a brevity penalty.
pub(super) fn bleu(expected: &str, got: &str) -> f64 {
    let (expected, got) = (words(expected), words(got));
    if got.is_empty() || expected.is_empty() {
        return if got.is_empty() && expected.is_empty() { 1.0 } else { 0.0 };
    }
    let order = BLEU_ORDER.min(got.len());
    let mut sum = 0.0;
    for n in 1..=order {
        let (of_expected, of_got) = (counts(expected.windows(n)), counts(got.windows(n)));
        let (matches, all) = (common(&of_expected, &of_got), got.len() + 1 - n);
        let more = usize::from(n > 1);
        if matches + more == 0 {
            return 0.0;
        }
        sum += share(matches + more, all + more).ln();
    }
    let brevity = (1.0 - float(expected.len()) / float(got.len())).min(0.0).exp();
    (sum / float(order)).exp() * brevity
}

/// F2 from the mean precision and mean recall over character n-grams; whitespace does not count.
pub(super) fn chrf(expected: &str, got: &str) -> f64 {
    let letters = |text: &str| {
        text.chars().filter(|letter| !letter.is_whitespace()).take(MOST_CHARACTERS).collect::<Vec<char>>()
    };
    let (expected, got) = (letters(expected), letters(got));
    if expected.is_empty() || got.is_empty() {
        return if expected.is_empty() && got.is_empty() { 1.0 } else { 0.0 };
    }
    let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0);
    for n in 1..=CHRF_ORDER.min(expected.len()).min(got.len()) {
        let (of_expected, of_got) = (counts(expected.windows(n)), counts(got.windows(n)));
        let matches = common(&of_expected, &of_got);
        precision += share(matches, got.len() + 1 - n);
        recall += share(matches, expected.len() + 1 - n);
        orders += 1;
    }
    let (precision, recall) = (precision / f64::from(orders), recall / f64::from(orders));
    if precision + recall == 0.0 { 0.0 } else { 5.0 * precision * recall / (4.0 * precision + recall) }
}

/// `set_f1`.
pub(super) struct SetF1;

impl SetF1 {
    pub(super) fn read(_config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        Some(Box::new(Self))
    }
}

/// The entries of a list, or of a text with one entry per line or between commas.
fn entries(value: &Value) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let entries: Vec<String> = match value {
        Value::Array(entries) => entries.iter().map(text).collect(),
        Value::Null => Vec::new(),
        other => text(other).split(['\n', ',', ';']).map(str::to_owned).collect(),
    };
    let entries =
        entries.iter().map(|entry| entry.trim().trim_start_matches(['-', '*', '•']).trim().to_lowercase());
    entries.filter(|entry| !entry.is_empty()).collect()
}

impl Judge for SetF1 {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        if subject.expected().is_null() {
            return Err("the case has no expected_output".to_owned());
        }
        let got = match subject.json() {
            Ok(list @ Value::Array(_)) => entries(&list),
            _ => entries(&Value::String(subject.text.to_owned())),
        };
        let expected = entries(subject.expected());
        let score = f1(expected.intersection(&got).count(), expected.len(), got.len());
        let listed = |entries: Vec<&String>| {
            entries.into_iter().map(|entry| format!("“{}”", shown(entry))).collect::<Vec<_>>().join(", ")
        };
        let missing = listed(expected.difference(&got).collect());
        let extra = listed(got.difference(&expected).collect());
        let verdict = Verdict::from_score(score, threshold.unwrap_or(0.5));
        Ok(match (missing.is_empty(), extra.is_empty()) {
            (true, true) => verdict,
            (false, true) => verdict.because(format!("Missing: {missing}.")),
            (true, false) => verdict.because(format!("Not expected: {extra}.")),
            (false, false) => verdict.because(format!("Missing: {missing}. Not expected: {extra}.")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 1e-4, "{measured} is not {expected}");
    }

    #[test]
    fn measures_equal_their_published_definitions() {
        let (expected, got) = ("the cat sat on the mat", "the cat is on the mat");
        near(token_f1(expected, got), 10.0 / 12.0);
        near(rouge_l(expected, got), 10.0 / 12.0);
        // Precisions 5/6, (3+1)/(5+1), (1+1)/(4+1), (0+1)/(3+1).
        near(bleu(expected, got), (5.0 / 6.0 * 4.0 / 6.0 * 2.0 / 5.0 / 4.0_f64).powf(0.25));
        near(levenshtein("kitten", "sitting"), 1.0 - 3.0 / 7.0);
        // A text shorter than expected is penalized: exp(1 - 6/3).
        near(bleu(expected, "the cat sat"), (-1.0_f64).exp());
        // Character n-grams in "abc" and "abd": 2/3, 1/2, 0/1.
        let mean = (2.0 / 3.0 + 0.5) / 3.0;
        near(chrf("abc", "abd"), mean);
    }

    #[test]
    fn equal_texts_score_one_and_disjoint_texts_zero() {
        for measure in [token_f1, rouge_l, bleu, levenshtein, chrf] {
            near(measure("one two three four five", "one two three four five"), 1.0);
            near(measure("", ""), 1.0);
            near(measure("one two", ""), 0.0);
            near(measure("", "one two"), 0.0);
            near(measure("aaaa", "zzzz"), 0.0);
        }
    }

    #[test]
    fn long_texts_are_measured_in_time() {
        let long = "word ".repeat(200_000);
        for measure in [token_f1, rouge_l, bleu, levenshtein, chrf] {
            near(measure(&long, &long), 1.0);
        }
    }

    #[test]
    fn entries_are_list_members_or_lines() {
        let expected: BTreeSet<String> = ["red", "dark green"].map(str::to_owned).into();
        for value in [
            serde_json::json!(["Red", " dark green"]),
            serde_json::json!("- red\n- Dark green\n"),
            serde_json::json!("red; dark green"),
        ] {
            assert_eq!(entries(&value), expected, "{value}");
        }
    }
}
