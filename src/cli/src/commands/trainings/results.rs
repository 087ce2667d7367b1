//! Training and evaluation results as text. Pure.

use std::fmt::Write as _;

use serde_json::Value;
use wire::{CaseRecord, EvaluationResult, SeedVsBest, TrainingResult};

use super::findings::TrainingFindings;
use super::numbers::{means, percent, score, usage};

/// Maximum printed lines per prompt; `checkpoint show` prints all.
const PROMPT_LINES: usize = 40;
/// Maximum printed characters per reason.
const REASON_CHARS: usize = 300;

/// The outcome of a training in one line.
pub(super) fn headline(result: &TrainingResult) -> String {
    let compared = result.seed_vs_best.as_ref();
    match (result.outcome.as_str(), compared) {
        ("improved", Some(compared)) => {
            let val = compared.val;
            format!("Improved: score {:.3} → {:.3} ({})", val.seed, val.best, difference(compared))
        }
        ("no_significant_gain", Some(compared)) => {
            let val = compared.val;
            format!(
                "No significant gain: seed {:.3}, best candidate {:.3} ({}). The prompts stay as they were.",
                val.seed,
                val.best,
                difference(compared)
            )
        }
        ("no_significant_gain", None) => "No significant gain. The prompts stay as they were.".to_owned(),
        ("no_headroom", _) => "No headroom: the prompts already pass the scoring cases.".to_owned(),
        ("improved", None) => "Improved.".to_owned(),
        (other, _) => format!("Outcome: {other}"),
    }
}

fn difference(compared: &SeedVsBest) -> String {
    let [low, high] = compared.ci95;
    format!("difference {:+.3}, 95 % interval {low:+.3} to {high:+.3}, {} cases", compared.diff, compared.n)
}

/// The text below the headline: test, means, changed prompts, the checkpoint and the command that uses it.
pub(super) fn training_text(findings: &TrainingFindings, result: &TrainingResult, workflow: &str) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    match result.seed_vs_best.as_ref().and_then(|compared| compared.test) {
        Some(test) => _ = writeln!(text, "Test: score {:.3} → {:.3}", test.seed, test.best),
        None if result.outcome == "improved" && findings.has_shared_cases => {
            text.push_str("The scoring cases were used for training, too: expect less on other cases.\n");
        }
        None => {}
    }
    if !result.summary.is_empty() {
        let _ = writeln!(text, "Evaluators: {}", means(&result.summary));
    }
    let _ = writeln!(text, "Stop reason: {}", result.stop_reason);
    let _ = writeln!(text, "Usage: {}", usage(&result.usage));
    if result.outcome != "improved" {
        return text;
    }
    let changed = findings.changed_prompts();
    let names: Vec<&str> = changed.iter().map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let _ = writeln!(text, "Changed prompts: {}", names.join(", "));
    }
    for (name, prompt) in changed {
        let _ = writeln!(text, "\n{name}:\n{}", indented(prompt));
        let demos = result.demos.get(name).and_then(Value::as_array).map_or(0, Vec::len);
        if demos > 0 {
            let _ = writeln!(text, "  … with {demos} demos");
        }
    }
    text.push_str(&checkpoint_to_use(findings, result, workflow));
    text
}

fn checkpoint_to_use(findings: &TrainingFindings, result: &TrainingResult, workflow: &str) -> String {
    let mut text = String::new();
    let best_of_run = || {
        let checkpoints = result.checkpoints.iter();
        checkpoints.max_by(|one, other| one.score.total_cmp(&other.score)).map(|one| one.config_version)
    };
    let number =
        findings.returned_checkpoint().map(|checkpoint| checkpoint.config_version).or_else(best_of_run);
    let Some(number) = number else { return text };
    let _ = writeln!(text, "\nCheckpoint {number} has these prompts. To save them as a new version:");
    let _ = writeln!(text, "  callboard checkpoint use {workflow} {number}");
    let own = result
        .checkpoints
        .iter()
        .any(|one| Some(&one.id) == result.best_checkpoint.as_ref().map(|best| &best.id));
    let is_higher =
        |best: &&wire::CheckpointSummary| result.checkpoints.iter().all(|one| one.score < best.score);
    if let Some(best) = result.best_checkpoint.as_ref().filter(|_| !own).filter(is_higher) {
        let _ = writeln!(
            text,
            "Checkpoint {} of another run has a higher score: {:.3}.",
            best.config_version, best.score
        );
    }
    text
}

