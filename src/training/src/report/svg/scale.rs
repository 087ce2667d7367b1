//! Maps epochs and scores to coordinates.

use std::fmt::Write as _;

use super::super::model::CurvePoint;

/// Plot edges.
pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = 588.0;
pub(super) const TOP: f64 = 44.0;
pub(super) const BOTTOM: f64 = 272.0;
/// Space between an edge and the first or last epoch.
const PADDING: f64 = 16.0;

/// Formats a coordinate with at most two decimals.
pub(super) fn short(value: f64) -> String {
    let text = format!("{:.2}", if value.is_finite() { value } else { 0.0 });
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A score's height, formatted.
pub(super) fn y(score: f64) -> String {
    short(height_of(score))
}

/// A score's height; scores outside 0 to 1 are at the edge.
pub(super) fn height_of(score: f64) -> f64 {
    BOTTOM - score.clamp(0.0, 1.0) * (BOTTOM - TOP)
}

/// An epoch's position; a single one is in the middle.
pub(super) fn x(points: &[CurvePoint], epoch: u32) -> String {
    let first = points.first().map_or(0, |point| point.epoch);
    let last = points.last().map_or(0, |point| point.epoch);
    let (left, width) = (LEFT + PADDING, RIGHT - LEFT - 2.0 * PADDING);
    let share = if first == last {
        0.5
    } else {
        (f64::from(epoch) - f64::from(first)) / (f64::from(last) - f64::from(first))
    };
    short(left + share * width)
}

/// A step line from the first epoch to the right edge; a new best takes effect at its epoch.
pub(super) fn steps(points: &[CurvePoint]) -> String {
    let mut path = String::new();
    for point in points {
        let (x, y) = (x(points, point.epoch), y(point.best_score));
        let _ = if path.is_empty() { write!(path, "M{x} {y}") } else { write!(path, "H{x}V{y}") };
    }
    if !path.is_empty() {
        let _ = write!(path, "H{}", short(RIGHT));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [0.0, -0.001, 1.0, 1.5, 1.236, 100.0, f64::NAN].map(short),
            ["0", "0", "1", "1.5", "1.24", "100", "0"]
        );
    }
}
