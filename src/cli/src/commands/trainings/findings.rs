//! Findings from training and evaluation events. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::{CaseProgress, ChangedPrompt, CheckpointRecord, EvaluationResult, TrainingEvent, TrainingResult};

use crate::commands::checkpoint::prompt_texts;

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct TrainingFindings {
    pub(super) training: Option<TrainingResult>,
    pub(super) evaluation: Option<EvaluationResult>,
    /// An evaluation's verdicts by evaluator id.
    pub(super) verdicts: BTreeMap<String, VerdictCount>,
    /// Whether some cases are used both for training and for scoring.
    pub(super) has_shared_cases: bool,
    checkpoints: Vec<CheckpointRecord>,
    /// The prompts that candidates changed.
    rewritten: Vec<ChangedPrompt>,
}

/// An evaluator's verdict counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VerdictCount {
    pub(super) passed: u64,
    pub(super) all: u64,
}

impl TrainingFindings {
    /// Processes an event.
    pub(super) fn take(&mut self, event: &TrainingEvent) {
        match event {
            TrainingEvent::TrainingStarted(started) => {
                let splits = &started.splits;
                self.has_shared_cases = splits.val.iter().any(|case| splits.train.contains(case));
            }
            TrainingEvent::TrainingCandidate(candidate) => {
                self.rewritten.extend(candidate.prompts_changed.iter().cloned());
            }
            TrainingEvent::TrainingCheckpoint(checkpoint) => self.checkpoints.push((**checkpoint).clone()),
            TrainingEvent::TrainingResult(result) => self.training = Some((**result).clone()),
            TrainingEvent::EvaluationProgress(case) => self.count(case),
            TrainingEvent::EvaluationResult(result) => self.evaluation = Some(result.clone()),
            _ => {}
        }
    }

    fn count(&mut self, case: &CaseProgress) {
        let is_true = |verdict: &Value, member: &str| verdict.get(member) == Some(&Value::Bool(true));
        for (evaluator, verdict) in &case.evaluations {
            // A skipped case does not count for the evaluator.
            if !is_true(verdict, "skip") {
                let count = self.verdicts.entry(evaluator.clone()).or_default();
                count.all += 1;
                count.passed += u64::from(is_true(verdict, "passed"));
            }
        }
    }

    /// Returned prompts that a candidate has changed: name and text.
    pub(super) fn changed_prompts(&self) -> Vec<(&str, &str)> {
        let Some(result) = &self.training else { return Vec::new() };
        let texts = result.prompts.iter().filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)));
        // A prompt that received demos may keep its previous text.
        let has_demos = |prompt: &ChangedPrompt| {
            let returned = result.demos.get(&prompt.name).and_then(Value::as_array);
            prompt.demos.as_ref().is_none_or(|demos| Some(demos) == returned)
        };
        let is_rewritten = |(name, text): &(&str, &str)| {
            self.rewritten.iter().any(|it| it.name == *name && it.text == *text && has_demos(it))
        };
        texts.filter(is_rewritten).collect()
    }

    /// The run's newest checkpoint that has exactly the returned prompts.
    pub(super) fn returned_checkpoint(&self) -> Option<&CheckpointRecord> {
        let TrainingResult { prompts, demos, .. } = self.training.as_ref()?;
        let has_them = |checkpoint: &&CheckpointRecord| {
            let texts = prompt_texts(&checkpoint.runnable_config);
            let has_texts =
                prompts.iter().all(|(name, text)| texts.get(name.as_str()).copied() == text.as_str());
            let of_checkpoint =
                |name: &String| checkpoint.runnable_config.get("prompts")?.get(name)?.get("demos");
            has_texts && demos.iter().all(|(name, demos)| pairs(of_checkpoint(name)) == pairs(Some(demos)))
        };
        self.checkpoints.iter().rev().find(has_them)
    }
}

