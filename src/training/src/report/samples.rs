//! Test data: a small training.

use std::collections::BTreeMap;

use serde_json::{Map, json};
use wire::{
    CallUsage, CandidateRecord, CheckpointSummary, DatasetUsed, EpochComplete, RoleCalls, ScorePair,
    SeedVsBest, SplitRecord, TrainingKind, TrainingNotice, TrainingProgress, TrainingRecord, TrainingResult,
    TrainingState,
};

use super::data::ReportData;
use super::model::CurvePoint;

/// Breaks out of every format that does not escape or replace it.
pub(super) const HOSTILE: &str = "</style></pre></svg><script>alert(1)</script><a href=\"javascript:x\">&amp;'\u{0}\u{1b}[31m\u{202e}\u{85}\r]]>-->";

pub(super) fn epoch(epoch: u32, score: f64, best_score: f64) -> EpochComplete {
    EpochComplete {
        epoch,
        summary: Map::new(),
        score,
        best_score,
        pass_rate: 0.5,
        usage: CallUsage::default(),
        wall_s: 1.0,
    }
}

pub(super) fn points(count: u32) -> Vec<CurvePoint> {
    let score = |epoch: u32| f64::from(epoch * 7 % 11) / 10.0;
    let best = |epoch: u32| (1..=epoch).map(score).fold(0.0, f64::max);
    (1..=count).map(|epoch| CurvePoint { epoch, score: score(epoch), best_score: best(epoch) }).collect()
}

pub(super) fn candidate(candidate_id: u32, decision: &str) -> CandidateRecord {
    CandidateRecord {
        candidate_id,
        parents: vec![0],
        epoch: 1,
        prompts_changed: Vec::new(),
        rationale: None,
        decision: decision.into(),
        reason: "better on every case".into(),
        n: 8,
        mean_diff: 0.1,
        created_at: "2026-01-01T00:00:00Z".into(),
    }
}

pub(super) fn usage() -> CallUsage {
    CallUsage {
        llm_calls: 1_240,
        retries: 2,
        cached_calls: 310,
        lost_calls: 0,
        input_tokens: 1_048_576,
        output_tokens: 65_536,
        cost_usd: 1.234,
        estimated: true,
        by_role: RoleCalls { task: 1_000, judge: 200, optimizer: 40, embedding: 0 },
    }
}

fn record() -> TrainingRecord {
    TrainingRecord {
        id: "0197a000-0000-7000-8000-000000000001".into(),
        kind: TrainingKind::Training,
        workflow_id: "0197a000-0000-7000-8000-0000000000aa".into(),
        version: Some(3),
        version_id: "0197a000-0000-7000-8000-0000000000bb".into(),
        status: TrainingState::Running,
        optimizer: json!({"name": "textgrad", "epochs": 3, "seed": 0, "models": {"judge": {"model": "m"}}, "patience": null}),
        dataset: DatasetUsed { id: None, version: None, n_cases: 6, fingerprint: "ab".repeat(32) },
        progress: TrainingProgress::default(),
        best_score: Some(0.64),
        best_checkpoint: None,
        stop_reason: None,
        outcome: None,
        usage: CallUsage { llm_calls: 100, ..CallUsage::default() },
        error: None,
        origin_run_id: None,
        created_at: "2026-01-01T00:00:00Z".into(),
        started_at: Some("2026-01-01T00:00:01Z".into()),
        finished_at: None,
    }
}

fn texts(system: &str) -> BTreeMap<String, String> {
    [("greeting", "Hello."), ("system", system)].map(|(name, text)| (name.into(), text.into())).into()
}

