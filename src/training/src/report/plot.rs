//! The curve as plain text.

use super::model::CurvePoint;
use super::number::score;

/// Rows between the scores 0 and 1.
const LEVELS: u8 = 10;
/// Columns for epochs.
const COLUMNS: usize = 64;
/// Maximum columns per epoch.
const MAX_CELL: usize = 4;
/// Blank columns before the axis.
const MARGIN: &str = "     ";

/// The lines of a plot from 0 to 1: `●` the score after an epoch, `─` the best score so far, `┈` the seed. Scores
/// outside 0 to 1 are drawn at the edge. With more epochs than columns, each group shows its last epoch.
pub(super) fn plot(curve: &[CurvePoint], seed: Option<f64>) -> Vec<String> {
    let curve: Vec<CurvePoint> = curve
        .iter()
        .copied()
        .filter(|point| point.score.is_finite() && point.best_score.is_finite())
        .collect();
    let group = curve.len().div_ceil(COLUMNS).max(1);
    let points: Vec<CurvePoint> = curve.chunks(group).filter_map(|points| points.last().copied()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return vec!["No epoch has ended.".to_owned()];
    };
    let cell = (COLUMNS / points.len()).clamp(1, MAX_CELL);
    let mut lines: Vec<String> = (0..=LEVELS).rev().map(|level| row(&points, seed, level, cell)).collect();
    let width = points.len() * cell;
    lines.push(format!("{MARGIN}└{}", "─".repeat(width)));
    let epochs = if first.epoch == last.epoch {
        format!("epoch {}", first.epoch)
    } else {
        format!("epoch {} to {}", first.epoch, last.epoch)
    };
    lines.push(format!("{MARGIN} {epochs}"));
    let seed = seed.filter(|seed| seed.is_finite());
    let seed = seed.map_or_else(String::new, |seed| format!("   ┈ seed ({})", score(seed)));
    lines
        .push(format!("{MARGIN} ● score after the epoch   ─ best so far ({}){seed}", score(last.best_score)));
    lines
}

fn row(points: &[CurvePoint], seed: Option<f64>, level: u8, cell: usize) -> String {
    let label =
        if level.is_multiple_of(5) { score(f64::from(level) / f64::from(LEVELS)) } else { String::new() };
    let mut row = format!("{label:>4} │");
    let is_seed = seed.is_some_and(|seed| level_of(seed) == Some(level));
    for point in points {
        let line = match (level_of(point.best_score) == Some(level), is_seed) {
            (true, _) => "─",
            (false, true) => "┈",
            (false, false) => " ",
        };
        row.push_str(if level_of(point.score) == Some(level) { "●" } else { line });
        row.push_str(&line.repeat(cell - 1));
    }
    row.trim_end().to_owned()
}

/// A score's row; `None` for NaN.
fn level_of(score: f64) -> Option<u8> {
    let place = score.clamp(0.0, 1.0) * f64::from(LEVELS);
    (0..=LEVELS).find(|level| place - f64::from(*level) < 0.5 && !place.is_nan())
}

#[cfg(test)]
mod tests {
    use super::super::samples::points;
    use super::super::wrap::columns;
    use super::*;

    fn point(epoch: u32, score: f64, best_score: f64) -> CurvePoint {
        CurvePoint { epoch, score, best_score }
    }

    #[test]
    fn a_plot_shows_points_the_best_and_the_seed() {
        let curve = [point(1, 0.5, 0.5), point(2, 0.4, 0.5), point(3, 0.9, 0.9)];
        let expected = "
1.00 │
     │        ●───
     │
     │
     │
 .50 │●───────
     │    ●
     │┈┈┈┈┈┈┈┈┈┈┈┈
     │
     │
 .00 │
     └────────────
      epoch 1 to 3
      ● score after the epoch   ─ best so far (.90)   ┈ seed (.30)";
        assert_eq!(format!("\n{}", plot(&curve, Some(0.3)).join("\n")), expected);
    }

    #[test]
    fn any_number_of_epochs_fits() {
        assert_eq!(plot(&[], Some(0.5)), ["No epoch has ended."]);
        assert_eq!(plot(&points(1), None).iter().filter(|line| line.contains("epoch 1")).count(), 1);
        for count in [1, 2, 17, 50, 64, 65, 1_000] {
            let lines = plot(&points(count), Some(0.5));
            assert_eq!(lines.len(), 14);
            assert!(lines.iter().all(|line| columns(line) <= 80), "{count}");
            let shown: usize = lines.iter().take(11).map(|line| line.matches('●').count()).sum();
            assert_eq!(
                shown,
                usize::try_from(count.div_ceil(count.div_ceil(64))).unwrap(),
                "one point an epoch"
            );
        }
    }

    #[test]
    fn odd_scores_stay_inside() {
        let curve =
            [point(1, f64::NAN, 0.5), point(2, -3.0, 7.0), point(u32::MAX, f64::INFINITY, f64::INFINITY)];
        let lines = plot(&curve, Some(f64::NAN));
        assert!(lines[0].contains('─') && lines[10].contains('●'), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains("NaN") && !line.contains("seed")));
        assert_eq!(
            [0.0, 0.04, 0.05, 0.96, 1.0, f64::NAN].map(level_of),
            [Some(0), Some(0), Some(1), Some(10), Some(10), None]
        );
    }
}
