//! How much a run will do and use, and the least budget that is of use. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, json};
use wire::FieldError;

use crate::calibration::calibration_places;
use crate::calls::{PricedModel, RunPrices, dollars};
use crate::case::Case;
use crate::estimate::{CallRange, calls_of_graph};
use crate::evaluators::Evaluator;
use crate::forecast::{AskedModels, CallsByRole, Estimate, Forecast, Known, Least};
use crate::node_texts::{NodeTexts, bytes_of};
use crate::optimize::{KEPT_FOR_DEMOS, LEAST_KEPT};
use crate::preflight::Start;
use crate::prices::{models_of_evaluators, models_of_graph, priced_model};
use crate::prompts::TrainablePrompt;
use crate::request::{CacheScope, Optimizer, OptimizerName, RunSettings};
use crate::splits::Splits;

/// Cases of the headroom test, and of the least useful budget.
const HEADROOM: u64 = 12;
/// Candidates of `fewshot`.
const SETS: u64 = 8;
/// Candidates that are executed on all scoring cases at the end.
const FINALISTS: u64 = 3;
/// Cases whose size is looked at.
const MEASURED: usize = 100;

impl Start<'_> {
    /// The calls of one case with its verdicts.
    #[must_use]
    pub fn calls_of_case(&self) -> CallRange {
        calls_of_graph(self.graph, self.resolution) + self.calls_of_verdicts()
    }

    fn calls_of_verdicts(&self) -> CallRange {
        let judged = self.workload.evaluators.iter().map(|evaluator| evaluator.calls(self.resolution));
        judged.fold(CallRange::exactly(0), |all, calls| all + calls)
    }

    /// The calls of judges about recorded outputs, before anything is executed.
    fn calls_of_calibration(&self) -> CallRange {
        let evaluators = &self.workload.evaluators;
        let places = count(calibration_places(self.cases, evaluators).len());
        let asking = evaluators.iter().filter(|evaluator| evaluator.asks_model());
        let calls = asking.map(|evaluator| evaluator.calls(self.resolution));
        let each = calls.fold(CallRange::exactly(0), |all, calls| all + calls);
        each.times(CallRange::exactly(places))
    }

    /// What an evaluation will cost.
    #[must_use]
    pub fn estimate_evaluation(&self, settings: &RunSettings, asked: &AskedModels<'_>) -> Estimate {
        let cases = CallRange::exactly(count(self.cases.len()).saturating_mul(u64::from(settings.repeats)));
        let none = CallRange::exactly(0);
        self.estimate(cases, none, &self.forecast(settings, &[], asked))
    }

    /// What a training will cost. At least: there is nothing to gain, which the headroom test finds.
    #[must_use]
    pub fn estimate_training(
        &self,
        optimizer: &Optimizer,
        (splits, trainable): (&Splits, &[TrainablePrompt]),
        asked: &AskedModels<'_>,
    ) -> Estimate {
        let repeats = u64::from(optimizer.settings.repeats);
        let (train, val, test) =
            (count(splits.train.len()), count(splits.val.len()), count(splits.test.len()));
        let minibatch = count(optimizer.minibatch_size).min(train).max(1);
        let proposals = match optimizer.name {
            OptimizerName::None => 0,
            OptimizerName::FewShot => SETS,
            _ => u64::from(optimizer.epochs).saturating_mul(train.div_ceil(minibatch)),
        };
        let once = |cases: u64| cases.saturating_mul(repeats);
        let prompts = count(trainable.len()).max(1);
        // At most a critique of each case and two attempts for each prompt.
        let most = prompts.saturating_mul(minibatch + 2);
        let proposal = match optimizer.name.asks_model() {
            true => CallRange { min: 1, expected: 1 + minibatch.div_ceil(2), max: Some(most) },
            false => CallRange::exactly(0),
        };
        // Half of the candidates are rejected by the first block of their race.
        let expected = val + proposals * (minibatch + val.div_ceil(2)) + FINALISTS * val + 2 * test;
        let max = val + proposals * (minibatch + val) + FINALISTS * val + 2 * test;
        let cases =
            CallRange { min: once(val.min(HEADROOM)), expected: once(expected), max: Some(once(max)) };
        let made = CallRange { min: 0, expected: proposals, max: Some(proposals) };
        let forecast = self.forecast(&optimizer.settings, trainable, asked);
        self.estimate(cases, proposal.times(made), &forecast)
    }

    fn estimate(&self, cases: CallRange, proposals: CallRange, forecast: &Forecast) -> Estimate {
        let tasks = calls_of_graph(self.graph, self.resolution).times(cases);
        let judges = self.calls_of_verdicts().times(cases) + self.calls_of_calibration();
        let calls =
            CallsByRole { task: tasks.expected, judge: judges.expected, optimizer: proposals.expected };
        forecast.estimate(cases, tasks + judges + proposals, calls)
    }

    /// What is known of the calls before they are made.
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
        let known = Known {
            nodes,
            case_bytes: measured().map(case_bytes).sum::<u64>() / count(measured().count()).max(1),
            evaluator_bytes: bytes_of(asked.evaluators) / judges,
            prompt_bytes: prompt_bytes / count(trainable.len()).max(1),
            concurrency: settings.concurrency,
        };
        let mut tasks = models_of_graph(self.graph, self.config);
        tasks.extend(self.resolution.models.iter().cloned());
        let judges = self.models_of_judges(asked);
        let optimizer = priced_model(asked.optimizer, &Map::new()).into_iter().collect();
        let prices: RunPrices = settings.models.prices();
        Forecast::of(&known, [&tasks, &judges, &optimizer], &prices)
    }

    fn models_of_judges(&self, asked: &AskedModels<'_>) -> BTreeSet<PricedModel> {
        let mut found = models_of_evaluators(asked.evaluators);
        let entries = asked.evaluators.as_array().into_iter().flatten();
        let asking = |it: &Evaluator| it.calls(self.resolution).max != Some(0);
        for (evaluator, entry) in self.workload.evaluators.iter().zip(entries).filter(|(it, _)| asking(it)) {
            if !evaluator.workflows().is_empty() {
                found.extend(self.resolution.models.iter().cloned());
            } else if models_of_evaluators(entry).is_empty() {
                found.extend(priced_model(asked.judge, &Map::new()));
            }
        }
        found
    }

    /// Notes a budget that cannot pay for the seed on the scoring cases, one proposal and its race.
    pub fn check_budget(
        &self,
        optimizer: &Optimizer,
        (splits, trainable): (&Splits, &[TrainablePrompt]),
        asked: &AskedModels<'_>,
        at: &str,
        problems: &mut Vec<FieldError>,
    ) {
        if optimizer.name == OptimizerName::None {
            return;
        }
        let keeps_demos =
            optimizer.name == OptimizerName::Auto && trainable.iter().any(|prompt| prompt.demos_trainable);
        let kept_for_demos = if keeps_demos { KEPT_FOR_DEMOS } else { 0 };
        let settings = &optimizer.settings;
        // Answers of earlier runs are free.
        if settings.cache == CacheScope::Workflow {
            return;
        }
        let val = count(splits.val.len()).min(HEADROOM);
        let calls = self.fewest_calls(optimizer, splits);
        if let Some(limit) = settings.limits.max_llm_calls {
            let all = calls.task.saturating_add(calls.judge).saturating_add(calls.optimizer);
            let usable = 1_000 - LEAST_KEPT - kept_for_demos;
            let least = all.saturating_mul(1_000).div_ceil(usable);
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

    /// Calls that are certain for the seed on scoring cases, at most those of the headroom test, one proposal and its race on the same
    /// cases. Equal requests share an answer: different cases count, and a candidate's case is one call, since it may share the others.
    fn fewest_calls(&self, optimizer: &Optimizer, splits: &Splits) -> CallsByRole {
        let scoring = self.different(splits.val.iter().take(count_of(HEADROOM)));
        let known = self.different(&splits.val);
        let fresh = self.different(&splits.train).difference(&known).count();
        // However a minibatch is drawn: only so many of its cases may be known, or equal to others.
        let others = splits.train.len().saturating_sub(fresh);
        let minibatch = optimizer.minibatch_size.min(splits.train.len()).saturating_sub(others);
        let executes = matches!(
            optimizer.name,
            OptimizerName::TextGrad | OptimizerName::Gepa | OptimizerName::Auto | OptimizerName::FewShot
        );
        let minibatch = if executes { count(minibatch) } else { 0 };
        let repeats = u64::from(optimizer.settings.repeats);
        let (seed, scoring) = (count(scoring.len()) + minibatch, count(scoring.len()));
        let each = calls_of_graph(self.graph, self.resolution).min;
        let each = if self.has_mocks() { 0 } else { each };
        let task = each.saturating_mul(seed).saturating_add(each.min(1).saturating_mul(scoring));
        CallsByRole {
            task: task.saturating_mul(repeats),
            // Judges of equal outputs share an answer, too.
            judge: self.calls_of_verdicts().min,
            optimizer: u64::from(optimizer.name.asks_model()),
        }
    }

    /// What tells the requests of these cases apart.
    fn different<'p>(&self, places: impl IntoIterator<Item = &'p usize>) -> BTreeSet<String> {
        let cases = places.into_iter().filter_map(|place| self.cases.get(*place));
        let sent = cases.map(|case| {
            let of = |name: &str| case.metadata.get(name);
            json!([case.inputs, of("messages"), of("answers")]).to_string()
        });
        sent.collect()
    }

    /// Whether a node may have a result without being executed.
    fn has_mocks(&self) -> bool {
        self.workload.mocks.is_some() || self.cases.iter().any(|case| case.mocks().is_some())
    }
}

/// A limit that pays for nothing.
struct Pointless<'a> {
    /// Where the budget is in the request.
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
            "{limit} {unit} cannot pay for the seed on {cases} cases, one proposal and its race; the least useful budget is {least}"
        );
        let problem = FieldError::new(format!("{at}/{name}"), "budget_pointless", message);
        problem.suggest(format!("\"{name}\": {least}"))
    }
}

/// Of what templates read of a case.
fn case_bytes(case: &Case) -> u64 {
    let inputs: u64 = case.inputs.values().map(bytes_of).sum();
    inputs.saturating_add(case.metadata.get("messages").map_or(0, bytes_of))
}

/// `parts`: how many of the last digit are one.
fn rounded_up(number: f64, parts: f64) -> f64 {
    (number * parts).ceil() / parts
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn count_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
