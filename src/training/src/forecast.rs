//! Forecasts call usage before any call: tokens from text sizes, dollars from known prices, seconds from assumed
//! durations. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use models::Price;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::calls::{BudgetLimits, PricedModel, RunPrices, dollars};
use crate::estimate::CallRange;
use crate::node_texts::{NodeTexts, RESERVED};
use crate::numbers::float;

/// Bytes per token.
const TOKEN: u64 = 4;
/// Bytes per token in the minimum usage: endpoints count fewer tokens than expected.
const LEAST_TOKEN: u64 = 8;
/// Answer tokens, unless the limit is lower: for a task, a judge and a proposal.
const ANSWERS: [u64; 3] = [256, 128, 512];
/// Instruction bytes of a judge, and bytes that a proposal reads in addition to the prompt: cases with outputs and
/// verdicts.
const INSTRUCTIONS: [u64; 2] = [1_000, 8_000];
/// Seconds per call: expected, and minimum.
const SECONDS: [f64; 2] = [2.0, 0.05];
/// Seconds per practice model call without a pace.
const PRACTICE_SECONDS: f64 = 0.01;

/// The estimated cost before a run's first call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Case executions.
    pub cases: CallRange,
    /// Requests to models in all roles.
    pub llm_calls: CallRange,
    /// Expected tokens that models read and write.
    pub tokens: u64,
    /// Expected cost in US dollars; `None` if a model's price is unknown.
    pub cost_usd: Option<f64>,
    /// Expected active seconds: all calls at their assumed durations, divided by the run's concurrency.
    pub seconds: f64,
}

impl Estimate {
    /// The same run if it ends when its budget is spent.
    #[must_use]
    pub(crate) fn within(self, limits: BudgetLimits, max_active: Option<Duration>) -> Self {
        let paid = |limit: Option<f64>, expected: f64| limit.map_or(1.0, |limit| (limit / expected).min(1.0));
        let part = [
            paid(limits.max_llm_calls.map(number), number(self.llm_calls.expected)),
            paid(limits.max_tokens.map(number), number(self.tokens)),
            paid(limits.max_cost.map(dollars), self.cost_usd.unwrap_or_default()),
            paid(max_active.map(|limit| limit.as_secs_f64()), self.seconds),
        ];
        let part = part.into_iter().fold(1.0, f64::min);
        let CallRange { min, expected, max } = self.llm_calls;
        let limit = limits.max_llm_calls.unwrap_or(u64::MAX);
        let calls = share(expected, part);
        let cases = share(self.cases.expected, part);
        Self {
            cases: CallRange { min: self.cases.min.min(cases), expected: cases, ..self.cases },
            llm_calls: CallRange {
                min: min.min(calls),
                expected: calls,
                max: limits.max_llm_calls.map_or(max, |_| Some(max.unwrap_or(limit).min(limit))),
            },
            tokens: share(self.tokens, part),
            cost_usd: self.cost_usd.map(|cost| models::rounded(cost * part)),
            seconds: (self.seconds * part * 100.0).round() / 100.0,
        }
    }
}

/// Multiplies a count by `part`, rounded to millionths.
fn share(count: u64, part: f64) -> u64 {
    if part >= 1.0 {
        return count;
    }
    let millionths = format!("{:.0}", part * 1e6).parse::<u128>().unwrap_or_default();
    u64::try_from(u128::from(count) * millionths / 1_000_000).unwrap_or(u64::MAX)
}

/// The models that a run uses in addition to its graph's models.
#[derive(Debug, Clone, Copy)]
pub struct AskedModels<'a> {
    /// The evaluators as in the request.
    pub evaluators: &'a Value,
    /// The judge model, as node fields, for evaluators that name none.
    pub judge: &'a Map<String, Value>,
    /// The proposing model, as node fields.
    pub optimizer: &'a Map<String, Value>,
}

/// Calls for cases, verdicts and proposals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallsByRole {
    pub(crate) task: u64,
    pub(crate) judge: u64,
    pub(crate) optimizer: u64,
}

/// The minimum usage for a set of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Least {
    pub(crate) tokens: u64,
    /// `None`: a model's price is unknown.
    pub(crate) dollars: Option<f64>,
    pub(crate) seconds: f64,
}

