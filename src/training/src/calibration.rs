//! Judge calibration: agreement between judge models and people, on recorded outputs that people have judged.

use std::sync::Arc;

use kernel::{Counter, Purpose};

use crate::case::Case;
use crate::evaluators::{Evaluator, Verdict};
use crate::numbers::float;
use crate::optimize::{Candidate, Lab, Phase, Round, SearchEvent, Stop};
use crate::report::JudgeCalibration;
use crate::warning::Warning;

/// Minimum cases for a calibration, and maximum cases judged.
const LEAST: usize = 20;
const MOST: usize = 50;
/// A judge is unreliable below this κ.
const WEAK: f64 = 0.4;
/// Bootstrap resamples per interval.
const RESAMPLES: u64 = 2_000;
/// The candidate number for recorded outputs; no real candidate has it.
pub const RECORDED: u32 = 2_147_483_647;

/// Judges recorded outputs before any execution, and warns about judges that disagree with people. Empty if no
/// evaluator asks a model, or if too few cases have `metadata.output` and `metadata.human`.
///
/// # Errors
/// [`Stop`].
pub(crate) async fn calibrate(
    cases: &[Case],
    evaluators: &[Evaluator],
    lab: &dyn Lab,
) -> Result<Vec<JudgeCalibration>, Stop> {
    let places = calibration_places(cases, evaluators);
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let subject =
        Candidate { number: RECORDED, parents: Vec::new(), prompts: Arc::default(), demos: Arc::default() };
    let round = Round { phase: Phase::Calibration, epoch: 0, first_sample: 0 };
    let results = lab.evaluate(&subject, &places, round).await?;
    let verdicts = places.iter().zip(&results).filter_map(|(place, samples)| {
        let verdicts = samples.first()?.verdicts.as_slice();
        Some((*place, verdicts))
    });
    let measured = calibrations(cases, evaluators, &verdicts.collect::<Vec<_>>());
    for JudgeCalibration { evaluator, kappa, ci95: [low, high], n } in &measured {
        if *kappa < WEAK {
            let message = format!(
                "'{evaluator}' agrees with people only with κ = {kappa:.2} (95 % interval {low:.2} to {high:.2}) on {n} outputs"
            );
            lab.publish(SearchEvent::Warning(Warning::new("judge_uncalibrated", message))).await?;
        }
    }
    Ok(measured)
}

/// The cases whose recorded outputs are judged; empty if there are too few or if no evaluator asks a model.
#[must_use]
pub fn calibration_places(cases: &[Case], evaluators: &[Evaluator]) -> Vec<usize> {
    if !evaluators.iter().any(Evaluator::asks_model) {
        return Vec::new();
    }
    let is_judged = |case: &Case| case.recorded_output().is_some() && case.human_passed(0.5).is_some();
    let judged = cases.iter().enumerate().filter(|(_, case)| is_judged(case));
    let places: Vec<usize> = judged.map(|(place, _)| place).take(MOST).collect();
    if places.len() < LEAST { Vec::new() } else { places }
}

/// Measures how far each evaluator that asks a model agrees with people. `verdicts`: by case position, in evaluator
/// order, as stored by the phase `calibration`. Failed verdicts are ignored.
#[must_use]
pub fn calibrations(
    cases: &[Case],
    evaluators: &[Evaluator],
    verdicts: &[(usize, &[Verdict])],
) -> Vec<JudgeCalibration> {
    let measured = |(at, evaluator): (usize, &Evaluator)| {
        let pairs: Vec<(bool, bool)> = verdicts
            .iter()
            .filter_map(|(place, verdicts)| {
                let human = cases.get(*place)?.human_passed(evaluator.threshold())?;
                let verdict = verdicts.get(at).filter(|verdict| !verdict.skip && verdict.error.is_none())?;
                Some((human, verdict.passed))
            })
            .collect();
        JudgeCalibration {
            evaluator: evaluator.id.clone(),
            kappa: kappa(&pairs),
            ci95: interval(&pairs),
            n: u64::try_from(pairs.len()).unwrap_or(u64::MAX),
        }
    };
    evaluators.iter().enumerate().filter(|(_, evaluator)| evaluator.asks_model()).map(measured).collect()
}

/// Cohen's κ for two raters with yes/no ratings. 0 if both always give the same rating, because chance then explains
/// every agreement.
///
/// Source: Cohen 1960, A Coefficient of Agreement for Nominal Scales.
fn kappa(pairs: &[(bool, bool)]) -> f64 {
    if pairs.is_empty() {
        return 0.0;
    }
    let share = |is: &dyn Fn(&(bool, bool)) -> bool| {
        float(pairs.iter().filter(|pair| is(pair)).count()) / float(pairs.len())
    };
    let (first, second) = (share(&|pair| pair.0), share(&|pair| pair.1));
    let agreed = share(&|pair| pair.0 == pair.1);
    let by_chance = first * second + (1.0 - first) * (1.0 - second);
    if by_chance < 1.0 { (agreed - by_chance) / (1.0 - by_chance) } else { 0.0 }
}

