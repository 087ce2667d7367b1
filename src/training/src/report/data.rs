//! Report data, and its conversion to a report.

use std::collections::{BTreeMap, BTreeSet};

use wire::{
    CandidateRecord, CheckpointSummary, EpochComplete, EvaluationResult, SplitRecord, TrainingNotice,
    TrainingRecord, TrainingResult,
};

use super::diff::line_diff;
use super::model::{CandidateCounts, CaseCounts, CurvePoint, JudgeCalibration, PromptReport, Report};
use super::verdict::verdict;

/// A run's rows and events from which a report is built.
#[derive(Debug, Clone)]
pub struct ReportData {
    /// The run.
    pub record: TrainingRecord,
    /// The workflow name.
    pub workflow_name: Option<String>,
    /// The stored dataset's name.
    pub dataset_name: Option<String>,
    /// Evaluation results, counted per tenth of the score range.
    pub distribution: Vec<u64>,
    /// `splits` of the event `training_started`; `None` before it.
    pub splits: Option<SplitRecord>,
    /// The `training_epoch_complete` payloads, in any order.
    pub epochs: Vec<EpochComplete>,
    /// The compared candidates.
    pub candidates: Vec<CandidateRecord>,
    /// The checkpoints in order.
    pub checkpoints: Vec<CheckpointSummary>,
    /// The `training_result` payload; `None` before it.
    pub result: Option<TrainingResult>,
    /// The `evaluation_result` payload; `None` before it.
    pub evaluation: Option<EvaluationResult>,
    /// The `training_warning` payloads, in order.
    pub warnings: Vec<TrainingNotice>,
    /// The trainable prompt texts before the training, by name.
    pub seed_prompts: BTreeMap<String, String>,
    /// The returned prompt texts, by name; empty while the run has no result.
    pub returned_prompts: BTreeMap<String, String>,
    /// The agreement between each judge and people.
    pub judges: Vec<JudgeCalibration>,
}

impl From<ReportData> for Report {
    fn from(data: ReportData) -> Self {
        let ReportData { record, splits, epochs, candidates, checkpoints, result, warnings, .. } = data;
        let prompts = prompts(data.seed_prompts, data.returned_prompts, &candidates);
        let curve = curve(&epochs);
        let (mut summary, mut pass_rate) = Default::default();
        let (outcome, stop_reason, seed_vs_best, usage) = match result {
            Some(result) => {
                summary = result.summary;
                (Some(result.outcome), Some(result.stop_reason), result.seed_vs_best, result.usage)
            }
            None => (record.outcome, record.stop_reason, None, record.usage),
        };
        if let Some(evaluation) = data.evaluation {
            (summary, pass_rate) = (evaluation.summary, Some(evaluation.pass_rate));
        }
        let mut report = Self {
            run: record.id,
            kind: record.kind,
            workflow: record.workflow_id,
            workflow_name: data.workflow_name,
            version: record.version,
            status: record.status,
            verdict: String::new(),
            optimizer: record.optimizer,
            dataset: record.dataset,
            dataset_name: data.dataset_name,
            splits: splits.as_ref().map(case_counts),
            test_estimate: splits.and_then(|splits| splits.test_estimate),
            outcome,
            stop_reason,
            score: record.best_score,
            pass_rate,
            summary,
            seed_vs_best,
            curve,
            distribution: data.distribution,
            prompts,
            candidates: candidate_counts(&candidates),
            checkpoints,
            usage,
            warnings,
            judges: data.judges,
            error: record.error,
            created_at: record.created_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
        };
        report.verdict = verdict(&report);
        report
    }
}

/// One point per epoch, in order; an epoch's later event wins.
fn curve(epochs: &[EpochComplete]) -> Vec<CurvePoint> {
    let point = |epoch: &EpochComplete| CurvePoint {
        epoch: epoch.epoch,
        score: epoch.score,
        best_score: epoch.best_score,
    };
    let by_epoch: BTreeMap<u32, CurvePoint> =
        epochs.iter().map(|epoch| (epoch.epoch, point(epoch))).collect();
    by_epoch.into_values().collect()
}

fn prompts(
    mut seed: BTreeMap<String, String>,
    mut returned: BTreeMap<String, String>,
    candidates: &[CandidateRecord],
) -> Vec<PromptReport> {
    let names: BTreeSet<String> = seed.keys().chain(returned.keys()).cloned().collect();
    let prompt = |name: String| {
        let (seed, best) = (seed.remove(&name), returned.remove(&name));
        let changed = best.as_deref().filter(|best| seed.as_deref() != Some(best));
        let diff = changed.map(|best| line_diff(seed.as_deref().unwrap_or_default(), best));
        let rationale = changed.and_then(|best| rationale(candidates, &name, best)).map(str::to_owned);
        PromptReport { name, seed, best, diff, rationale }
    };
    names.into_iter().map(prompt).collect()
}

/// The first rationale among candidates with this prompt text.
fn rationale<'a>(candidates: &'a [CandidateRecord], prompt: &str, text: &str) -> Option<&'a str> {
    let has_it = |candidate: &&CandidateRecord| {
        candidate.prompts_changed.iter().any(|changed| changed.name == prompt && changed.text == text)
    };
    candidates.iter().find(has_it)?.rationale.as_deref()
}