/// The factors that determine the usage per call: text sizes and concurrency.
#[derive(Debug, Clone, Default)]
pub(crate) struct UsageFactors {
    /// The texts in nodes that ask a model.
    pub(crate) nodes: NodeTexts,
    /// Mean bytes that a case contributes.
    pub(crate) case_bytes: u64,
    /// Mean config bytes per evaluator that asks a model.
    pub(crate) evaluator_bytes: u64,
    /// Mean bytes per trained prompt.
    pub(crate) prompt_bytes: u64,
    /// Maximum concurrent calls.
    pub(crate) concurrency: usize,
}

/// The usage per call in one role.
#[derive(Debug, Clone, Copy, Default)]
struct RoleCall {
    input: u64,
    output: u64,
    /// Minimum tokens read.
    least: u64,
    /// Tokens reserved for the answer.
    reserved: u64,
    /// Expected, and minimum.
    seconds: [f64; 2],
    /// Dollars per million tokens, read and written: mean and lowest price each.
    prices: Option<[[f64; 2]; 2]>,
}

/// Forecasts a run's call usage.
#[derive(Debug)]
pub(crate) struct Forecast {
    roles: [RoleCall; 3],
    concurrency: f64,
}

impl Forecast {
    /// `models`: for cases, verdicts and proposals.
    pub(crate) fn new(
        factors: &UsageFactors,
        models: [&BTreeSet<PricedModel>; 3],
        prices: &RunPrices,
    ) -> Self {
        let [task_answer, judge_answer, optimizer_answer] = ANSWERS;
        let [judging, proposing] = INSTRUCTIONS;
        let [of_tasks, of_judges, of_optimizer] = models;
        let nodes = &factors.nodes;
        let prompt = factors.prompt_bytes;
        let call = |(input, least): (u64, u64), (output, reserved): (u64, u64), models| RoleCall {
            input: tokens(input),
            least: least / LEAST_TOKEN,
            output,
            reserved,
            seconds: seconds_of(models),
            prices: prices_of(models, prices),
        };
        let roles = [
            call(
                (nodes.mean(nodes.bytes) + factors.case_bytes, nodes.least.unwrap_or_default()),
                (nodes.answer(task_answer), nodes.least_limit.unwrap_or(RESERVED)),
                of_tasks,
            ),
            call(
                (judging + factors.evaluator_bytes + factors.case_bytes, 0),
                (judge_answer, RESERVED),
                of_judges,
            ),
            call((proposing + prompt, 0), (optimizer_answer, RESERVED), of_optimizer),
        ];
        Self { roles, concurrency: float(factors.concurrency.max(1)) }
    }

    pub(crate) fn estimate(&self, cases: CallRange, llm_calls: CallRange, calls: CallsByRole) -> Estimate {
        let each = || self.each(calls);
        let tokens = each().map(|(calls, call)| calls.saturating_mul(call.input.saturating_add(call.output)));
        let dollars = each().map(|(calls, call)| {
            let [[input, _], [output, _]] = call.prices?;
            Some(number(calls) * (number(call.input) * input + number(call.output) * output) / 1e6)
        });
        let [seconds, _] = self.seconds(calls);
        Estimate {
            cases,
            llm_calls,
            tokens: tokens.fold(0, u64::saturating_add),
            cost_usd: dollars.sum::<Option<f64>>().map(models::rounded),
            seconds: (seconds * 100.0).round() / 100.0,
        }
    }

    /// The minimum usage: every call reads its texts and writes one token, and the last call reserves its answer.
    /// `kept`: thousandths of the budget that are reserved from these calls.
    pub(crate) fn least(&self, calls: CallsByRole, kept: u64) -> Least {
        let each = || self.each(calls);
        let used = each().map(|(calls, call)| calls.saturating_mul(call.least.saturating_add(1)));
        let used = used.fold(0, u64::saturating_add);
        let reserved = each().map(|(_, call)| call.reserved).min().unwrap_or_default();
        let dollars = each().map(|(calls, call)| {
            let [[_, input], [_, output]] = call.prices?;
            Some((number(calls) * (number(call.least) * input + output), number(call.reserved) * output))
        });
        let dollars = dollars.collect::<Option<Vec<_>>>().map(|dollars| {
            let used: f64 = dollars.iter().map(|(used, _)| used).sum();
            let reserved = dollars.iter().map(|(_, reserved)| *reserved).reduce(f64::min);
            (used + reserved.unwrap_or_default()) / 1e6
        });
        let usable = 1_000_u64.saturating_sub(kept).max(1);
        let part = number(usable) / 1e3;
        let [_, seconds] = self.seconds(calls);
        Least {
            tokens: used.saturating_add(reserved).saturating_mul(1_000).div_ceil(usable),
            dollars: dollars.map(|dollars| dollars / part),
            seconds: seconds / part,
        }
    }

