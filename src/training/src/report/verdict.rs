//! States whether anything improved, in words that promise no more than the numbers show.

use wire::{SeedVsBest, TrainingKind, TrainingState};

use super::model::Report;
use super::number::{decimal, interval, places, score, signed, things};
use super::visible::line;

/// A difference above this many standard errors counts as more than chance.
const SIGNIFICANT: f64 = 1.9;
/// Maximum characters in an error message or an unknown word.
const MAX_WORDS: usize = 300;

/// The verdict in one or a few sentences.
pub(super) fn verdict(report: &Report) -> String {
    if report.kind == TrainingKind::Evaluation {
        return evaluated(report);
    }
    let is_cancelled =
        report.status == TrainingState::Cancelled || report.stop_reason.as_deref() == Some("cancelled");
    match report.status {
        TrainingState::Failed => failed(report),
        _ if is_cancelled => cancelled(report),
        TrainingState::Succeeded => ended(report),
        _ if report.outcome.is_some() => ended(report),
        _ => unfinished(report),
    }
}

/// An evaluation measures prompts but changes none.
fn evaluated(report: &Report) -> String {
    let is_partial = report.stop_reason.is_some();
    match (report.status, report.score, report.pass_rate) {
        (TrainingState::Failed, ..) => failed(report),
        (_, Some(mean), Some(passed)) => {
            let (mean, passed) = (score(mean), decimal(passed * 100.0, 0));
            let partial = if is_partial { " Not every case was executed." } else { "" };
            format!("The mean score is {mean}, and {passed} % of the cases pass.{partial}")
        }
        (status, ..) if status.is_terminal() => "The evaluation has ended without a score.".to_owned(),
        _ => "The evaluation has no result yet.".to_owned(),
    }
}

fn failed(report: &Report) -> String {
    let reason = report.error.as_ref().map(|error| line(&error.message, MAX_WORDS));
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("The run failed and returned no prompts: {}", sentence(&reason)),
        None => "The run failed and returned no prompts.".to_owned(),
    }
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

fn cancelled(report: &Report) -> String {
    match (report.outcome.as_deref(), &report.seed_vs_best) {
        (Some("improved"), Some(compared)) => {
            let gain = gain(compared);
            let caveats = caveats(report, compared);
            format!("The run was cancelled. By then, the returned prompts were better than the seed by {gain}.{caveats}")
        }
        (Some("no_headroom"), _) => format!("The run was cancelled. {}", ended(report)),
        (Some(_), Some(_)) => {
            "The run was cancelled. No significant gain was found by then: the seed prompts are returned.".to_owned()
        }
        (Some(_), None) if report.prompts.iter().any(|prompt| prompt.diff.is_some()) => {
            "The run was cancelled. The best prompts so far are returned; whether they are better than the seed was not \
             measured."
                .to_owned()
        }
        (Some(_), None) => {
            "The run was cancelled before the seed was compared with a candidate: the seed prompts are returned."
                .to_owned()
        }
        (None, _) => "The run was cancelled and has no result.".to_owned(),
    }
}

fn ended(report: &Report) -> String {
    match (report.outcome.as_deref(), &report.seed_vs_best) {
        (Some("improved"), Some(compared)) => {
            let gain = gain(compared);
            format!("The returned prompts are better than the seed by {gain}.{}", caveats(report, compared))
        }
        (Some("improved"), None) => {
            "The run reports better prompts, but the comparison with the seed is not recorded.".to_owned()
        }
        (Some("no_significant_gain"), compared) => {
            let why = compared.as_ref().map(no_gain).unwrap_or_default();
            format!("No significant gain: the seed prompts are returned.{why}")
        }
        (Some("no_headroom"), _) => {
            "Nothing to gain: the seed prompts have the best possible score on every scoring case.".to_owned()
        }
        (Some(other), _) => format!("The run has ended with the outcome \"{}\".", line(other, MAX_WORDS)),
        (None, _) => "The run has ended, but its outcome is not recorded.".to_owned(),
    }
}

/// The difference, its interval and the case count.
fn gain(compared: &SeedVsBest) -> String {
    let [low, high] = compared.ci95;
    let places = places(&[compared.diff, low, high]);
    let (diff, interval, cases) =
        (decimal(compared.diff, places), interval(compared.ci95, places), things(compared.n, "case"));
    format!("{diff} (95 % interval {interval}) on {cases}")
}

