//! Describes the curve in words, for readers who cannot see it.

use std::fmt::Write as _;

use super::super::model::CurvePoint;
use super::super::number::{interval, score};
use super::CurveResult;

/// Maximum epochs that the description lists.
const MAX_DESCRIBED: usize = 60;

/// Describes the best candidate at the end.
pub(super) fn describe_result(result: CurveResult) -> String {
    let interval = interval([result.low, result.high], 2);
    format!(
        "Best candidate at the end: {}, 95 % interval {interval} by its gain over the seed",
        score(result.best)
    )
}

/// Describes the whole curve.
pub(super) fn describe(points: &[CurvePoint], seed: Option<f64>, result: Option<CurveResult>) -> String {
    let mut text = "Score by epoch, from 0 to 1.".to_owned();
    if points.is_empty() {
        text.push_str(" No epoch has ended.");
    }
    for point in points.iter().take(MAX_DESCRIBED) {
        let (value, best) = (score(point.score), score(point.best_score));
        let _ = write!(text, " Epoch {}: {value}, best {best}.", point.epoch);
    }
    if let (Some(last), true) = (points.last(), points.len() > MAX_DESCRIBED) {
        let _ = write!(text, " And so on until epoch {}: {}.", last.epoch, score(last.score));
    }
    if let Some(seed) = seed {
        let _ = write!(text, " Seed: {}.", score(seed));
    }
    if let Some(result) = result {
        let _ = write!(text, " {}.", describe_result(result));
    }
    text
}
