//! Values that outputs derive from a report.

pub use wire::{
    CandidateCounts, CaseCounts, CurvePoint, JudgeCalibration, PromptReport, TrainingReport as Report,
};

use wire::TrainingKind;

use super::svg::{self, CurveResult};

/// Draws a standalone SVG document: for a training its curve, with the seed and the result if known; for an
/// evaluation its score distribution.
#[must_use]
pub fn curve_of(report: &Report) -> String {
    if report.kind == TrainingKind::Evaluation {
        return svg::scores_svg(&report.distribution, report.score, &curve_title(report));
    }
    svg::curve_svg(&report.curve, seed_score(report), curve_result(report), &curve_title(report))
}

/// The seed's score on the scoring cases.
pub(super) fn seed_score(report: &Report) -> Option<f64> {
    report.seed_vs_best.as_ref().map(|compared| compared.val.seed).filter(|score| score.is_finite())
}

/// The best candidate's score, with an interval derived from the difference's interval.
pub(super) fn curve_result(report: &Report) -> Option<CurveResult> {
    let compared = report.seed_vs_best.as_ref()?;
    // Scores stay between 0 and 1 even if the difference's interval exceeds them.
    let [low, high] = compared.ci95.map(|end| (compared.val.seed + end).clamp(0.0, 1.0));
    Some(CurveResult { best: compared.val.best, low, high })
}

pub(super) fn curve_title(report: &Report) -> String {
    let of = report.workflow_name.as_deref().unwrap_or(&report.workflow);
    match report.kind {
        TrainingKind::Training => format!("Scores of training {} of {of}", report.run),
        TrainingKind::Evaluation => format!("Scores of evaluation {} of {of}", report.run),
    }
}