/// Counts accepted and rejected proposals; the seed, number 0, is not a proposal.
fn candidate_counts(candidates: &[CandidateRecord]) -> CandidateCounts {
    let count = |decision: &str| {
        candidates.iter().filter(|it| it.candidate_id != 0 && it.decision == decision).count()
    };
    CandidateCounts { accepted: count("accepted"), rejected: count("rejected") }
}

fn case_counts(splits: &SplitRecord) -> CaseCounts {
    let train: BTreeSet<usize> = splits.train.iter().copied().collect();
    let train_and_val = splits.val.iter().filter(|place| train.contains(place)).count();
    let (val, test) = (splits.val.len(), splits.test.len());
    CaseCounts { train: splits.train.len(), val, test, train_and_val }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wire::ChangedPrompt;

    use super::super::samples;
    use super::*;

    fn names(prompts: &[PromptReport]) -> Vec<&str> {
        prompts.iter().map(|prompt| prompt.name.as_str()).collect()
    }

    #[test]
    fn a_changed_prompt_has_the_rationale_of_the_candidate_that_wrote_it() {
        let mut data = samples::running();
        data.returned_prompts = [("greeting", "Hello."), ("system", "New.")]
            .map(|(name, text)| (name.into(), text.into()))
            .into();
        for (place, text) in ["Old.", "New.", "New."].into_iter().enumerate() {
            let changed =
                ChangedPrompt { name: "system".into(), text: text.into(), demos: None, diff: String::new() };
            data.candidates[place].prompts_changed.push(changed);
            data.candidates[place].rationale = Some(format!("because of {place}"));
        }
        let report = Report::from(data);
        let rationales: Vec<Option<&str>> = report.prompts.iter().map(|it| it.rationale.as_deref()).collect();
        assert_eq!(rationales, [None, Some("because of 1")]);
        let text = super::super::text::text(&report);
        assert!(text.contains("Rationale: because of 1"), "{text}");
    }

    #[test]
    fn a_report_has_the_shape_of_the_interface() {
        let report = serde_json::to_value(Report::from(samples::improved())).unwrap();
        let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
        for key in [
            "run",
            "workflow",
            "optimizer",
            "dataset",
            "outcome",
            "stop_reason",
            "seed_vs_best",
            "curve",
            "prompts",
            "candidates",
            "checkpoints",
            "usage",
            "warnings",
            "judges",
        ] {
            assert!(keys.contains(&key), "{key} of {keys:?}");
        }
        assert_eq!(report["outcome"], "improved");
        assert_eq!(report["curve"][0], json!({"epoch": 1, "score": 0.52, "best_score": 0.52}));
        assert_eq!(report["candidates"], json!({"accepted": 2, "rejected": 1}));
        assert_eq!(report["seed_vs_best"]["ci95"], json!([0.04, 0.2]));
        assert_eq!(report["judges"], json!([]));
        assert_eq!(report["splits"], json!({"train": 3, "val": 2, "test": 1, "train_and_val": 0}));
        assert_eq!(report["prompts"][0]["diff"], Value::Null, "an equal prompt has no diff");
        assert_eq!(
            report["prompts"][1]["diff"],
            "  You answer.\n- Be nice.\n+ Be brief.\n+ Quote the source.\n"
        );
    }

    #[test]
    fn the_curve_has_each_epoch_once_and_in_order() {
        let mut data = samples::improved();
        data.epochs.reverse();
        data.epochs.push(samples::epoch(2, 0.7, 0.7));
        let report = Report::from(data);
        let points: Vec<(u32, f64)> = report.curve.iter().map(|point| (point.epoch, point.score)).collect();
        assert_eq!(points, [(1, 0.52), (2, 0.7), (3, 0.64)]);
    }

    #[test]
    fn prompts_of_either_side_are_reported() {
        let of = |texts: &[(&str, &str)]| {
            texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let found = prompts(of(&[("gone", "a"), ("same", "b")]), of(&[("new", "c"), ("same", "b")]), &[]);
        assert_eq!(names(&found), ["gone", "new", "same"]);
        let diffs: Vec<Option<&str>> = found.iter().map(|prompt| prompt.diff.as_deref()).collect();
        assert_eq!(diffs, [None, Some("+ c\n"), None]);
        assert_eq!((found[0].best.as_deref(), found[1].seed.as_deref()), (None, None));
    }

    #[test]
    fn a_run_without_a_result_is_reported_from_its_record() {
        let report = Report::from(samples::running());
        assert_eq!((report.outcome, report.stop_reason, report.seed_vs_best), (None, None, None));
        assert_eq!(report.usage.llm_calls, 100, "the record's usage");
        assert!(report.prompts.iter().all(|prompt| prompt.best.is_none() && prompt.diff.is_none()));
    }

    #[test]
    fn the_seed_is_not_counted_as_a_candidate() {
        let seed = samples::candidate(0, "accepted");
        assert_eq!(candidate_counts(&[seed]), CandidateCounts { accepted: 0, rejected: 0 });
    }

    #[test]
    fn cases_that_are_for_training_and_for_scoring_are_counted() {
        let splits = SplitRecord { train: vec![0, 1, 2], val: vec![2, 1, 0], ..SplitRecord::default() };
        assert_eq!(case_counts(&splits), CaseCounts { train: 3, val: 3, test: 0, train_and_val: 3 });
    }
}
