//! Draws the true scores: a group for each family, a point with its 95 % interval for each optimizer. Pure.

use std::fmt::Write as _;

use worlds::Family;

use super::bootstrap::Estimate;
use super::gates::Scores;

/// Sizes in pixels: the picture's height, and the margins around the plot.
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 36.0;
/// Distances between two points in a group, and between two groups.
const STEP: f64 = 15.0;
const GAP: f64 = 30.0;
/// The optimizers' colors, in their order; they also differ in brightness.
const COLORS: [&str; 11] = [
    "#9a9a9a", "#c9b458", "#e3d9a6", "#a07d3b", "#cdb48f", "#7b9ec9", "#d98200", "#0072b2", "#cc3d6e",
    "#4a4a4a", "#00876a",
];
/// The distance between two names in the legend.
const NAME: f64 = 150.0;

/// A standalone SVG document.
pub(super) fn plot(scores: &Scores, optimizers: &[&'static str]) -> String {
    let shown = |family: Family| -> Vec<(usize, Estimate)> {
        let of = |(at, optimizer): (usize, &&'static str)| Some((at, scores.interval(family, optimizer)?));
        optimizers.iter().enumerate().filter_map(of).collect()
    };
    let mut body = String::new();
    let mut x = LEFT + GAP / 2.0;
    for family in Family::ALL {
        let points = shown(family);
        if points.is_empty() {
            continue;
        }
        let start = x;
        for (at, Estimate { mean, low, high }) in &points {
            let color = COLORS.get(*at).copied().unwrap_or("#000000");
            let [low, high, middle] = [*low, *high, *mean].map(y);
            // Writing to a `String` never fails.
            let _ = writeln!(
                body,
                "<path d=\"M{x:.0} {low:.1}V{high:.1}\" stroke=\"{color}\" stroke-width=\"2\"/>\
                 <circle cx=\"{x:.0}\" cy=\"{middle:.1}\" r=\"4\" fill=\"{color}\"/>"
            );
            x += STEP;
        }
        let middle = (start + x - STEP) / 2.0;
        let _ = writeln!(
            body,
            "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 14.0,
            family.as_str()
        );
        x += GAP - STEP;
    }
    let width = x;
    let mut frame = String::new();
    for tenths in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(tenths);
        let _ = writeln!(
            frame,
            "<path d=\"M{LEFT:.0} {at:.1}H{width:.0}\" stroke=\"#d0d0d0\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{tenths:.2}</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    for (at, optimizer) in (0_u32..).zip(optimizers) {
        let x = LEFT + f64::from(at) * NAME + 8.0;
        let color = usize::try_from(at).ok().and_then(|at| COLORS.get(at)).copied().unwrap_or("#000000");
        let _ = writeln!(
            frame,
            "<circle cx=\"{x:.0}\" cy=\"18\" r=\"4\" fill=\"{color}\"/><text x=\"{:.0}\" y=\"22\">{optimizer}</text>",
            x + 9.0
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {HEIGHT:.0}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Mean true score of the returned prompts by family and optimizer, with 95 % intervals</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{frame}{body}</svg>\n"
    )
}

fn y(score: f64) -> f64 {
    TOP + (1.0 - score.clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM)
}
