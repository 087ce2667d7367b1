//! An evaluation's score distribution as bars.

use std::fmt::Write as _;

use super::super::number::{score, things};
use super::super::style::CURVE;
use super::super::visible::{escaped, line};
use super::scale::{BOTTOM, LEFT, RIGHT, TOP, short};
use super::{HEIGHT, MAX_TITLE, WIDTH, write_path, write_text};

/// Space between two bars.
const GAP: f64 = 4.0;

/// Draws result counts per tenth of the score range as a standalone SVG document, with the mean as a dashed line.
#[must_use]
pub(in crate::report) fn scores_svg(counts: &[u64], mean: Option<f64>, title: &str) -> String {
    write(counts, mean, title, &format!("<style>{CURVE}</style>\n"))
}

/// The same for a page that already has the style.
pub(in crate::report) fn inline_scores(counts: &[u64], mean: Option<f64>, title: &str) -> String {
    write(counts, mean, title, "")
}

fn write(counts: &[u64], mean: Option<f64>, title: &str, style: &str) -> String {
    let mean = mean.filter(|mean| mean.is_finite());
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curve\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"scores-title scores-description\">\n\
         <title id=\"scores-title\">{}</title>\n<desc id=\"scores-description\">{}</desc>\n{style}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n",
        escaped(&line(title, MAX_TITLE)),
        escaped(&describe(counts, mean))
    );
    let middle = (LEFT + RIGHT) / 2.0;
    if most == 0 {
        write_text(&mut svg, middle, (TOP + BOTTOM) / 2.0, "middle", "No case was executed.");
    }
    for (tenth, count) in (0_u32..).zip(counts.iter().copied()) {
        let share = fraction(count, most);
        let (left, right) =
            (x(f64::from(tenth) / 10.0) + GAP / 2.0, x(f64::from(tenth + 1) / 10.0) - GAP / 2.0);
        let height = share * (BOTTOM - TOP);
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<g><title>{}</title><rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></g>",
            escaped(&bar(tenth, count)),
            short(left),
            short(BOTTOM - height),
            short(right - left),
            short(height)
        );
        if count > 0 {
            write_text(&mut svg, (left + right) / 2.0, BOTTOM - height - 4.0, "middle", &count.to_string());
        }
    }
    write_path(
        &mut svg,
        "axis",
        &format!("M{} {}V{}H{}", short(LEFT), short(TOP), short(BOTTOM), short(RIGHT)),
    );
    for (tenth, label) in ["0", ".2", ".4", ".6", ".8", "1"].into_iter().enumerate() {
        let at = f64::from(u32::try_from(tenth).unwrap_or_default()) / 5.0;
        write_text(&mut svg, x(at), BOTTOM + 19.0, "middle", label);
    }
    write_text(&mut svg, middle, f64::from(HEIGHT) - 10.0, "middle", "score");
    if let Some(mean) = mean.filter(|_| most > 0) {
        write_path(
            &mut svg,
            "seed",
            &format!("M{} {}V{}", short(x(mean.clamp(0.0, 1.0))), short(TOP), short(BOTTOM)),
        );
        write_path(&mut svg, "seed", "M58 18h26");
        write_text(&mut svg, 92.0, 22.0, "start", &format!("mean {}", score(mean)));
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(score: f64) -> f64 {
    LEFT + score * (RIGHT - LEFT)
}

/// `count / most`, from 0 to 1.
fn fraction(count: u64, most: u64) -> f64 {
    let thousandths = count.saturating_mul(1_000).checked_div(most).unwrap_or_default();
    f64::from(u32::try_from(thousandths).unwrap_or(1_000)) / 1_000.0
}

/// Describes a bar in words.
fn bar(tenth: u32, count: u64) -> String {
    let end = |tenth: u32| score(f64::from(tenth) / 10.0);
    format!("From {} to {}: {}", end(tenth), end(tenth + 1), things(count, "result"))
}

fn describe(counts: &[u64], mean: Option<f64>) -> String {
    if counts.iter().all(|count| *count == 0) {
        return "No case was executed.".to_owned();
    }
    let mut text = "Results by score, from 0 to 1.".to_owned();
    for (tenth, count) in (0_u32..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0) {
        let _ = write!(text, " {}.", bar(tenth, count));
    }
    if let Some(mean) = mean {
        let _ = write!(text, " Mean score: {}.", score(mean));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{HOSTILE, elements};
    use super::*;

    #[test]
    fn each_tenth_is_a_bar_and_the_mean_a_line() {
        let svg = scores_svg(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 4], Some(0.625), "Scores");
        assert!(svg.contains("<title id=\"scores-title\">Scores</title>"), "{svg}");
        assert!(svg.contains("From .00 to .10: 2 results."), "{svg}");
        assert_eq!(svg.matches("<rect class=\"band\"").count(), 10);
        assert!(svg.contains("height=\"228\"") && svg.contains("height=\"114\""), "{svg}");
        assert!(svg.contains(">4</text>") && svg.contains(">mean ."), "{svg}");
        assert!(!inline_scores(&[1], None, "Scores").contains("<style"));
    }

    #[test]
    fn empty_odd_and_hostile_inputs_are_drawn() {
        let none = scores_svg(&[], None, HOSTILE);
        assert!(none.contains(">No case was executed.</text>") && !none.contains('\u{202e}'), "{none}");
        let odd = scores_svg(&[u64::MAX, 1], Some(f64::NAN), "x");
        for svg in [none, odd] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(elements(&svg).iter().all(|element| element != "script"));
        }
    }
}
