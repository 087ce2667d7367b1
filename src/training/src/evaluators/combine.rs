//! Evaluators that combine other evaluators.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::FieldError;

use super::bench::{Bench, BenchError};
use super::builtin;
use super::config::{Config, POSITIVE};
use super::judge::Judging;
use super::subject::Subject;
use super::verdict::Verdict;

/// Maximum nesting depth, and maximum evaluators per list.
const DEPTH: u32 = 4;
const MOST: usize = 20;

/// The rule that combines verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The lowest score.
    All,
    /// The highest score.
    Any,
    /// The weighted mean.
    Weighted,
}

/// `all`, `any`, `weighted`.
pub(super) struct Combined {
    rule: Rule,
    parts: Vec<(f64, Judging)>,
}

impl Combined {
    pub(super) fn read(config: &mut Config<'_, '_>, rule: Rule, depth: u32) -> Option<Self> {
        let pointer = config.at("evaluators");
        let entries = match config.value("evaluators") {
            Some(Value::Array(entries)) if (1..=MOST).contains(&entries.len()) && depth < DEPTH => entries,
            _ => {
                config.note(
                    "evaluators",
                    "type",
                    format!("must be a list of 1 to {MOST} evaluators, at most {DEPTH} in one another"),
                );
                return None;
            }
        };
        let mut parts = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            parts.push(read_part(entry, format!("{pointer}/{index}"), config.problems(), depth));
        }
        let parts: Option<Vec<_>> = parts.into_iter().collect();
        Some(Self { rule, parts: parts? })
    }
}

fn read_part(
    entry: &Value,
    pointer: String,
    problems: &mut Vec<FieldError>,
    depth: u32,
) -> Option<(f64, Judging)> {
    let mut fields = Config::from_value(pointer, entry, problems)?;
    let weight = fields.number("weight", POSITIVE).unwrap_or(1.0);
    let (entrypoint, config) = (fields.text("entrypoint"), fields.value("config"));
    let (entrypoint_at, config_at) = (fields.at("entrypoint"), fields.at("config"));
    fields.finish();
    let judging = builtin::read(entrypoint?, config, entrypoint_at, config_at, problems, depth + 1)?;
    Some((weight, judging))
}

impl Combined {
    pub(super) fn parts(&self) -> impl Iterator<Item = &Judging> {
        self.parts.iter().map(|(_, part)| part)
    }

    pub(super) async fn judge(
        &self,
        subject: &Subject<'_>,
        threshold: Option<f64>,
        bench: &dyn Bench,
    ) -> Result<Verdict, BenchError> {
        let mut verdicts: Vec<(f64, Verdict)> = Vec::with_capacity(self.parts.len());
        for (weight, part) in &self.parts {
            verdicts.push((*weight, part.judge(subject, None, bench).await?));
        }
        // Parts that skip this case do not count.
        if verdicts.iter().all(|(_, verdict)| verdict.skip) {
            return Ok(Verdict { skip: true, ..Verdict::passed(false) });
        }
        verdicts.retain(|(_, verdict)| !verdict.skip);
        let scores = || verdicts.iter().map(|(_, verdict)| verdict.score);
        let passed = || verdicts.iter().map(|(_, verdict)| verdict.passed);
        let verdict = match self.rule {
            Rule::All => Verdict {
                passed: passed().all(|passed| passed),
                ..Verdict::from_score(scores().fold(1.0, f64::min), 1.0)
            },
            Rule::Any => Verdict {
                passed: passed().any(|passed| passed),
                ..Verdict::from_score(scores().fold(0.0, f64::max), 1.0)
            },
            Rule::Weighted => {
                let all: f64 = verdicts.iter().map(|(weight, _)| weight).sum();
                let sum: f64 = verdicts.iter().map(|(weight, verdict)| weight * verdict.score).sum();
                Verdict::from_score(if all > 0.0 { sum / all } else { 0.0 }, threshold.unwrap_or(0.5))
            }
        };
        if verdict.score >= 1.0 {
            return Ok(verdict);
        }
        let join = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(" "));
        let (mut reasons, mut feedback, mut targets) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (_, part) in verdicts {
            reasons.extend(part.reason);
            feedback.extend(part.feedback);
            targets.extend(part.targets);
        }
        Ok(Verdict { reason: join(reasons), feedback: join(feedback), targets, ..verdict })
    }
}
