//! The curve as SVG.

mod describe;
mod scale;
mod scores;
mod ticks;

use std::fmt::Write as _;

use super::model::CurvePoint;
use super::number::score;
use super::style::CURVE;
use super::visible::{escaped, line};
use describe::{describe, describe_result};
use scale::{BOTTOM, LEFT, RIGHT, TOP, height_of, short, steps, x, y};
pub(super) use scores::{inline_scores, scores_svg};
use ticks::ticks;

const WIDTH: u16 = 640;
const HEIGHT: u16 = 320;
/// The result band, right of the plot.
const BAND_LEFT: f64 = 598.0;
const BAND_WIDTH: f64 = 16.0;
/// Maximum title characters.
const MAX_TITLE: usize = 300;
/// The best candidate's score at the end, and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CurveResult {
    /// The score.
    pub best: f64,
    /// The lower end: the seed's score plus the lower end of the difference's interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Draws a curve as a standalone SVG document, 640 × 320, without scripts, links or external content.
///
/// It has axes, a point for the score after each epoch, the best score so far as steps, the seed as a dashed line,
/// and the result's interval as a band at the end. Scores outside 0 to 1 are drawn at the edge; values that are not
/// numbers are omitted.
#[must_use]
pub(super) fn curve_svg(
    curve: &[CurvePoint],
    seed: Option<f64>,
    result: Option<CurveResult>,
    title: &str,
) -> String {
    write(curve, seed, result, title, &format!("<style>{CURVE}</style>\n"))
}

/// The same for a page that already has the style.
pub(super) fn inline(
    curve: &[CurvePoint],
    seed: Option<f64>,
    result: Option<CurveResult>,
    title: &str,
) -> String {
    write(curve, seed, result, title, "")
}

fn write(
    curve: &[CurvePoint],
    seed: Option<f64>,
    result: Option<CurveResult>,
    title: &str,
    style: &str,
) -> String {
    let is_number = |point: &&CurvePoint| point.score.is_finite() && point.best_score.is_finite();
    let mut points: Vec<CurvePoint> = curve.iter().filter(is_number).copied().collect();
    points.sort_by_key(|point| point.epoch);
    let seed = seed.filter(|seed| seed.is_finite());
    let result = result.filter(|it| it.best.is_finite() && it.low.is_finite() && it.high.is_finite());
    let title = escaped(&line(title, MAX_TITLE));
    let description = escaped(&describe(&points, seed, result));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curve\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"curve-title curve-description\">\n\
         <title id=\"curve-title\">{title}</title>\n<desc id=\"curve-description\">{description}</desc>\n{style}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n"
    );
    write_axes(&mut svg, &points);
    if let Some(result) = result {
        write_band(&mut svg, result);
    }
    if let Some(seed) = seed {
        write_path(&mut svg, "seed", &format!("M{} {}H{}", short(LEFT), y(seed), short(RIGHT)));
    }
    write_path(&mut svg, "best", &steps(&points));
    for point in &points {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<circle class=\"point\" cx=\"{}\" cy=\"{}\" r=\"3.5\"><title>{}</title></circle>",
            x(&points, point.epoch),
            y(point.score),
            escaped(&format!(
                "Epoch {}: {}, best {}",
                point.epoch,
                score(point.score),
                score(point.best_score)
            ))
        );
    }
    if points.is_empty() {
        write_text(&mut svg, (LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0, "middle", "No epoch has ended.");
    }
    write_legend(&mut svg, seed.is_some(), result.is_some());
    svg.push_str("</svg>\n");
    svg
}

