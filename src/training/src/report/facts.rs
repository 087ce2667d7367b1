//! Content that the plain text and the page share: labels and values, made visible but not escaped.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wire::{CheckpointSummary, TrainingKind, TrainingNotice};

use super::model::{CandidateCounts, JudgeCalibration, Report};
use super::number::{count, decimal, interval, money, places, score, signed, things};
use super::visible::line;

/// Maximum characters in a name, an id or another short text.
pub(super) const MAX_NAME: usize = 120;
/// Maximum rationale characters.
pub(super) const MAX_RATIONALE: usize = 600;
/// Maximum warning message characters.
const MAX_MESSAGE: usize = 1_000;
/// Maximum optimizer settings shown; JSON has all of them.
const MAX_SETTINGS: usize = 20;
/// Below this κ, a judge and people agree too little.
const WEAK_KAPPA: f64 = 0.4;

/// A label and its value.
pub(super) type Fact = (&'static str, String);

/// Describes the run.
pub(super) fn run(report: &Report) -> Vec<Fact> {
    let name = |text: &str| line(text, MAX_NAME);
    let version = report.version.map_or_else(|| "draft".to_owned(), |version| format!("version {version}"));
    let is_training = report.kind == TrainingKind::Training;
    let CandidateCounts { accepted, rejected } = report.candidates;
    let candidates = format!("{accepted} accepted, {rejected} rejected");
    let mut facts = vec![
        ("Run", name(&report.run)),
        ("Workflow", format!("{}, {version}", named(report.workflow_name.as_deref(), &report.workflow))),
        ("Status", report.status.as_str().to_owned()),
    ];
    let mut push = |label, text: Option<String>| facts.extend(text.map(|text| (label, text)));
    push("Optimizer", is_training.then(|| optimizer(&report.optimizer)));
    push("Cases", Some(cases(report)));
    push("Fingerprint", Some(name(&report.dataset.fingerprint)));
    push("Candidates", is_training.then_some(candidates));
    // A training shows its scores in a table.
    push("Score", report.score.filter(|_| !is_training).map(score));
    push("Pass rate", report.pass_rate.map(|rate| format!("{} %", decimal(rate * 100.0, 0))));
    push("Evaluators", evaluators(&report.summary));
    push("Outcome", report.outcome.as_deref().map(name));
    push("Stop reason", report.stop_reason.as_deref().map(stop_reason));
    push("Created", Some(name(&report.created_at)));
    push("Started", report.started_at.as_deref().map(name));
    push("Finished", report.finished_at.as_deref().map(name));
    push(
        "Error",
        report
            .error
            .as_ref()
            .map(|error| format!("{}: {}", name(&error.code), line(&error.message, MAX_MESSAGE))),
    );
    facts
}

/// A name with its id, or only the id.
fn named(name: Option<&str>, id: &str) -> String {
    let id = line(id, MAX_NAME);
    name.map_or_else(|| id.clone(), |name| format!("{} ({id})", line(name, MAX_NAME)))
}

/// The mean score per evaluator.
fn evaluators(summary: &Map<String, Value>) -> Option<String> {
    let mean =
        |(id, mean): (&String, &Value)| Some(format!("{} {}", line(id, MAX_NAME), score(mean.as_f64()?)));
    let means: Vec<String> = summary.iter().filter_map(mean).collect();
    (!means.is_empty()).then(|| means.join(", "))
}

fn optimizer(settings: &Value) -> String {
    let Some(settings) = settings.as_object() else { return "none".to_owned() };
    let shown = |value: &Value| match value {
        Value::String(text) => Some(line(text, MAX_NAME)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let others = settings.iter().filter(|(key, _)| *key != "name");
    let others = others.filter_map(|(key, value)| Some(format!("{} {}", line(key, MAX_NAME), shown(value)?)));
    let others: Vec<String> = others.take(MAX_SETTINGS).collect();
    let name = settings.get("name").and_then(shown).unwrap_or_else(|| "unnamed".to_owned());
    if others.is_empty() { name } else { format!("{name} ({})", others.join(", ")) }
}

fn cases(report: &Report) -> String {
    let dataset = &report.dataset;
    let from = match (&dataset.id, dataset.version) {
        (Some(id), Some(version)) => {
            format!(" of dataset {}, version {version}", named(report.dataset_name.as_deref(), id))
        }
        (Some(id), None) => format!(" of dataset {}", named(report.dataset_name.as_deref(), id)),
        (None, _) => String::new(),
    };
    let splits = report.splits.map(|cases| {
        let both = if cases.train_and_val == 0 {
            String::new()
        } else {
            format!(" ({} of them for both)", cases.train_and_val)
        };
        format!(
            ": {} for training, {} for scoring{both}, {} for the test",
            cases.train, cases.val, cases.test
        )
    });
    format!("{}{from}{}", things(dataset.n_cases, "case"), splits.unwrap_or_default())
}

/// The wire name with its meaning.
fn stop_reason(word: &str) -> String {
    let meaning = match word {
        "epochs" => "all epochs are done",
        "budget" => "the budget is spent",
        "max_seconds" => "the time limit is reached",
        "target_score" => "the target score is reached",
        "patience" => "no new best for too many epochs",
        "train_saturated" => "the training cases show nothing more to improve",
        "no_headroom" => "the seed has the best possible score",
        "cancelled" => "a client cancelled the run",
        _ => return line(word, MAX_NAME),
    };
    format!("{word}: {meaning}")
}

/// A score table row: seed, best candidate, difference.
pub(super) struct ScoreRow {
    pub(super) label: &'static str,
    pub(super) seed: String,
    pub(super) best: String,
    pub(super) difference: String,
}

/// Seed against best candidate; empty if unknown.
pub(super) fn scores(report: &Report) -> Vec<ScoreRow> {
    let Some(compared) = &report.seed_vs_best else { return Vec::new() };
    let row = |label, seed: f64, best: f64, diff: f64| ScoreRow {
        label,
        seed: score(seed),
        best: score(best),
        difference: signed(diff, places(&[diff])),
    };
    let by_folds = report.test_estimate.as_deref() == Some("kfold");
    let test = if by_folds { "Test (5-fold estimate)" } else { "Test cases" };
    let val = row("Scoring cases", compared.val.seed, compared.val.best, compared.diff);
    let test = compared.test.map(|pair| row(test, pair.seed, pair.best, pair.best - pair.seed));
    std::iter::once(val).chain(test).collect()
}

/// Notes that the score table does not show.
pub(super) fn score_notes(report: &Report) -> Vec<String> {
    let Some(compared) = &report.seed_vs_best else {
        return vec!["The seed was not compared with a candidate.".to_owned()];
    };
    let [low, high] = compared.ci95;
    let interval = interval(compared.ci95, places(&[low, high]));
    let (z, cases) = (decimal(compared.z, 1), things(compared.n, "case"));
    let mut notes = vec![format!(
        "95 % interval of the difference: {interval}; z {z} (over 1.9 is more than chance); {cases}."
    )];
    if compared.test.is_some() && report.outcome.as_deref() != Some("improved") {
        notes.push("The test compares the seed with the returned prompts, which are the seed's.".to_owned());
    }
    if !report.curve.is_empty() {
        notes.push(
            "The final comparison uses fresh samples if the budget allows; the curve can show other scores."
                .to_owned(),
        );
    }
    notes
}

/// Model usage.
pub(super) fn usage(report: &Report) -> Vec<Fact> {
    let usage = &report.usage;
    let roles = &usage.by_role;
    let estimated = if usage.estimated { " (estimated in part)" } else { "" };
    let by_role = [
        ("workflow", roles.task),
        ("evaluators", roles.judge),
        ("optimizer", roles.optimizer),
        ("embeddings", roles.embedding),
    ];
    let by_role: Vec<String> = by_role
        .iter()
        .filter(|(_, calls)| *calls > 0)
        .map(|(role, calls)| format!("{role} {}", count(*calls)))
        .collect();
    let by_role = if by_role.is_empty() { String::new() } else { format!(" ({})", by_role.join(", ")) };
    let mut facts = vec![
        ("Cost", money(usage.cost_usd)),
        ("Requests", format!("{}{by_role}", count(usage.llm_calls))),
        ("Retries", count(usage.retries)),
        ("From the cache", count(usage.cached_calls)),
        (
            "Tokens",
            format!("{} read, {} written{estimated}", count(usage.input_tokens), count(usage.output_tokens)),
        ),
    ];
    if usage.lost_calls > 0 {
        facts.push(("Lost requests", format!("{}, not in the others", count(usage.lost_calls))));
    }
    facts
}

/// Checkpoint cells: id, number, epoch, score and whether it was the best.
pub(super) fn checkpoint(checkpoint: &CheckpointSummary) -> [String; 5] {
    let is_best = if checkpoint.is_best { "yes" } else { "no" };
    [
        line(&checkpoint.id, 36),
        checkpoint.config_version.to_string(),
        checkpoint.epoch.to_string(),
        score(checkpoint.score),
        is_best.to_owned(),
    ]
}

/// Each distinct warning: its code and its message, with a count if repeated.
pub(super) fn warnings(warnings: &[TrainingNotice]) -> Vec<(String, String)> {
    let mut counted: Vec<(&TrainingNotice, u64)> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for warning in warnings {
        let place = *places.entry((&warning.code, &warning.message)).or_insert(counted.len());
        match counted.get_mut(place) {
            Some((_, times)) => *times += 1,
            None => counted.push((warning, 1)),
        }
    }
    let shown = |(warning, times): (&TrainingNotice, u64)| {
        let repeated = if times > 1 { format!(" ({times} times)") } else { String::new() };
        (line(&warning.code, MAX_NAME), format!("{}{repeated}", line(&warning.message, MAX_MESSAGE)))
    };
    counted.into_iter().map(shown).collect()
}

/// Describes the agreement between a judge and people.
pub(super) fn judge(judge: &JudgeCalibration) -> String {
    let weak = if judge.kappa < WEAK_KAPPA { ": its scores are not reliable" } else { "" };
    let (name, kappa) = (line(&judge.evaluator, MAX_NAME), score(judge.kappa));
    let (interval, outputs) = (interval(judge.ci95, 2), things(judge.n, "output"));
    format!("{name}: κ {kappa} (95 % interval {interval}) on {outputs}{weak}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::{CallUsage, ScorePair};

    use super::super::samples;
    use super::*;

    fn value<'a>(facts: &'a [Fact], label: &str) -> &'a str {
        facts.iter().find(|(known, _)| *known == label).map_or("", |(_, value)| value)
    }

    #[test]
    fn a_run_is_described_by_its_settings_and_cases() {
        let facts = run(&Report::from(samples::improved()));
        assert_eq!(value(&facts, "Workflow"), "0197a000-0000-7000-8000-0000000000aa, version 3");
        assert_eq!(value(&facts, "Optimizer"), "textgrad (epochs 3, seed 0)");
        assert_eq!(value(&facts, "Cases"), "6 cases: 3 for training, 2 for scoring, 1 for the test");
        assert_eq!(value(&facts, "Stop reason"), "epochs: all epochs are done");
        assert_eq!(value(&facts, "Error"), "");
        assert_eq!((optimizer(&json!(null)), optimizer(&json!({}))), ("none".into(), "unnamed".into()));
    }

    #[test]
    fn a_fold_estimate_is_marked() {
        let mut data = samples::improved();
        data.splits.as_mut().unwrap().test_estimate = Some("kfold".into());
        data.result.as_mut().unwrap().seed_vs_best.as_mut().unwrap().test =
            Some(ScorePair { seed: 0.5, best: 0.6 });
        let report = Report::from(data);
        let rows = scores(&report);
        assert_eq!((rows[1].label, rows[1].difference.as_str()), ("Test (5-fold estimate)", "+.10"));
        assert_eq!(
            score_notes(&Report::from(samples::running())),
            ["The seed was not compared with a candidate."]
        );
    }

    #[test]
    fn usage_facts_list_cost_requests_and_tokens() {
        let mut report = Report::from(samples::improved());
        let facts = usage(&report);
        assert_eq!(value(&facts, "Cost"), "1.23 USD");
        assert_eq!(value(&facts, "Requests"), "1,240 (workflow 1,000, evaluators 200, optimizer 40)");
        assert_eq!(value(&facts, "Tokens"), "1,048,576 read, 65,536 written (estimated in part)");
        report.usage = CallUsage { lost_calls: 2, ..CallUsage::default() };
        let facts = usage(&report);
        assert_eq!(
            (value(&facts, "Requests"), value(&facts, "Lost requests")),
            ("0", "2, not in the others")
        );
    }

    #[test]
    fn repeated_warnings_are_counted() {
        let warning = |message: &str| TrainingNotice { code: "leakage".into(), message: message.into() };
        let shown = warnings(&[warning("one"), warning("two"), warning("one")]);
        assert_eq!(shown, [("leakage".into(), "one (2 times)".into()), ("leakage".into(), "two".to_owned())]);
    }

    #[test]
    fn a_judge_that_disagrees_with_people_is_named() {
        let calibration =
            |kappa| JudgeCalibration { evaluator: "tone".into(), kappa, ci95: [0.1, 0.8], n: 40 };
        assert_eq!(judge(&calibration(0.62)), "tone: κ .62 (95 % interval .10 to .80) on 40 outputs");
        assert!(judge(&calibration(0.3)).ends_with("on 40 outputs: its scores are not reliable"));
    }
}