/// Caveats that make a gain less certain.
fn caveats(report: &Report, compared: &SeedVsBest) -> String {
    let mut sentences = String::new();
    if compared.ci95.first().is_some_and(|low| *low <= 0.0) {
        sentences.push_str(" The interval includes 0: the gain is not certain.");
    }
    let by_folds = report.test_estimate.as_deref() == Some("kfold");
    match &compared.test {
        Some(test) => {
            let diff = test.best - test.seed;
            let of = format!("{} to {}", score(test.seed), score(test.best));
            let measured = if by_folds { "A 5-fold estimate" } else { "The test" };
            sentences.push_str(&if diff > 0.0 {
                format!(" {measured} shows {} ({of}).", signed(diff, places(&[diff])))
            } else {
                format!(" {measured} does not confirm the gain ({of}).")
            });
        }
        None if report.splits.is_some_and(|cases| cases.train_and_val > 0) => {
            sentences.push_str(" The scoring cases were used for training, too: expect less on other cases.");
        }
        None => {}
    }
    sentences
}

/// The reason why the seed is returned.
fn no_gain(compared: &SeedVsBest) -> String {
    let found_none = compared.diff == 0.0 && compared.ci95 == [0.0; 2];
    if found_none || compared.n == 0 {
        return " No candidate was better on the scoring cases.".to_owned();
    }
    let [low, high] = compared.ci95;
    let places = places(&[compared.diff, low, high]);
    let difference = signed(compared.diff, places);
    let interval = interval(compared.ci95, places);
    let best = format!(" The best candidate differs by {difference} (95 % interval {interval})");
    let cases = things(compared.n, "case");
    // A significantly better candidate is refused for only one reason.
    if compared.z > SIGNIFICANT {
        return format!("{best} on {cases}, but an evaluator that guards against regressions got worse.");
    }
    format!("{best} on {cases}, which can be chance.")
}

fn unfinished(report: &Report) -> String {
    let state = match report.status {
        TrainingState::Queued => "The run is queued and has not started.",
        TrainingState::Paused => "The run is paused.",
        TrainingState::Waiting => "The run is waiting and resumes automatically.",
        _ => "The run is in progress.",
    };
    let best = report.curve.last().map(|point| {
        let (best, epoch) = (score(point.best_score), point.epoch);
        format!(" The best score so far is {best}, after epoch {epoch}.")
    });
    let open = if report.status == TrainingState::Queued {
        ""
    } else {
        " Whether it is better than the seed is decided at the end."
    };
    match best {
        Some(best) => format!("{state}{best}{open}"),
        None if report.status == TrainingState::Queued => state.to_owned(),
        None => format!("{state} No epoch has ended."),
    }
}

#[cfg(test)]
mod tests {
    use wire::{RunProblem, ScorePair, SplitRecord};

    use super::super::data::ReportData;
    use super::super::samples::{HOSTILE, compared, ended, improved, running};
    use super::*;

    fn verdict_of(data: ReportData) -> String {
        Report::from(data).verdict
    }

    #[test]
    fn a_gain_is_reported_with_its_interval_and_cases() {
        assert_eq!(
            verdict_of(improved()),
            "The returned prompts are better than the seed by .12 (95 % interval .04 to .20) on 24 cases."
        );
    }

    #[test]
    fn a_less_certain_gain_has_a_caveat() {
        let gain = |ci95, test, splits: Option<SplitRecord>, estimate: &str| {
            let mut seed_vs_best = compared(0.5, 0.1, ci95);
            seed_vs_best.test = test;
            let mut data = ended("improved", "epochs", Some(seed_vs_best));
            data.splits = splits
                .or(data.splits)
                .map(|splits| SplitRecord { test_estimate: Some(estimate.into()), ..splits });
            verdict_of(data)
        };
        let pair = |seed, best| Some(ScorePair { seed, best });
        let text = gain([-0.01, 0.2], None, None, "split");
        assert!(text.ends_with("on 24 cases. The interval includes 0: the gain is not certain."), "{text}");
        let text = gain([0.04, 0.2], pair(0.5, 0.61), None, "split");
        assert!(text.ends_with(" The test shows +.11 (.50 to .61)."), "{text}");
        let text = gain([0.04, 0.2], pair(0.6, 0.58), None, "split");
        assert!(text.ends_with(" The test does not confirm the gain (.60 to .58)."), "{text}");
        let text = gain([0.04, 0.2], pair(0.5, 0.55), None, "kfold");
        assert!(text.ends_with(" A 5-fold estimate shows +.05 (.50 to .55)."), "{text}");
        let same = SplitRecord { train: vec![0, 1], val: vec![0, 1], ..SplitRecord::default() };
        let text = gain([0.04, 0.2], None, Some(same), "split");
        assert!(
            text.ends_with(" The scoring cases were used for training, too: expect less on other cases."),
            "{text}"
        );
    }