    /// Expected, and minimum.
    fn seconds(&self, calls: CallsByRole) -> [f64; 2] {
        let mut sums = [0.0, 0.0];
        for (calls, call) in self.each(calls) {
            for (sum, seconds) in sums.iter_mut().zip(call.seconds) {
                *sum += number(calls) * seconds / self.concurrency;
            }
        }
        sums
    }

    /// The roles with calls.
    fn each(&self, calls: CallsByRole) -> impl Iterator<Item = (u64, &RoleCall)> {
        let calls = [calls.task, calls.judge, calls.optimizer];
        calls.into_iter().zip(&self.roles).filter(|(calls, _)| *calls > 0)
    }
}

fn seconds_of(models: &BTreeSet<PricedModel>) -> [f64; 2] {
    let times = models.iter().map(|(model, _)| seconds_of_model(model));
    let (count, sum, least) = times
        .fold((0.0, 0.0, f64::INFINITY), |(count, sum, least), [probably, at_least]| {
            (count + 1.0, sum + probably, at_least.min(least))
        });
    if count > 0.0 { [sum / count, least] } else { SECONDS }
}

fn seconds_of_model(model: &str) -> [f64; 2] {
    let Some(skill) = model.strip_prefix("practice/") else { return SECONDS };
    let pace = skill.split_once('@').and_then(|(_, pace)| pace.strip_suffix("ms")?.parse::<u32>().ok());
    let pace = pace.map_or(0.0, |millis| f64::from(millis) / 1e3);
    [pace.max(PRACTICE_SECONDS), pace]
}

/// `None` without a model, or if any price is unknown.
fn prices_of(models: &BTreeSet<PricedModel>, prices: &RunPrices) -> Option<[[f64; 2]; 2]> {
    let found = models.iter().map(|(model, base_url)| prices.find(model, base_url.as_deref()));
    let found: Vec<Price> = found.collect::<Option<_>>()?;
    let of = |price: fn(&Price) -> f64, lowest: fn(&Price) -> f64| {
        let lowest = found.iter().map(lowest).reduce(f64::min)?;
        Some([found.iter().map(price).sum::<f64>() / float(found.len()), lowest])
    };
    let cached = |price: &Price| price.cached.map_or(price.input, |cached| cached.min(price.input));
    Some([of(|price| price.input, cached)?, of(|price| price.output, |price| price.output)?])
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(TOKEN)
}

