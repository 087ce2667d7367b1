//! Formats training numbers for people. Pure.

use std::time::Duration;

use serde_json::Value;
use wire::{CallUsage, TrainingProgress};

/// Width of the progress bar.
const BAR_CELLS: u64 = 8;
/// Number of progress steps for outputs that keep every line.
const STEPS: u64 = 20;

/// The progress on a terminal line: at most 78 characters for usual numbers.
pub(super) fn progress_line(progress: &TrainingProgress) -> String {
    format!("{} {}", bar(progress), details(progress))
}

/// The progress as a log line.
pub(super) fn progress_note(progress: &TrainingProgress) -> String {
    format!("cases {}", details(progress))
}

fn details(progress: &TrainingProgress) -> String {
    let mut parts = vec![format!("{}/{}", progress.done, progress.planned)];
    parts.extend(progress.running_mean.map(|mean| format!("score {mean:.3}")));
    parts.extend(progress.best_score.map(|best| format!("best {best:.3}")));
    parts.push(format!("{} calls", progress.llm_calls));
    parts.push(dollars(progress.cost));
    parts.extend(progress.eta_s.and_then(span).map(|left| format!("ETA {left}")));
    parts.join("  ")
}

fn bar(progress: &TrainingProgress) -> String {
    let filled = share(progress, BAR_CELLS);
    let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or_default());
    format!("[{}{}]", cells(filled, "█"), cells(BAR_CELLS.saturating_sub(filled), "░"))
}

/// The completed part, as a number from 0 to `parts`.
fn share(progress: &TrainingProgress, parts: u64) -> u64 {
    let done = progress.done.saturating_mul(parts).checked_div(progress.planned);
    done.unwrap_or_default().min(parts)
}

/// Selects the progress to print in a log: each twentieth once.
#[derive(Debug, Default)]
pub(super) struct ProgressSteps {
    last: Option<u64>,
}

impl ProgressSteps {
    /// Whether progress reaches the next step. The plan may grow, so the progress can drop below a printed step.
    pub(super) fn reaches_next(&mut self, progress: &TrainingProgress) -> bool {
        let step = share(progress, STEPS);
        let is_next = self.last.is_none_or(|last| step > last);
        if is_next {
            self.last = Some(step);
        }
        is_next
    }
}

/// US dollars; small amounts get more digits.
pub(super) fn dollars(amount: f64) -> String {
    if amount == 0.0 || amount >= 0.01 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// `45s`, `3m20s` or `2h05m`; `None` if the number is not a duration.
pub(super) fn span(seconds: f64) -> Option<String> {
    let seconds = Duration::try_from_secs_f64(seconds).ok()?.as_secs();
    Some(match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    })
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The model usage.
pub(super) fn usage(usage: &CallUsage) -> String {
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    let estimated = if usage.estimated { " (estimated)" } else { "" };
    format!("{} model calls, {tokens} tokens{estimated}, {}", usage.llm_calls, dollars(usage.cost_usd))
}

/// Evaluator means, for example `exact_match 0.701, style 0.620`.
pub(super) fn means<'a>(summary: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let mean = |(id, mean): (&String, &Value)| format!("{id} {}", score(mean));
    summary.into_iter().map(mean).collect::<Vec<_>>().join(", ")
}

/// A score with three digits, or a dash.
pub(super) fn score(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |score| format!("{score:.3}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn progress(done: u64, planned: u64) -> TrainingProgress {
        TrainingProgress { done, planned, llm_calls: 350, cost: 0.12, ..TrainingProgress::default() }
    }

    #[test]
    fn a_progress_line_has_score_best_cases_calls_cost_and_eta() {
        let whole = TrainingProgress {
            running_mean: Some(0.6123),
            best_score: Some(0.65),
            eta_s: Some(200.7),
            ..progress(180, 480)
        };
        let line = progress_line(&whole);
        assert_eq!(line, "[███░░░░░] 180/480  score 0.612  best 0.650  350 calls  $0.12  ETA 3m20s");
        assert!(line.chars().count() <= 78);
        assert_eq!(progress_note(&progress(1, 2)), "cases 1/2  350 calls  $0.12");
    }

    #[test]
    fn a_bar_is_never_longer_than_its_cells() {
        assert_eq!(bar(&progress(0, 0)), "[░░░░░░░░]");
        assert_eq!(bar(&progress(9, 8)), "[████████]");
        assert_eq!(bar(&progress(u64::MAX, 1)), "[████████]");
    }

    #[test]
    fn each_step_is_shown_once_although_the_plan_grows() {
        let mut steps = ProgressSteps::default();
        let shown = [(0, 0), (1, 100), (5, 100), (6, 100), (10, 100), (11, 1000), (150, 1000), (1000, 1000)];
        let shown: Vec<bool> =
            shown.into_iter().map(|(done, planned)| steps.reaches_next(&progress(done, planned))).collect();
        assert_eq!(shown, [true, false, true, false, true, false, true, true]);
        assert!(!steps.reaches_next(&progress(2000, 1000)));
    }

    #[test]
    fn money_and_times_are_short() {
        assert_eq!([0.0, 0.004, 0.01, 12.5].map(dollars), ["$0.00", "$0.0040", "$0.01", "$12.50"]);
        let spans = [0.0, 59.9, 60.0, 3_599.0, 3_600.0, 7_500.0].map(|seconds| span(seconds).unwrap());
        assert_eq!(spans, ["0s", "59s", "1m00s", "59m59s", "1h00m", "2h05m"]);
        assert!([-1.0, f64::NAN, f64::INFINITY].into_iter().all(|seconds| span(seconds).is_none()));
    }

    #[test]
    fn means_and_usage_are_on_a_line() {
        let summary = json!({"exact": 0.7, "style": null});
        assert_eq!(means(summary.as_object().unwrap()), "exact 0.700, style -");
        let used = CallUsage {
            llm_calls: 12,
            input_tokens: 300,
            output_tokens: 41,
            cost_usd: 0.5,
            estimated: true,
            ..CallUsage::default()
        };
        assert_eq!(usage(&used), "12 model calls, 341 tokens (estimated), $0.50");
    }
}