/// Each demo's inputs and output.
fn pairs(demos: Option<&Value>) -> Vec<(Option<&Value>, Option<&Value>)> {
    let demos = demos.and_then(Value::as_array).into_iter().flatten();
    demos.map(|demo| (demo.get("inputs"), demo.get("output"))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// The findings from these events, each given as `{type, payload}`.
    pub(crate) fn findings(events: &[Value]) -> TrainingFindings {
        let mut findings = TrainingFindings::default();
        for event in events {
            findings.take(&serde_json::from_value(event.clone()).unwrap());
        }
        findings
    }

    /// A candidate that changes one prompt.
    pub(crate) fn candidate(number: u32, name: &str, text: &str) -> Value {
        json!({"type": "training_candidate", "payload": {
            "candidate_id": number, "parents": [0], "epoch": 1, "rationale": null, "decision": "accepted",
            "prompts_changed": [{"name": name, "text": text, "diff": ""}],
            "reason": "", "n": 8, "mean_diff": 0.1, "created_at": "2026-11-26T09:00:00Z"
        }})
    }

    /// A checkpoint with a prompt `answer`.
    pub(crate) fn checkpoint(number: i64, text: &str) -> Value {
        json!({"type": "training_checkpoint", "payload": {
            "id": format!("id-{number}"), "workflow_id": "w", "config_version": number,
            "runnable_config": {"prompts": {"answer": {"text": text}, "tone": {"text": "Be kind."}}},
            "metrics": {"exact": 0.7}, "metadata": {"epoch": 2, "score": 0.7},
            "artifact_url": null, "is_best": true, "created_at": "2026-11-26T09:00:00Z"
        }})
    }

    /// A training result with the prompts `answer` and `tone`.
    pub(crate) fn result(outcome: &str, seed_vs_best: Value, answer: &str) -> Value {
        json!({"type": "training_result", "payload": {
            "summary": {"exact": 0.701}, "checkpoints": [], "best_checkpoint": null,
            "prompts": {"answer": answer, "tone": "Be kind."}, "stop_reason": "epochs",
            "outcome": outcome, "seed_vs_best": seed_vs_best,
            "usage": {
                "llm_calls": 12, "retries": 0, "cached_calls": 0, "lost_calls": 0, "input_tokens": 300,
                "output_tokens": 41, "cost_usd": 0.5, "estimated": false,
                "by_role": {"task": 10, "judge": 0, "optimizer": 2, "embedding": 0}
            }
        }})
    }

    #[test]
    fn changed_prompts_are_the_prompts_written_by_a_candidate() {
        let events = [
            candidate(1, "tone", "Be short."),
            candidate(2, "answer", "New."),
            result("improved", Value::Null, "New."),
        ];
        assert_eq!(findings(&events).changed_prompts(), [("answer", "New.")]);
        assert!(findings(&[result("no_headroom", Value::Null, "Old.")]).changed_prompts().is_empty());
    }

    #[test]
    fn the_returned_checkpoint_has_exactly_the_returned_prompts() {
        let with = |answer: &str| {
            let events = [
                checkpoint(4, "Old."),
                checkpoint(5, "New."),
                checkpoint(6, "Other."),
                result("improved", Value::Null, answer),
            ];
            findings(&events).returned_checkpoint().map(|checkpoint| checkpoint.config_version)
        };
        assert_eq!((with("New."), with("Newest.")), (Some(5), None));
    }

    #[test]
    fn checkpoints_with_the_same_texts_differ_by_their_demos() {
        let demos = json!([{"inputs": {"user": "u"}, "output": "o"}]);
        let with = |number: i64, demos: &Value| {
            let mut event = checkpoint(number, "New.");
            event["payload"]["runnable_config"]["prompts"]["answer"]["demos"] = demos.clone();
            event
        };
        let returned = |demos: &Value| {
            let mut result = result("improved", Value::Null, "New.");
            result["payload"]["demos"] = json!({"answer": demos});
            let other = json!([{"inputs": {}, "output": 1}]);
            let noted = json!([{"inputs": {"user": "u"}, "output": "o", "note": 1}]);
            let events = [checkpoint(1, "New."), with(2, &noted), with(3, &other), result];
            findings(&events).returned_checkpoint().map(|checkpoint| checkpoint.config_version)
        };
        assert_eq!((returned(&demos), returned(&json!([]))), (Some(2), Some(1)));
    }

    #[test]
    fn verdicts_are_counted_without_skipped_cases() {
        let case = |evaluations: Value| {
            json!({"type": "evaluation_progress", "payload": {
                "case_index": 0, "case_id": "0", "sample": 0, "inputs": {}, "output": null,
                "evaluations": evaluations, "metadata": {}, "duration_ms": 1, "cached": false,
                "progress": {"done": 1, "planned": 2, "running_mean": null, "best_score": null,
                             "cases_per_s": null, "eta_s": null, "llm_calls": 0, "cost": 0.0, "budget_left": null}
            }})
        };
        let found = findings(&[
            case(json!({"exact": {"score": 1.0, "passed": true}, "style": {"score": 0.2, "passed": false}})),
            case(json!({"exact": {"score": 0.0, "passed": false}, "style": {"passed": false, "skip": true}})),
        ]);
        assert_eq!(found.verdicts["exact"], VerdictCount { passed: 1, all: 2 });
        assert_eq!(found.verdicts["style"], VerdictCount { passed: 0, all: 1 });
    }
}
