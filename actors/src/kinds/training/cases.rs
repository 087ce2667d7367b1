//! Executes and judges one case, and stores the result together with its event.

use std::ops::Range;
use std::sync::Arc;

use engine::Activity;
use engine::ports::{Nowhere, Ports};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use store::batch::TrainingCaseRow;
use training::calls::{Role, Spent};
use training::evaluators::Verdict;
use training::optimize::{Candidate, JudgedRun, Phase, Round, Stop};
use training::{
    Aggregate, CaseContext, CaseError, CaseRun, StoredResult, case_score, details_json, judge,
    judge_recorded, run_case,
};
use wire::{CaseProblem, CaseProgress, EvaluationVerdict, TrainingEvent, TrainingKind, TrainingProgress};

use super::events::TrainingEvents;
use super::halt::Interruption;
use super::lab::ActorLab;
use super::session::read_result;
use crate::run::{Adapters, Reach};
use crate::text::json as text_of;

/// Maximum bytes of an output in an event.
const LARGEST_OUTPUT: usize = 64 << 10;
/// Maximum bytes of an evaluator's text in an event.
const LONGEST_REASON: usize = 2 << 10;
/// Maximum reused results announced per commit.
const ANNOUNCED: usize = 20;

/// Identifies a result: the candidate's number, the case's place, and the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultKey {
    pub(super) candidate: u32,
    pub(super) place: usize,
    pub(super) sample: u32,
}