/// The 95 % interval of κ, by bootstrap over the cases.
fn interval(pairs: &[(bool, bool)]) -> [f64; 2] {
    // A fixed seed gives every reader the same interval for the same verdicts.
    let counter = Counter::new(0);
    let resample = |resample: u64| {
        let drawn = counter.indices(Purpose::Bootstrap, resample, pairs.len(), pairs.len());
        kappa(&drawn.into_iter().filter_map(|place| pairs.get(place).copied()).collect::<Vec<_>>())
    };
    let mut kappas: Vec<f64> = (0..RESAMPLES).map(resample).collect();
    kappas.sort_unstable_by(f64::total_cmp);
    let at = |place: usize| kappas.get(place).copied().unwrap_or_default();
    [at(kappas.len() / 40), at(kappas.len() - 1 - kappas.len() / 40)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::evaluators::read_evaluators;

    fn pairs(counts: [usize; 4]) -> Vec<(bool, bool)> {
        let kinds = [(true, true), (true, false), (false, true), (false, false)];
        kinds.into_iter().zip(counts).flat_map(|(pair, count)| std::iter::repeat_n(pair, count)).collect()
    }

    #[test]
    fn kappa_is_agreement_beyond_chance() {
        for (counts, expected) in [
            // The textbook example: two readers agree on 35 of 50 grants.
            ([20, 5, 10, 15], 0.4),
            ([10, 0, 0, 10], 1.0),
            ([0, 10, 10, 0], -1.0),
            ([5, 5, 5, 5], 0.0),
            ([20, 0, 0, 0], 0.0),
            ([10, 0, 10, 0], 0.0),
            ([0, 0, 0, 0], 0.0),
        ] {
            let found = kappa(&pairs(counts));
            assert!((found - expected).abs() < 1e-9, "{counts:?}: {found}");
        }
    }

    #[test]
    fn the_interval_contains_kappa_and_is_deterministic() {
        let given = pairs([20, 5, 10, 15]);
        let [low, high] = interval(&given);
        assert!(low < 0.4 && 0.4 < high && low > 0.0 && high < 0.8, "{low} {high}");
        assert_eq!(interval(&given), [low, high]);
        let more = interval(&pairs([200, 50, 100, 150]));
        assert!(more[1] - more[0] < (high - low) / 2.0, "more cases have more weight");
        assert_eq!(interval(&[]), [0.0, 0.0]);
    }

    fn case(index: u32, metadata: &Value) -> Case {
        let metadata = metadata.as_object().unwrap().clone();
        Case {
            id: index.to_string(),
            index,
            inputs: serde_json::Map::new(),
            expected_output: Value::Null,
            metadata,
        }
    }

    fn evaluators() -> Vec<Evaluator> {
        let request = json!([{"id": "match", "entrypoint": "builtin:exact_match"},
            {"id": "tone", "entrypoint": "builtin:llm_judge", "config": {"rubric": "x"}, "threshold": 0.7},
            {"id": "own", "entrypoint": "metrics:score"}]);
        let mut problems = Vec::new();
        let read = read_evaluators(&request, "", &mut problems);
        assert_eq!(problems, []);
        read
    }

    #[test]
    fn cases_need_an_output_and_the_verdict_of_a_person() {
        let good = json!({"output": "a", "human": {"passed": true}});
        let of = |metadata: &[&Value]| -> Vec<usize> {
            let cases: Vec<Case> = (0..).zip(metadata).map(|(index, it)| case(index, it)).collect();
            calibration_places(&cases, &evaluators())
        };
        let mut all = vec![&good; 19];
        assert_eq!(of(&all), Vec::<usize>::new());
        let without =
            [json!({"human": {"passed": true}}), json!({"output": 1}), json!({"output": 1, "human": {}})];
        all.extend(&without);
        assert_eq!(of(&all), Vec::<usize>::new());
        all.push(&good);
        assert_eq!(of(&all), (0..19).chain([22]).collect::<Vec<_>>());
        assert_eq!(of(&vec![&good; 60]).len(), MOST);
        let cases: Vec<Case> = (0..30).map(|index| case(index, &good)).collect();
        let only_compares =
            read_evaluators(&json!([{"id": "a", "entrypoint": "builtin:json_valid"}]), "", &mut Vec::new());
        assert_eq!(calibration_places(&cases, &only_compares), Vec::<usize>::new());
    }

    #[test]
    fn only_successful_model_verdicts_are_compared() {
        let evaluators = evaluators();
        let human =
            |index: u32| if index.is_multiple_of(2) { json!({"score": 0.7}) } else { json!({"score": 0.69}) };
        let cases: Vec<Case> =
            (0..20).map(|index| case(index, &json!({"output": "a", "human": human(index)}))).collect();
        let verdict = |place: usize| match place {
            0 => Verdict::failed("gone"),
            1 => Verdict { skip: true, ..Verdict::passed(true) },
            place => Verdict::passed(place.is_multiple_of(2)),
        };
        let verdicts: Vec<Vec<Verdict>> =
            (0..20).map(|place| vec![Verdict::passed(true), verdict(place), Verdict::passed(true)]).collect();
        let by_place: Vec<(usize, &[Verdict])> = verdicts.iter().map(Vec::as_slice).enumerate().collect();
        let found = calibrations(&cases, &evaluators, &by_place);
        assert_eq!(found.len(), 1);
        let JudgeCalibration { evaluator, kappa, ci95, n } = &found[0];
        assert_eq!((evaluator.as_str(), *kappa, *ci95, *n), ("tone", 1.0, [1.0, 1.0], 18));
    }
}
