//! Planning: a run's expected work and usage, and its smallest useful budget. Pure.

use std::collections::BTreeSet;

use ring::digest::{SHA256, digest};
use serde_json::{Map, json};
use wire::FieldError;

use crate::calibration::calibration_places;
use crate::calls::{BudgetLimits, PricedModel, RunPrices, dollars};
use crate::case::Case;
use crate::course::{Course, least_limit};
use crate::estimate::{CallRange, calls_of_graph};
use crate::evaluators::Evaluator;
use crate::forecast::{AskedModels, CallsByRole, Estimate, Forecast, Least, UsageFactors};
use crate::node_texts::{NodeTexts, bytes_of};
use crate::optimize::{HEADROOM, KEPT_FOR_DEMOS, LEAST_KEPT, kept_of, reserved_cases};
use crate::preflight::Start;
use crate::prices::{models_of_evaluators, priced_model};
use crate::prompts::TrainablePrompt;
use crate::request::{CacheScope, Optimizer, OptimizerName, RunSettings};
use crate::splits::Splits;

/// Maximum cases sampled for the mean case size.
const MEASURED: usize = 100;

impl Start<'_> {
    /// The calls for one case, including its verdicts.
    #[must_use]
    pub fn calls_of_case(&self) -> CallRange {
        calls_of_graph(self.graph, self.resolution) + self.calls_of_verdicts()
    }

    fn calls_of_verdicts(&self) -> CallRange {
        let judged = self.workload.evaluators.iter().map(|evaluator| evaluator.calls(self.resolution));
        judged.fold(CallRange::exactly(0), |all, calls| all + calls)
    }

    /// The judges' calls about recorded outputs, before any execution.
    fn calls_of_calibration(&self) -> CallRange {
        let evaluators = &self.workload.evaluators;
        let places = count(calibration_places(self.cases, evaluators).len());
        let asking = evaluators.iter().filter(|evaluator| evaluator.asks_model());
        let calls = asking.map(|evaluator| evaluator.calls(self.resolution));
        let each = calls.fold(CallRange::exactly(0), |all, calls| all + calls);
        each.times(CallRange::exactly(places))
    }

    /// Estimates an evaluation.
    #[must_use]
    pub fn estimate_evaluation(&self, settings: &RunSettings, asked: &AskedModels<'_>) -> Estimate {
        let cases = CallRange::exactly(count(self.cases.len()).saturating_mul(u64::from(settings.repeats)));
        let none = CallRange::exactly(0);
        let estimate = self.estimate(cases, none, &self.forecast(settings, &[], asked));
        estimate.within(settings.limits, settings.max_active)
    }

    /// Estimates a training. The minimum assumes that the headroom test finds no possible gain.
    #[must_use]
    pub fn estimate_training(
        &self,
        optimizer: &Optimizer,
        splits: &Splits,
        trainable: &[TrainablePrompt],
        asked: &AskedModels<'_>,
    ) -> Estimate {
        let course = self.course(optimizer, splits, trainable);
        let repeats = CallRange::exactly(u64::from(optimizer.settings.repeats));
        let forecast = self.forecast(&optimizer.settings, trainable, asked);
        let estimate = self.estimate(course.cases().times(repeats), course.questions(), &forecast);
        estimate.within(optimizer.settings.limits, optimizer.settings.max_active)
    }

    fn course(&self, optimizer: &Optimizer, splits: &Splits, trainable: &[TrainablePrompt]) -> Course {
        let trains_demos = trainable.iter().any(|prompt| prompt.demos_trainable);
        let executes_again = self.workload.evaluators.iter().any(Evaluator::asks_model);
        Course::new(optimizer, splits, trainable.len(), trains_demos, executes_again)
    }

    fn estimate(&self, cases: CallRange, proposals: CallRange, forecast: &Forecast) -> Estimate {
        let tasks = calls_of_graph(self.graph, self.resolution).times(cases);
        let judges = self.calls_of_verdicts().times(cases) + self.calls_of_calibration();
        let calls =
            CallsByRole { task: tasks.expected, judge: judges.expected, optimizer: proposals.expected };
        forecast.estimate(cases, tasks + judges + proposals, calls)
    }

    /// Forecasts the usage per call before any call is made.
    fn forecast(
        &self,
        settings: &RunSettings,
        trainable: &[TrainablePrompt],
        asked: &AskedModels<'_>,
    ) -> Forecast {
        let mut nodes = NodeTexts::default();
        nodes.add(self.graph, self.config);
        self.resolution.graphs().for_each(|graph| nodes.add(graph, &Map::new()));
        let measured = || self.cases.iter().take(MEASURED);
        let judges = count(self.workload.evaluators.iter().filter(|it| it.asks_model()).count()).max(1);
        let prompt_bytes: u64 = trainable.iter().map(|prompt| count(prompt.seed.len())).sum();
        let factors = UsageFactors {
            nodes,
            case_bytes: measured().map(case_bytes).sum::<u64>() / count(measured().count()).max(1),
            evaluator_bytes: bytes_of(asked.evaluators) / judges,
            prompt_bytes: prompt_bytes / count(trainable.len()).max(1),
            concurrency: settings.concurrency,
        };
        let tasks = self.models_of_tasks();
        let judges = self.models_of_judges(asked);
        let optimizer = priced_model(asked.optimizer, &Map::new()).into_iter().collect();
        let prices: RunPrices = settings.models.prices();
        Forecast::new(&factors, [&tasks, &judges, &optimizer], &prices)
    }

    fn models_of_judges(&self, asked: &AskedModels<'_>) -> BTreeSet<PricedModel> {
        let mut found = models_of_evaluators(asked.evaluators);
        let entries = asked.evaluators.as_array().into_iter().flatten();
        let asking = |it: &Evaluator| it.calls(self.resolution).max != Some(0);
        for (evaluator, entry) in self.workload.evaluators.iter().zip(entries).filter(|(it, _)| asking(it)) {
            let workflows = evaluator.workflows();
            if !workflows.is_empty() {
                found.extend(self.resolution.models_of(workflows));
            } else if models_of_evaluators(entry).is_empty() {
                found.extend(priced_model(asked.judge, &Map::new()));
            }
        }
        found
    }

    /// Reports a budget that cannot pay for the seed on the scoring cases, one proposal and its race.
    pub fn check_budget(
        &self,
        optimizer: &Optimizer,
        splits: &Splits,
        trainable: &[TrainablePrompt],
        asked: &AskedModels<'_>,
        at: &str,
        problems: &mut Vec<FieldError>,
    ) {
        if optimizer.name == OptimizerName::None {
            return;
        }
        let settings = &optimizer.settings;
        let has_limit = settings.limits != BudgetLimits::default() || settings.max_active.is_some();
        // Answers from earlier runs are free.
        if !has_limit || settings.cache == CacheScope::Workflow {
            return;
        }
        let course = self.course(optimizer, splits, trainable);
        let kept_for_demos = if course.keeps_demos() { KEPT_FOR_DEMOS } else { 0 };
        let val = course.headroom();
        let calls = self.fewest_calls(optimizer, splits, course);
        if let Some(limit) = settings.limits.max_llm_calls {
            let all = calls.task.saturating_add(calls.judge).saturating_add(calls.optimizer);
            let of_final = reserved_cases(optimizer, splits).saturating_mul(self.calls_of_case().expected);
            let least = least_limit(all, |limit| kept_of(of_final, Some(limit)) + kept_for_demos);
            let budget = Pointless { at, name: "max_llm_calls", unit: "calls", cases: val };
            problems.extend((limit < least).then(|| budget.problem(limit, least)));
        }
        let forecast = self.forecast(settings, trainable, asked);
        let Least { tokens, dollars: money, seconds } = forecast.least(calls, LEAST_KEPT + kept_for_demos);
        if let Some(limit) = settings.limits.max_tokens.filter(|limit| *limit < tokens) {
            let budget = Pointless { at, name: "max_tokens", unit: "tokens", cases: val };
            problems.push(budget.problem(limit, tokens));
        }
        let limits = settings.limits.max_cost.map(dollars).zip(money);
        if let Some((limit, money)) = limits.filter(|(limit, money)| limit < money) {
            let budget = Pointless { at, name: "max_cost", unit: "dollars", cases: val };
            problems.push(budget.problem(limit, rounded_up(money, 1e6)));
        }
        let limit = settings.max_active.map(|limit| limit.as_secs_f64());
        if let Some(limit) = limit.filter(|limit| *limit < seconds) {
            let budget = Pointless { at, name: "max_seconds", unit: "seconds", cases: val };
            problems.push(budget.problem(limit, rounded_up(seconds, 10.0)));
        }
    }

    /// The fewest calls for the seed on scoring cases (at most the headroom cases), one proposal and its race on the
    /// same cases. Only distinct cases count, because equal requests share an answer.
    fn fewest_calls(&self, optimizer: &Optimizer, splits: &Splits, course: Course) -> CallsByRole {
        let scoring = self.different(splits.val.iter().take(HEADROOM));
        let others = count(self.different(&splits.train).difference(&scoring).count());
        let scored = count(scoring.len());
        let seed = scored.saturating_mul(course.headrooms()) + course.gathered().min(others);
        let repeats = u64::from(optimizer.settings.repeats);
        let cases = seed.saturating_add(scored).saturating_mul(repeats);
        let each = if self.has_mocks() { 0 } else { calls_of_graph(self.graph, self.resolution).min };
        CallsByRole {
            task: each.saturating_mul(cases),
            judge: self
                .calls_of_verdicts()
                .min
                .saturating_mul(cases)
                .saturating_add(self.calls_of_calibration().min),
            optimizer: course.first_questions(),
        }
    }

    /// SHA-256 digests over the case content that makes requests differ.
    fn different<'p>(&self, places: impl IntoIterator<Item = &'p usize>) -> BTreeSet<Vec<u8>> {
        let cases = places.into_iter().filter_map(|place| self.cases.get(*place));
        let sent = cases.map(|case| {
            let of = |name: &str| case.metadata.get(name);
            let text = json!([case.inputs, of("messages"), of("answers")]).to_string();
            digest(&SHA256, text.as_bytes()).as_ref().to_vec()
        });
        sent.collect()
    }

    /// Whether any node may have a result without being executed.
    fn has_mocks(&self) -> bool {
        self.workload.mocks.is_some() || self.cases.iter().any(|case| case.mocks().is_some())
    }
}

/// A budget limit that is too low to be useful.
struct Pointless<'a> {
    /// The JSON pointer to the budget in the request.
    at: &'a str,
    name: &'static str,
    unit: &'static str,
    /// Scoring cases.
    cases: u64,
}

impl Pointless<'_> {
    fn problem<T: std::fmt::Display>(&self, limit: T, least: T) -> FieldError {
        let Self { at, name, unit, cases } = self;
        let message = format!(
            "{limit} {unit} cannot pay for the seed on {cases} cases, one proposal and its race; the smallest useful budget is {least}"
        );
        let problem = FieldError::new(format!("{at}/{name}"), "budget_pointless", message);
        problem.suggest(format!("\"{name}\": {least}"))
    }
}

/// Bytes that templates read from a case.
fn case_bytes(case: &Case) -> u64 {
    let inputs: u64 = case.inputs.values().map(bytes_of).sum();
    inputs.saturating_add(case.metadata.get("messages").map_or(0, bytes_of))
}

/// Rounds up to a multiple of `1 / parts`.
fn rounded_up(number: f64, parts: f64) -> f64 {
    (number * parts).ceil() / parts
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