fn write_path(svg: &mut String, class: &str, path: &str) {
    if !path.is_empty() {
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

fn write_text(svg: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    let (x, y) = (short(x), short(y));
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", escaped(content));
}

fn write_axes(svg: &mut String, points: &[CurvePoint]) {
    for fifth in 0..=5_u8 {
        let value = f64::from(fifth) / 5.0;
        let label = if fifth == 0 {
            "0"
        } else if fifth == 5 {
            "1"
        } else {
            &format!(".{}", fifth * 2)
        };
        write_path(svg, "grid", &format!("M{} {}H{}", short(LEFT), y(value), short(RIGHT)));
        write_text(svg, LEFT - 8.0, height_of(value) + 4.0, "end", label);
    }
    write_path(svg, "axis", &format!("M{} {}V{}H{}", short(LEFT), short(TOP), short(BOTTOM), short(RIGHT)));
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        for epoch in ticks(first.epoch, last.epoch) {
            let at = x(points, epoch);
            write_path(svg, "axis", &format!("M{at} {}v5", short(BOTTOM)));
            let y = short(BOTTOM + 19.0);
            let _ = writeln!(svg, "<text x=\"{at}\" y=\"{y}\" text-anchor=\"middle\">{epoch}</text>");
        }
    }
    write_text(svg, (LEFT + RIGHT) / 2.0, f64::from(HEIGHT) - 10.0, "middle", "epoch");
}

fn write_band(svg: &mut String, result: CurveResult) {
    let (top, bottom) = (height_of(result.high.max(result.low)), height_of(result.low.min(result.high)));
    let _ = writeln!(
        svg,
        "<g><title>{}</title><rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></g>",
        escaped(&describe_result(result)),
        short(BAND_LEFT),
        short(top),
        short(BAND_WIDTH),
        short((bottom - top).max(1.0))
    );
    let (left, right) = (short(BAND_LEFT - 4.0), short(BAND_LEFT + BAND_WIDTH + 4.0));
    write_path(svg, "best", &format!("M{left} {}H{right}", y(result.best)));
}

fn write_legend(svg: &mut String, has_seed: bool, has_result: bool) {
    const Y: f64 = 22.0;
    let (middle, text_y) = (short(Y - 4.0), Y);
    let _ = writeln!(svg, "<circle class=\"point\" cx=\"58\" cy=\"{middle}\" r=\"3.5\"/>");
    write_text(svg, 68.0, text_y, "start", "score after the epoch");
    write_path(svg, "best", &format!("M216 {middle}h22"));
    write_text(svg, 244.0, text_y, "start", "best so far");
    if has_seed {
        write_path(svg, "seed", &format!("M334 {middle}h26"));
        write_text(svg, 366.0, text_y, "start", "seed");
    }
    if has_result {
        let top = short(Y - 10.0);
        let _ = writeln!(svg, "<rect class=\"band\" x=\"414\" y=\"{top}\" width=\"12\" height=\"12\"/>");
        write_text(svg, 432.0, text_y, "start", "best candidate, 95 % interval");
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, elements, points};
    use super::*;

    const RESULT: CurveResult = CurveResult { best: 0.64, low: 0.56, high: 0.72 };
    const ELEMENTS: [&str; 9] = ["svg", "title", "desc", "style", "rect", "path", "circle", "text", "g"];

    /// Asserts every curve's invariants: well-formed, known elements, at most two decimals, deterministic.
    fn assert_sound(
        curve: &[CurvePoint],
        seed: Option<f64>,
        result: Option<CurveResult>,
        title: &str,
    ) -> String {
        let svg = curve_svg(curve, seed, result, title);
        assert_eq!(svg, curve_svg(curve, seed, result, title));
        for element in elements(&svg) {
            assert!(ELEMENTS.contains(&element.as_str()), "{element}");
        }
        for word in ["NaN", "inf", "e+", "href=\"", "<script"] {
            assert!(!svg.contains(word), "{word} in {svg}");
        }
        assert!(svg.chars().all(|letter| letter == '\n' || !letter.is_control()));
        let outside = svg.split("<style>").next().unwrap().to_owned() + svg.split("</style>").nth(1).unwrap();
        let decimals = |part: &str| part.chars().take_while(char::is_ascii_digit).count();
        assert!(outside.split('.').skip(1).all(|part| decimals(part) <= 2), "{outside}");
        svg
    }

    #[test]
    fn a_curve_has_points_steps_the_seed_and_the_interval() {
        let curve = [(1, 0.5, 0.5), (2, 0.4, 0.5), (3, 0.9, 0.9)]
            .map(|(epoch, score, best_score)| CurvePoint { epoch, score, best_score });
        let svg = assert_sound(&curve, Some(0.52), Some(RESULT), "Scores");
        assert!(svg.contains("width=\"640\" height=\"320\" viewBox=\"0 0 640 320\" role=\"img\""));
        assert!(svg.contains("<title id=\"curve-title\">Scores</title>"));
        assert!(svg.contains("Epoch 2: .40, best .50. Epoch 3: .90, best .90. Seed: .52. Best candidate at the end: .64, 95 % interval .56 to .72 by its gain over the seed."));
        assert!(svg.contains("<path class=\"best\" d=\"M68 158H320V158H572V66.8H588\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"seed\" d=\"M52 153.44H588\"/>"), "{svg}");
        assert!(
            svg.contains("<rect class=\"band\" x=\"598\" y=\"107.84\" width=\"16\" height=\"36.48\"/>"),
            "{svg}"
        );
        assert_eq!(svg.matches("<circle class=\"point\"").count(), 4, "three, and one in the legend");
        for label in [">0<", ">.2<", ">.4<", ">.6<", ">.8<", ">1<", ">2<", ">3<", ">epoch<"] {
            assert!(svg.contains(label), "{label}");
        }
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(!inline(&curve, None, None, "Scores").contains("<style"));
    }

    #[test]
    fn zero_one_and_fifty_epochs_are_drawn() {
        let none = assert_sound(&[], None, None, "Scores");
        assert!(
            none.contains(">No epoch has ended.</text>") && !none.contains("class=\"best\" d=\"M68"),
            "{none}"
        );
        assert!(
            !none.contains(">seed<") && !none.contains(">best candidate"),
            "the legend names the drawn series"
        );
        let one = assert_sound(&points(1), Some(0.5), None, "Scores");
        assert!(one.contains("cx=\"320\"") && one.contains("d=\"M320 "), "{one}");
        let fifty = assert_sound(&points(50), Some(0.5), Some(RESULT), "Scores");
        assert_eq!(fifty.matches("<circle class=\"point\"").count(), 51);
        assert!(fifty.contains(">50</text>") && !fifty.contains(">49</text>"));
        let many = assert_sound(&points(5_000), None, None, "Scores");
        assert!(many.contains(" And so on until epoch 5000:"));
    }

    #[test]
    fn odd_values_stay_inside_or_are_left_out() {
        let point = |epoch, score, best_score| CurvePoint { epoch, score, best_score };
        let curve = [
            point(u32::MAX, -2.0, 1e300),
            point(0, 0.5, 0.5),
            point(3, f64::NAN, 0.5),
            point(4, 0.1, f64::INFINITY),
        ];
        let svg = assert_sound(
            &curve,
            Some(f64::NAN),
            Some(CurveResult { best: f64::NAN, low: 0.0, high: 1.0 }),
            "x",
        );
        assert_eq!(svg.matches("<circle class=\"point\"").count(), 3);
        assert!(svg.contains("d=\"M68 158H572V44H588\""), "in the order of the epochs: {svg}");
        assert!(!svg.contains("class=\"band\"") && !svg.contains("class=\"seed\""));
        let far =
            assert_sound(&points(3), Some(9.0), Some(CurveResult { best: 1.2, low: 0.9, high: 1.5 }), "x");
        assert!(far.contains("<path class=\"seed\" d=\"M52 44H588\"/>"), "{far}");
    }

    #[test]
    fn a_hostile_title_stays_text() {
        let svg = assert_sound(&points(2), None, None, HOSTILE);
        assert!(svg.contains("&lt;script&gt;") && !svg.contains('\u{202e}'));
        assert_sound(&points(2), None, None, &"x".repeat(100_000));
    }
}