/// A running training after three epochs.
pub(super) fn running() -> ReportData {
    ReportData {
        record: record(),
        workflow_name: None,
        dataset_name: None,
        distribution: Vec::new(),
        splits: Some(SplitRecord {
            train: vec![0, 1, 2],
            val: vec![3, 4],
            test: vec![5],
            test_estimate: Some("split".into()),
        }),
        epochs: vec![epoch(1, 0.52, 0.52), epoch(2, 0.61, 0.61), epoch(3, 0.64, 0.64)],
        candidates: vec![candidate(1, "accepted"), candidate(2, "rejected"), candidate(3, "accepted")],
        checkpoints: vec![CheckpointSummary {
            id: "0197a000-0000-7000-8000-0000000000cc".into(),
            config_version: 7,
            epoch: 3,
            score: 0.64,
            is_best: true,
        }],
        result: None,
        evaluation: None,
        warnings: vec![TrainingNotice {
            code: "prompt_unread".into(),
            message: "No node reads \"footer\".".into(),
        }],
        seed_prompts: texts("You answer.\nBe nice."),
        returned_prompts: BTreeMap::new(),
        judges: Vec::new(),
    }
}

/// A training that ended with this outcome.
pub(super) fn ended(outcome: &str, stop_reason: &str, seed_vs_best: Option<SeedVsBest>) -> ReportData {
    let mut data = running();
    data.record.status = TrainingState::Succeeded;
    data.record.finished_at = Some("2026-01-01T00:10:00Z".into());
    data.returned_prompts = data.seed_prompts.clone();
    data.result = Some(TrainingResult {
        summary: Map::new(),
        checkpoints: data.checkpoints.clone(),
        best_checkpoint: None,
        prompts: Map::new(),
        demos: Map::new(),
        stop_reason: stop_reason.into(),
        outcome: outcome.into(),
        seed_vs_best,
        usage: usage(),
    });
    data
}

pub(super) fn compared(seed: f64, diff: f64, ci95: [f64; 2]) -> SeedVsBest {
    SeedVsBest { val: ScorePair { seed, best: seed + diff }, test: None, diff, ci95, z: diff / 0.04, n: 24 }
}

/// A training that found better prompts.
pub(super) fn improved() -> ReportData {
    let mut data = ended("improved", "epochs", Some(compared(0.52, 0.12, [0.04, 0.2])));
    data.returned_prompts = texts("You answer.\nBe brief.\nQuote the source.");
    data
}

/// A report with hostile texts everywhere, a very long name and a very long line.
pub(super) fn hostile() -> ReportData {
    let mut data = improved();
    let long = format!("{HOSTILE}{}", "x".repeat(5_000));
    data.record.id = HOSTILE.into();
    data.record.workflow_id = long.clone();
    data.record.optimizer = json!({"name": HOSTILE, HOSTILE: HOSTILE});
    data.record.dataset.id = Some(HOSTILE.into());
    data.record.dataset.fingerprint = HOSTILE.into();
    data.record.created_at = HOSTILE.into();
    data.record.started_at = Some(long.clone());
    data.warnings = vec![TrainingNotice { code: HOSTILE.into(), message: long.clone() }];
    data.seed_prompts = [(HOSTILE.to_owned(), format!("{HOSTILE}\n\n{HOSTILE}\n日本語{long}"))].into();
    data.returned_prompts =
        [(HOSTILE.to_owned(), format!("{long}\n\n{HOSTILE}")), (long.clone(), HOSTILE.to_owned())].into();
    data.judges = vec![super::model::JudgeCalibration {
        evaluator: long.clone(),
        kappa: f64::NAN,
        ci95: [f64::NEG_INFINITY, f64::INFINITY],
        n: u64::MAX,
    }];
    for checkpoint in &mut data.checkpoints {
        checkpoint.id.clone_from(&long);
        checkpoint.config_version = i64::MIN;
        checkpoint.epoch = u32::MAX;
        checkpoint.score = 1e300;
    }
    if let Some(result) = &mut data.result {
        result.outcome = HOSTILE.into();
        result.stop_reason = HOSTILE.into();
        result.usage.cost_usd = f64::MAX;
        result.usage.input_tokens = u64::MAX;
    }
    data
}

/// Asserts that elements are closed in order, and returns all their names; panics otherwise.
pub(super) fn elements(document: &str) -> Vec<String> {
    let (mut open, mut all, mut rest) = (Vec::new(), Vec::new(), document);
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a stray > in {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None => {
                let name = tag.split([' ', '/']).next().unwrap().to_owned();
                all.push(name.clone());
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, [""; 0]);
    all
}