    #[test]
    fn a_result_without_a_gain_is_not_a_success() {
        let of = |seed_vs_best| verdict_of(ended("no_significant_gain", "epochs", seed_vs_best));
        let start = "No significant gain: the seed prompts are returned.";
        assert_eq!(of(None), start);
        assert_eq!(
            of(Some(compared(0.5, 0.03, [-0.02, 0.08]))),
            format!(
                "{start} The best candidate differs by +.03 (95 % interval -.02 to .08) on 24 cases, which can be chance."
            )
        );
        assert_eq!(
            of(Some(compared(0.5, 0.0, [0.0, 0.0]))),
            format!("{start} No candidate was better on the scoring cases.")
        );
        let guarded = of(Some(compared(0.5, 0.2, [0.1, 0.3])));
        assert!(
            guarded.ends_with("but an evaluator that guards against regressions got worse."),
            "{guarded}"
        );
        let none = verdict_of(ended("no_headroom", "no_headroom", None));
        assert!(none.starts_with("Nothing to gain: "), "{none}");
    }

    #[test]
    fn a_tiny_gain_is_not_rounded_away() {
        let text = verdict_of(ended("improved", "epochs", Some(compared(0.5, 0.004, [0.001, 0.02]))));
        assert!(text.contains("by .004 (95 % interval .001 to .020)"), "{text}");
    }

    #[test]
    fn a_cancelled_run_promises_nothing() {
        let of = |outcome: &str, seed_vs_best| {
            let mut data = ended(outcome, "cancelled", seed_vs_best);
            data.record.status = TrainingState::Cancelled;
            data
        };
        let better = verdict_of(of("improved", Some(compared(0.5, 0.1, [0.02, 0.2]))));
        assert!(
            better.starts_with("The run was cancelled. By then, the returned prompts were better"),
            "{better}"
        );
        let none = verdict_of(of("no_significant_gain", Some(compared(0.5, 0.0, [0.0, 0.0]))));
        assert!(
            none.ends_with("No significant gain was found by then: the seed prompts are returned."),
            "{none}"
        );
        let early = verdict_of(of("no_significant_gain", None));
        assert!(early.contains("before the seed was compared"), "{early}");
        let mut unmeasured = of("improved", None);
        unmeasured.returned_prompts.insert("system".into(), "Other.".into());
        assert!(verdict_of(unmeasured).contains("was not measured"));
        let mut without = running();
        without.record.status = TrainingState::Cancelled;
        assert_eq!(verdict_of(without), "The run was cancelled and has no result.");
    }

    #[test]
    fn a_run_in_progress_claims_no_gain() {
        let of = |status| {
            let mut data = running();
            data.record.status = status;
            verdict_of(data)
        };
        assert_eq!(
            of(TrainingState::Running),
            "The run is in progress. The best score so far is .64, after epoch 3. Whether it is better than the seed is \
             decided at the end."
        );
        assert!(of(TrainingState::Paused).starts_with("The run is paused. The best"));
        assert!(
            of(TrainingState::Waiting).starts_with("The run is waiting and resumes automatically. The best")
        );
        let mut queued = running();
        queued.record.status = TrainingState::Queued;
        queued.epochs.clear();
        assert_eq!(verdict_of(queued.clone()), "The run is queued and has not started.");
        queued.record.status = TrainingState::Running;
        assert_eq!(verdict_of(queued), "The run is in progress. No epoch has ended.");
    }

    #[test]
    fn a_failed_run_has_its_reason() {
        let mut data = running();
        data.record.status = TrainingState::Failed;
        assert_eq!(verdict_of(data.clone()), "The run failed and returned no prompts.");
        let message = format!("{HOSTILE}\n{}", "x".repeat(1_000));
        data.record.error = Some(RunProblem { code: "internal".into(), message, node: None });
        let text = verdict_of(data);
        assert!(
            text.starts_with("The run failed and returned no prompts: ") && text.ends_with('…'),
            "{text}"
        );
        assert!(text.chars().count() < 400 && text.chars().all(|letter| !letter.is_control()), "{text}");
    }

    #[test]
    fn unknown_outcomes_and_kinds_are_shown_unchanged() {
        let odd = verdict_of(ended("a\u{1b}b", "epochs", None));
        assert_eq!(odd, "The run has ended with the outcome \"a␛b\".");
        let mut data = running();
        data.record.kind = TrainingKind::Evaluation;
        assert_eq!(verdict_of(data.clone()), "The evaluation has no result yet.");
        data.record.kind = TrainingKind::Training;
        data.record.status = TrainingState::Succeeded;
        assert_eq!(verdict_of(data), "The run has ended, but its outcome is not recorded.");
    }
}