fn number(count: u64) -> f64 {
    usize::try_from(count).map_or(f64::MAX, float)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn factors(node: Value) -> UsageFactors {
        let config =
            json!({"prompts": {"style": {"text": "y".repeat(400)}, "sty": {"text": "z".repeat(9_000)}}});
        let mut nodes = NodeTexts::default();
        nodes.add(&json!({"nodes": [node, {"type": "template"}]}), config.as_object().unwrap());
        UsageFactors { nodes, case_bytes: 40, evaluator_bytes: 0, prompt_bytes: 400, concurrency: 4 }
    }

    fn forecast(model: &str, node: Value) -> Forecast {
        let models: BTreeSet<PricedModel> = [(model.to_owned(), None)].into();
        Forecast::new(&factors(node), [&models; 3], &RunPrices::default())
    }

    fn node() -> Value {
        let system = format!("{{{{ config.prompts.style.text }}}}{}", "x".repeat(360));
        json!({"type": "llm", "model": "openai/m", "system": system, "max_tokens": 10})
    }

    fn tasks(task: u64) -> CallsByRole {
        CallsByRole { task, ..CallsByRole::default() }
    }

    fn estimate(forecast: &Forecast, calls: CallsByRole) -> Estimate {
        forecast.estimate(CallRange::exactly(1), CallRange::exactly(1), calls)
    }

    #[test]
    fn estimates_count_texts_prices_and_assumed_times() {
        let found = estimate(&forecast("openai/gpt-4.1-mini", node()), tasks(1_000));
        // 360 bytes, a prompt with 400 and a case with 40; an answer with at most 10 tokens.
        assert_eq!(found.tokens, 210_000);
        assert_eq!(found.cost_usd, Some(models::rounded(200_000.0 * 0.4e-6 + 10_000.0 * 1.6e-6)));
        assert!((found.seconds - 500.0).abs() < 1e-9, "2 s each, four at the same time: {found:?}");
        let all = CallsByRole { task: 1, judge: 1, optimizer: 1 };
        let found = estimate(&forecast("openai/gpt-4.1-mini", node()), all);
        assert_eq!(found.tokens, 210 + (1_040 / 4 + 128) + (8_400 / 4 + 512));
    }

    #[test]
    fn an_estimate_is_not_above_the_budget() {
        let calls = CallRange { min: 12, expected: 1_000, max: None };
        let forecast = forecast("openai/gpt-4.1-mini", node());
        let open = forecast.estimate(calls, calls, tasks(1_000));
        assert_eq!(open.within(BudgetLimits::default(), None), open);
        let limit = |max_llm_calls| BudgetLimits { max_llm_calls, ..BudgetLimits::default() };
        assert_eq!(
            open.within(limit(Some(1_000)), None),
            Estimate { llm_calls: CallRange { max: Some(1_000), ..calls }, ..open }
        );
        let half = open.within(limit(Some(500)), None);
        assert_eq!(
            (half.llm_calls, half.cases.expected),
            (CallRange { expected: 500, max: Some(500), ..calls }, 500)
        );
        assert_eq!((half.tokens, half.seconds), (open.tokens / 2, open.seconds / 2.0));
        assert_eq!(half.cost_usd, open.cost_usd.map(|cost| models::rounded(cost / 2.0)));
        assert_eq!(open.within(limit(Some(3)), None).llm_calls, CallRange::exactly(3));
        // The limit that is reached first bounds the whole estimate.
        let tenth = BudgetLimits { max_tokens: Some(open.tokens / 10), ..limit(Some(500)) };
        let found = open.within(tenth, Some(Duration::from_secs(400)));
        assert_eq!((found.llm_calls.expected, found.cases.expected, found.seconds), (100, 100, 50.0));
        assert_eq!(open.within(limit(None), Some(Duration::from_secs(50))).llm_calls.expected, 100);
        let cent = BudgetLimits { max_cost: Some(9_600_000), ..limit(None) };
        assert_eq!(open.within(cent, None).cost_usd, Some(0.0096));
        let exact = forecast.estimate(CallRange::exactly(100), CallRange::exactly(100), tasks(100));
        assert_eq!(
            exact.within(limit(Some(10)), None).cases,
            CallRange { min: 10, expected: 10, max: Some(100) }
        );
        let free = forecast.estimate(calls, CallRange::exactly(0), tasks(0));
        assert_eq!(free.within(limit(Some(5)), None).cases, calls, "without calls");
    }

    #[test]
    fn an_estimate_without_a_price_has_no_cost_unless_nothing_is_called() {
        let forecast = forecast("openai/own", node());
        assert_eq!(estimate(&forecast, tasks(1)).cost_usd, None);
        assert_eq!(forecast.least(tasks(1), 0).dollars, None);
        let none = estimate(&forecast, tasks(0));
        assert_eq!((none.tokens, none.cost_usd, none.seconds), (0, Some(0.0), 0.0));
    }

    #[test]
    fn an_estimate_of_practice_models_is_free_and_uses_their_delay() {
        let found = estimate(&forecast("practice/classify@200ms", node()), tasks(40));
        assert_eq!((found.cost_usd, found.seconds), (Some(0.0), 2.0));
        let least = forecast("practice/classify", node()).least(tasks(40), 0);
        assert_eq!((least.dollars, least.seconds), (Some(0.0), 0.0));
    }

    #[test]
    fn the_minimum_estimate_counts_only_texts_that_are_always_sent() {
        let sure = forecast("openai/gpt-4.1-mini", node());
        // 760 bytes and one token for each of ten calls, plus the reserved answer.
        let least = sure.least(tasks(10), 0);
        assert_eq!(least.tokens, 10 * 96 + 10);
        let list = models::list_price("openai/gpt-4.1-mini").unwrap();
        let input = list.cached.unwrap_or(list.input);
        let dollars = (10.0 * (95.0 * input + list.output) + 10.0 * list.output) / 1e6;
        assert!((least.dollars.unwrap() - dollars).abs() < 1e-12, "{least:?}");
        assert!((least.seconds - 10.0 * 0.05 / 4.0).abs() < 1e-12, "{least:?}");
        // Half the budget is reserved.
        assert_eq!(sure.least(tasks(10), 500).tokens, 2 * least.tokens);
        let unsure =
            json!({"type": "llm", "model": "openai/m", "user": "{% if inputs.n %}Sort it.{% endif %}"});
        assert_eq!(forecast("openai/gpt-4.1-mini", unsure).least(tasks(10), 0).tokens, 10 + RESERVED);
    }
}