impl ActorLab<'_> {
    /// Provides a case's ports. Its journal and output are separate from the run's.
    pub(super) async fn with_ports<R>(&self, work: impl AsyncFnOnce(Ports<'_>) -> R) -> R {
        let session = self.session;
        let reach = Reach {
            run: session.run,
            workspace: session.workspace,
            workflow: session.workflow,
            thread: None,
            app: None,
            account: None,
            shows_items: false,
        };
        let adapters = Adapters::new(reach, &session.ports);
        let activity = Activity::default();
        let ports = adapters.ports(&session.ports, &Nowhere, &Nowhere, &activity);
        let pinned = session.decided.pins.over(ports.workflows);
        work(Ports { workflows: &pinned, ..ports }).await
    }

    /// The sample numbers for each case.
    pub(super) fn samples_of(&self, round: Round) -> Range<u32> {
        // A recorded output is judged once.
        let repeats = if round.phase == Phase::Calibration { 1 } else { self.session.settings.repeats };
        round.first_sample..round.first_sample.saturating_add(repeats)
    }

    /// Executes a case once with a config, and stores the result. Returns after the commit.
    pub(super) async fn case(
        &self,
        candidate: &Candidate,
        config: &Map<String, Value>,
        place: usize,
        sample: u32,
        round: Round,
    ) -> Result<JudgedRun, Stop> {
        let session = self.session;
        let Some(case) = session.cases.get(place) else { return Err(Stop::Lost) };
        if let Some(origin) = &session.decided.origin {
            return self.judge_again(origin, case, place, sample, round).await;
        }
        let name = format!("{}-{}", candidate.number, case.index);
        let spent: Arc<Mutex<Spent>> = Arc::default();
        let scope = session.calls.scope(Role::Task, sample, name.clone()).counted_in(&spent);
        let done = self
            .with_ports(async |ports| {
                let recorded = case.recorded_output().filter(|_| round.phase == Phase::Calibration);
                let run = match recorded {
                    Some(output) => CaseRun::recorded(output),
                    None => {
                        let (plan, settings) = (&session.version.plan, &session.case_settings);
                        run_case(plan, config, case, settings, &scope, ports).await
                    }
                };
                let bench = session.bench(ports, sample, &name, &spent);
                let context = CaseContext {
                    split: session.split_of.get(place).copied(),
                    epoch: session.optimizer.is_some().then_some(round.epoch),
                };
                let evaluators = &session.evaluators;
                let verdicts = match recorded {
                    Some(_) => judge_recorded(evaluators, case, &run, context, &bench).await?,
                    None => judge(evaluators, case, &run, context, &bench).await?,
                };
                Some((run, verdicts))
            })
            .await;
        if session.calls.is_refused() {
            return Err(self.interrupt(Interruption::RateLimited));
        }
        let Some((run, verdicts)) = done else { return Err(Stop::Budget) };
        let spent = spent.lock().clone();
        self.progress.lock().used(&spent.used);
        if run.error.as_ref().is_some_and(CaseError::is_infrastructure) {
            let reason = run.error.as_ref().map(CaseError::message).unwrap_or_default();
            self.warn(
                "endpoint_failing",
                &format!("cases fail because of the service or an endpoint: {reason}"),
            )
            .await?;
        }
        self.warn_of_failing(&verdicts).await?;
        let key = ResultKey { candidate: candidate.number, place, sample };
        self.store(key, round, &run, &verdicts, spent).await?;
        Ok(JudgedRun { run: Arc::new(run.without_details()), verdicts })
    }

    /// Warns about an evaluator that itself fails: its scores are 0 whatever the prompts are.
    pub(super) async fn warn_of_failing(&self, verdicts: &[Verdict]) -> Result<(), Stop> {
        let judged = self.session.evaluators.iter().zip(verdicts);
        let failing =
            judged.filter_map(|(evaluator, verdict)| Some((&evaluator.id, verdict.error.as_ref()?)));
        for (id, error) in failing {
            let mut message = format!("the evaluator '{id}' fails; these cases score 0: {error}");
            message.truncate(message.floor_char_boundary(LONGEST_REASON));
            self.warn("evaluator_failing", &message).await?;
        }
        Ok(())
    }

    /// Commits a result with its event.
    pub(super) async fn store(
        &self,
        key: ResultKey,
        round: Round,
        run: &CaseRun,
        verdicts: &[Verdict],
        spent: Spent,
    ) -> Result<(), Stop> {
        let session = self.session;
        let ResultKey { candidate, place, sample } = key;
        let aggregate = session
            .optimizer
            .as_ref()
            .map_or(Aggregate::default(), |optimizer| optimizer.objective.aggregate);
        let scored = case_score(&session.evaluators, verdicts, aggregate);
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let answered = spent.answered;
        let result = StoredResult::from_run(run, verdicts.to_vec(), spent);
        let row = TrainingCaseRow {
            run_id: session.run,
            candidate: number(candidate),
            case_index: i32::try_from(place).unwrap_or(i32::MAX),
            sample: number(sample),
            phase: round.phase.as_str(),
            split: session.split_of.get(place).copied(),
            epoch: number(round.epoch),
            score: scored.score,
            passed: scored.passed,
            answered: i32::try_from(answered).unwrap_or(i32::MAX),
            result: text_of(&result),
            // Visitor content must remain erasable, so it stays in the dataset alone.
            details: session
                .cases
                .get(place)
                .filter(|case| !case.is_of_visitor())
                .and_then(|_| details_json(&run.trace)),
        };
        let usage = session.usage();
        let (progress, state) = {
            let now = self.now();
            let mut progress = self.progress.lock();
            progress.executed(candidate, round.phase, scored.score);
            let shown = progress.shown(now, &usage, session.calls.budget_left(), session.settings.max_active);
            let is_due = progress.is_due(now);
            let state = is_due.then(|| progress.state(now, session.ports.writer, shown.clone(), usage));
            (shown, state)
        };
        let event = self.progress_event(key, round, &result, progress, false);
        self.commit(|events: &mut TrainingEvents| {
            events.case(row);
            events.event(event);
            // Even if this life ends now, the row precedes all later ones.
            self.stored_now(candidate, place, sample);
            if let Some(state) = state {
                events.state(text_of(&state));
            }
        })
        .await
    }

    fn progress_event(
        &self,
        key: ResultKey,
        round: Round,
        result: &StoredResult,
        progress: TrainingProgress,
        cached: bool,
    ) -> TrainingEvent {
        let session = self.session;
        let ResultKey { candidate, place, sample } = key;
        let case = session.cases.get(place);
        let is_training = session.decided.kind == TrainingKind::Training;
        let shown_case = CaseProgress {
            case_index: u32::try_from(place).unwrap_or(u32::MAX),
            case_id: case.map(|case| case.id.clone()).unwrap_or_default(),
            epoch: is_training.then_some(round.epoch),
            // All cases in an evaluation score.
            split: Some(session.split_of.get(place).copied().unwrap_or(Phase::Val.as_str()).to_owned()),
            phase: Some(round.phase.as_str().to_owned()),
            candidate_id: (is_training && round.phase != Phase::Calibration).then_some(candidate),
            sample,
            inputs: case
                .map(|case| case.inputs(&session.case_settings.inputs))
                .and_then(shown)
                .unwrap_or_default(),
            output: shown(result.output.clone()).unwrap_or_default(),
            evaluations: evaluations(
                session.evaluators.iter().map(|it| it.id.as_str()),
                &result.verdicts,
                LONGEST_REASON,
            ),
            metadata: case
                .map(|case| case.metadata.clone())
                .and_then(shown)
                .map(Value::Object)
                .unwrap_or_default(),
            duration_ms: result.duration_ns / 1_000_000,
            error: result
                .error
                .as_ref()
                .map(|error| CaseProblem { code: error.code.clone(), message: error.message.clone() }),
            cached,
            progress,
        };
        match session.decided.kind {
            TrainingKind::Training => TrainingEvent::TrainingProgress(Box::new(shown_case)),
            TrainingKind::Evaluation => TrainingEvent::EvaluationProgress(Box::new(shown_case)),
        }
    }

    /// Announces reused results, once per candidate and epoch.
    pub(super) async fn announce(
        &self,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<(), Stop> {
        let session = self.session;
        let number = i32::try_from(candidate.number).unwrap_or(i32::MAX);
        let samples = round.first_sample..round.first_sample.saturating_add(session.settings.repeats);
        for (part, places) in places.chunks(ANNOUNCED).enumerate() {
            let mark = format!("reused {} {} {part}", round.epoch, candidate.number);
            if self.marks.lock().contains(&mark) {
                continue;
            }
            let cases: Vec<i32> =
                places.iter().map(|place| i32::try_from(*place).unwrap_or(i32::MAX)).collect();
            let read = || session.ports.store.case_results(session.run, number, &cases, false);
            let mut rows = session.writer.ask("results of cases", read).await;
            rows.sort_by_key(|row| (row.case_index, row.sample));
            let usage = session.usage();
            let (left, seconds) = (session.calls.budget_left(), session.settings.max_active);
            let shown = self.progress.lock().shown(self.now(), &usage, left, seconds);
            let mut events = Vec::new();
            for row in rows {
                let (Ok(place), Ok(sample)) = (usize::try_from(row.case_index), u32::try_from(row.sample))
                else {
                    continue;
                };
                let result = read_result(&row.result).filter(|_| samples.contains(&sample));
                let key = ResultKey { candidate: candidate.number, place, sample };
                let event =
                    |result: StoredResult| self.progress_event(key, round, &result, shown.clone(), true);
                events.extend(result.map(event));
            }
            self.once(mark, |into| events.into_iter().for_each(|event| into.event(event))).await?;
        }
        Ok(())
    }
}

/// A case value for an event; `None` if it is too large.
fn shown<T: serde::Serialize>(value: T) -> Option<T> {
    (text_of(&value).len() <= LARGEST_OUTPUT).then_some(value)
}

/// The verdicts by evaluator id, with texts of at most `longest` bytes.
pub(super) fn evaluations<'e>(
    ids: impl Iterator<Item = &'e str>,
    verdicts: &[Verdict],
    longest: usize,
) -> Map<String, Value> {
    let cut = |text: Option<String>| {
        text.map(|mut text| {
            text.truncate(text.floor_char_boundary(longest));
            text
        })
    };
    let shown = |(id, verdict): (&str, &Verdict)| {
        let Verdict { score, passed, reason, feedback, skip, error, .. } = verdict.clone();
        let verdict =
            EvaluationVerdict { score, passed, reason: cut(reason.or(feedback)), skip, error: cut(error) };
        (id.to_owned(), json!(verdict))
    };
    ids.zip(verdicts).map(shown).collect()
}