/// An indented prompt, for display below its name.
fn indented(prompt: &str) -> String {
    let mut lines: Vec<String> =
        prompt.lines().take(PROMPT_LINES).map(|line| format!("  {line}").trim_end().to_owned()).collect();
    let left_out = prompt.lines().count().saturating_sub(PROMPT_LINES);
    if left_out > 0 {
        lines.push(format!("  … ({left_out} more lines)"));
    }
    lines.join("\n")
}

/// A row per evaluator: its id, its mean, and its passed verdicts.
pub(super) fn evaluator_rows(findings: &TrainingFindings, result: &EvaluationResult) -> Vec<[String; 3]> {
    let row = |(id, mean): (&String, &Value)| {
        let count = findings.verdicts.get(id);
        let passed = count.map_or_else(|| "-".to_owned(), |count| format!("{}/{}", count.passed, count.all));
        [id.clone(), score(mean), passed]
    };
    result.summary.iter().map(row).collect()
}

/// The score of an evaluation in one line.
pub(super) fn evaluation_line(result: &EvaluationResult) -> String {
    let (rate, cases) = (percent(result.pass_rate), result.n_cases);
    let stopped = result.stop_reason.as_ref();
    let stopped =
        stopped.map(|reason| format!(" Not every case was executed: {reason}.")).unwrap_or_default();
    format!("Score {:.3}; {rate} of {cases} cases passed.{stopped} {}.", result.score, usage(&result.usage))
}

/// A failing case with its evaluators' reasons.
pub(super) fn failing_case(case: &CaseRecord) -> String {
    let place = case.case_index.to_string();
    let mut text = format!("case {place}");
    if case.case_id != place {
        let _ = write!(text, " ({})", case.case_id);
    }
    if case.sample > 0 {
        let _ = write!(text, ", repeat {}", case.sample);
    }
    if let Some(error) = &case.error {
        let _ = write!(text, "\n  error: {} ({})", shortened(&error.message), error.code);
    }
    for (id, verdict) in &case.evaluations {
        let is = |member: &str| verdict.get(member) == Some(&Value::Bool(true));
        if is("passed") || is("skip") {
            continue;
        }
        let _ = write!(text, "\n  {id} {}", verdict.get("score").map_or_else(|| "-".to_owned(), score));
        let why = |member: &str| verdict.get(member).and_then(Value::as_str);
        if let Some(why) = why("error").or_else(|| why("reason")) {
            let _ = write!(text, ": {}", shortened(why));
        }
    }
    text
}

/// Shortens a reason to one line.
fn shortened(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(REASON_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::trainings::findings::tests::{candidate, checkpoint, findings, result};

    fn compared() -> Value {
        json!({"val": {"seed": 0.612, "best": 0.701}, "test": {"seed": 0.6, "best": 0.69},
               "diff": 0.089, "ci95": [0.031, 0.147], "z": 3.0, "n": 40})
    }

    #[test]
    fn a_gain_measured_on_training_cases_has_a_caveat() {
        let has_caveat = |train: Value, compared: Value| {
            let started = json!({"type": "training_started", "payload": {
                "optimizer": {}, "splits": {"train": train, "val": [1, 2], "test": [], "test_estimate": null},
                "dataset_fingerprint": "f", "trainable_prompts": ["answer"], "pins": {}, "version": 1, "estimate": {}
            }});
            let found = findings(&[started, result("improved", compared, "x")]);
            training_text(&found, found.training.as_ref().unwrap(), "w")
                .contains("expect less on other cases")
        };
        let mut untested = compared();
        untested["test"] = Value::Null;
        assert!(has_caveat(json!([0, 1]), untested.clone()));
        assert!(!has_caveat(json!([0, 3]), untested));
        assert!(!has_caveat(json!([0, 1]), compared()), "the test has measured it");
    }

    #[test]
    fn a_gain_is_shown_with_its_interval() {
        let line =
            |outcome, compared| headline(&findings(&[result(outcome, compared, "x")]).training.unwrap());
        assert_eq!(
            line("improved", compared()),
            "Improved: score 0.612 → 0.701 (difference +0.089, 95 % interval +0.031 to +0.147, 40 cases)"
        );
        let none = line("no_significant_gain", compared());
        assert!(
            none.starts_with("No significant gain: seed 0.612, best candidate 0.701 (difference"),
            "{none}"
        );
        assert!(none.ends_with("The prompts stay as they were."), "{none}");
        assert!(line("no_headroom", Value::Null).starts_with("No headroom"));
        assert_eq!(line("improved", Value::Null), "Improved.");
        assert_eq!(line("undecided", Value::Null), "Outcome: undecided");
    }

    #[test]
    fn an_improved_training_shows_its_prompts_and_the_deploy_command() {
        let found = findings(&[
            candidate(1, "answer", "New.\n\nTwice."),
            checkpoint(7, "New.\n\nTwice."),
            result("improved", compared(), "New.\n\nTwice."),
        ]);
        let text = training_text(&found, found.training.as_ref().unwrap(), "support");
        assert_eq!(
            text,
            "Test: score 0.600 → 0.690\n\
             Evaluators: exact 0.701\n\
             Stop reason: epochs\n\
             Usage: 12 model calls, 341 tokens, $0.50\n\
             Changed prompts: answer\n\
             \nanswer:\n  New.\n\n  Twice.\n\
             \nCheckpoint 7 has these prompts. To save them as a new version:\n  callboard checkpoint use support 7\n"
        );
    }

    #[test]
    fn a_training_without_a_gain_shows_no_command() {
        let found = findings(&[checkpoint(7, "Old."), result("no_significant_gain", Value::Null, "Old.")]);
        let text = training_text(&found, found.training.as_ref().unwrap(), "support");
        assert_eq!(
            text,
            "Evaluators: exact 0.701\nStop reason: epochs\nUsage: 12 model calls, 341 tokens, $0.50\n"
        );
    }

    #[test]
    fn a_better_checkpoint_of_another_run_is_reported() {
        let mut found = findings(&[checkpoint(7, "New."), result("improved", compared(), "New.")]);
        let mut outcome = found.training.take().unwrap();
        let summary = |id: &str, number, score| wire::CheckpointSummary {
            id: id.to_owned(),
            config_version: number,
            epoch: 1,
            score,
            is_best: false,
        };
        outcome.checkpoints = vec![summary("id-7", 7, 0.7)];
        outcome.best_checkpoint = Some(summary("id-3", 3, 0.9));
        let text = checkpoint_to_use(&found, &outcome, "w");
        assert!(text.contains("use w 7\n") && text.contains("Checkpoint 3 of another run"), "{text}");
        outcome.best_checkpoint = Some(summary("id-7", 7, 0.7));
        assert!(!checkpoint_to_use(&found, &outcome, "w").contains("another run"));
    }

    #[test]
    fn a_long_prompt_is_truncated() {
        let text = indented(&"line\n".repeat(PROMPT_LINES + 2));
        assert_eq!(text.lines().count(), PROMPT_LINES + 1);
        assert!(text.ends_with("… (2 more lines)"));
    }

    #[test]
    fn a_failing_case_has_its_reasons() {
        let case = |error: Value, evaluations: Value| -> CaseRecord {
            serde_json::from_value(json!({
                "case_index": 3, "case_id": "order-17", "candidate_id": null, "sample": 1, "split": null,
                "phase": null, "epoch": null, "score": 0.0, "passed": false, "inputs": {},
                "expected_output": null, "output": null, "output_text": "", "evaluations": evaluations,
                "error": error, "duration_ms": 5
            }))
            .unwrap()
        };
        let judged = json!({
            "exact": {"score": 0.0, "passed": false, "reason": "expected \"a\",\n got \"b\""},
            "length": {"score": 1.0, "passed": true},
            "style": {"score": 0.0, "passed": false, "reason": null, "error": "no answer"},
            "tone": {"score": 0.0, "passed": false, "skip": true}
        });
        assert_eq!(
            failing_case(&case(Value::Null, judged)),
            "case 3 (order-17), repeat 1\n  exact 0.000: expected \"a\", got \"b\"\n  style 0.000: no answer"
        );
        let late = case(json!({"code": "case_timeout", "message": "too slow"}), json!({}));
        assert_eq!(failing_case(&late), "case 3 (order-17), repeat 1\n  error: too slow (case_timeout)");
        assert_eq!(shortened(&"ä".repeat(400)).chars().count(), REASON_CHARS + 1);
    }

    #[test]
    fn an_evaluation_has_a_line_and_a_row_for_each_evaluator() {
        let evaluated = EvaluationResult {
            summary: json!({"exact": 0.75, "style": null}).as_object().unwrap().clone(),
            score: 0.75,
            pass_rate: 0.75,
            usage: wire::CallUsage { llm_calls: 40, cost_usd: 0.01, ..wire::CallUsage::default() },
            n_cases: 20,
            stop_reason: None,
        };
        assert_eq!(
            evaluation_line(&evaluated),
            "Score 0.750; 75 % of 20 cases passed. 40 model calls, 0 tokens, $0.01."
        );
        let partial = EvaluationResult { stop_reason: Some("budget".into()), ..evaluated.clone() };
        assert!(evaluation_line(&partial).contains("Not every case was executed: budget."));
        let rows = evaluator_rows(&TrainingFindings::default(), &evaluated);
        assert_eq!(rows, [["exact", "0.750", "-"], ["style", "-", "-"]]);
    }
}
