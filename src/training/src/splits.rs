//! Assigns cases to training, validation and test.

use std::collections::BTreeMap;

use kernel::{Counter, Purpose};

use crate::case::Case;

/// Minimum cases to hold some out.
const ENOUGH: usize = 20;
/// The validation share if the request names none.
const VALIDATION: f64 = 0.4;

/// Method for estimating the test score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestEstimate {
    /// On cases used for nothing else.
    Split,
    /// By k-fold over the stored scores, because there are too few cases to hold out.
    KFold,
}

/// Case positions in the dataset; each list is sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits {
    /// Cases to make proposals from.
    pub train: Vec<usize>,
    /// Cases that decide between candidates.
    pub val: Vec<usize>,
    /// Cases used once, at the end.
    pub test: Vec<usize>,
    /// `None`: the request wants no test estimate.
    pub test_estimate: Option<TestEstimate>,
    /// Whether training and validation share all cases although the optimizer would hold some out.
    pub overfit_risk: bool,
}

/// A request's split settings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SplitSettings {
    /// Whether training and validation share all cases unless the request says otherwise, as the interface's request
    /// means.
    pub shares: bool,
    /// The validation share.
    pub validation: Option<f64>,
    /// The test share.
    pub test: Option<f64>,
}

/// Splits cases. `metadata.split` takes precedence; if any case has it, cases without it are for training.
#[must_use]
pub fn split(cases: &[Case], settings: SplitSettings, counter: &Counter) -> Splits {
    if cases.iter().any(|case| case.split().is_some()) {
        return as_said(cases);
    }
    let all: Vec<usize> = (0..cases.len()).collect();
    let test = settings.test.filter(|test| *test > 0.0);
    let (test, rest) = match test {
        Some(share) if cases.len() >= ENOUGH => drawn(cases, &all, share, 0, counter),
        _ => (Vec::new(), all),
    };
    let test_estimate = match (settings.test, test.is_empty()) {
        (Some(share), true) if share > 0.0 => Some(TestEstimate::KFold),
        (_, false) => Some(TestEstimate::Split),
        _ => None,
    };
    let validation = match settings.validation {
        Some(share) => Some(share).filter(|share| *share > 0.0),
        None if settings.shares || cases.len() < ENOUGH => None,
        None => Some(VALIDATION),
    };
    let (val, train) = match validation {
        Some(share) => drawn(cases, &rest, share, 1, counter),
        None => (rest.clone(), rest.clone()),
    };
    // A dataset with one or two cases cannot be divided.
    let is_whole = val.is_empty() || train.is_empty();
    let (val, train) = if is_whole { (rest.clone(), rest) } else { (val, train) };
    let overfit_risk = !settings.shares && val == train;
    Splits { train, val, test, test_estimate, overfit_risk }
}

fn as_said(cases: &[Case]) -> Splits {
    let of = |split: &str| -> Vec<usize> {
        let is_there = |(_, case): &(usize, &Case)| case.split().unwrap_or("train") == split;
        cases.iter().enumerate().filter(is_there).map(|(place, _)| place).collect()
    };
    let (mut train, mut val, test) = (of("train"), of("val"), of("test"));
    if val.is_empty() {
        val.clone_from(&train);
    }
    // Without other cases, test cases serve all purposes.
    if val.is_empty() {
        val.clone_from(&test);
    }
    if train.is_empty() {
        train.clone_from(&val);
    }
    let test_estimate = (!test.is_empty()).then_some(TestEstimate::Split);
    Splits { overfit_risk: val == train, train, val, test, test_estimate }
}

/// Draws a share of the positions, stratified by group, and returns it with the rest; both sorted.
fn drawn(
    cases: &[Case],
    places: &[usize],
    share: f64,
    iteration: u64,
    counter: &Counter,
) -> (Vec<usize>, Vec<usize>) {
    // Groups are ordered by their first drawn case, so the seed also decides between groups that are too small to
    // divide.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let order = counter.shuffled(Purpose::Split, iteration, places.len());
    for place in order.into_iter().filter_map(|place| places.get(place)) {
        let group = cases.get(*place).map(Case::group).unwrap_or_default();
        let number = *known.entry(group).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(*place),
            None => groups.push(vec![*place]),
        }
    }
    let (mut part, mut rest) = (Vec::new(), Vec::new());
    let (mut seen, mut taken) = (0_u32, 0_u32);
    // The share holds across all groups, even if each is small.
    for place in groups.into_iter().flatten() {
        seen += 1;
        if f64::from(taken) + 0.5 < f64::from(seen) * share {
            taken += 1;
            part.push(place);
        } else {
            rest.push(place);
        }
    }
    part.sort_unstable();
    rest.sort_unstable();
    (part, rest)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn cases(count: usize, metadata: impl Fn(usize) -> Value) -> Vec<Case> {
        let case = |place: usize| Case {
            id: place.to_string(),
            index: u32::try_from(place).unwrap(),
            inputs: Map::new(),
            expected_output: Value::Null,
            metadata: metadata(place).as_object().unwrap().clone(),
        };
        (0..count).map(case).collect()
    }

    fn plain(count: usize, settings: SplitSettings) -> Splits {
        split(&cases(count, |_| json!({})), settings, &Counter::new(1))
    }

    const SHARED: SplitSettings = SplitSettings { shares: true, validation: None, test: None };
    const HELD_OUT: SplitSettings = SplitSettings { shares: false, validation: None, test: None };

    #[test]
    fn the_interface_request_uses_all_cases_for_training_and_validation() {
        let splits = plain(30, SHARED);
        assert_eq!((splits.train.len(), &splits.train), (30, &splits.val));
        assert_eq!((splits.test.len(), splits.test_estimate, splits.overfit_risk), (0, None, false));
        let divided = plain(30, SplitSettings { validation: Some(0.2), ..SHARED });
        assert_eq!((divided.train.len(), divided.val.len()), (24, 6));
    }

    #[test]
    fn other_requests_hold_cases_out_if_there_are_enough() {
        let splits = plain(50, HELD_OUT);
        assert_eq!((splits.train.len(), splits.val.len(), splits.overfit_risk), (30, 20, false));
        assert!(splits.train.iter().all(|place| !splits.val.contains(place)));
        let few = plain(19, HELD_OUT);
        assert_eq!((few.train.len(), few.val.len(), few.overfit_risk), (19, 19, true));
        assert_eq!(splits, plain(50, HELD_OUT));
        assert_ne!(splits, split(&cases(50, |_| json!({})), HELD_OUT, &Counter::new(2)));
    }

    #[test]
    fn a_test_is_set_aside_or_estimated_by_folds() {
        let tested = SplitSettings { test: Some(0.2), ..HELD_OUT };
        let splits = plain(50, tested);
        assert_eq!((splits.test.len(), splits.test_estimate), (10, Some(TestEstimate::Split)));
        assert_eq!((splits.train.len(), splits.val.len()), (24, 16));
        let few = plain(19, tested);
        assert_eq!((few.test.len(), few.test_estimate), (0, Some(TestEstimate::KFold)));
    }

    #[test]
    fn groups_are_divided_alike() {
        let groups = cases(40, |place| json!({"group": if place < 10 { "a" } else { "b" }}));
        let splits = split(&groups, HELD_OUT, &Counter::new(3));
        let of_a = splits.val.iter().filter(|place| **place < 10).count();
        assert_eq!((splits.val.len(), of_a), (16, 4));
    }

    #[test]
    fn the_order_of_groups_does_not_change_their_division() {
        let groups = cases(40, |place| json!({"group": format!("g{}", place % 8)}));
        for seed in 0..20 {
            let splits = split(&groups, HELD_OUT, &Counter::new(seed));
            let of = |group: usize| splits.val.iter().filter(|place| **place % 8 == group).count();
            assert_eq!((0..8).map(of).collect::<Vec<_>>(), [2; 8], "seed {seed}");
        }
    }

    #[test]
    fn the_seed_decides_between_groups_of_one_case() {
        let groups = cases(50, |place| json!({"group": format!("g{place}")}));
        let drawn = |seed| split(&groups, HELD_OUT, &Counter::new(seed));
        let (first, second) = (drawn(1), drawn(2));
        assert_eq!((first.train.len(), first.val.len()), (30, 20));
        assert_eq!(first, drawn(1));
        assert_ne!(first.val, second.val);
        // Over many seeds each case is drawn about equally often.
        let mut counts = [0_u32; 50];
        (0..200).flat_map(|seed| drawn(seed).val).for_each(|place| counts[place] += 1);
        assert!(counts.iter().all(|count| (45..115).contains(count)), "{counts:?}");
    }

    #[test]
    fn splits_named_by_cases_have_precedence() {
        let cases_with_splits = cases(6, |place| match place {
            0 | 1 => json!({"split": "val"}),
            2 => json!({"split": "test"}),
            _ => json!({}),
        });
        let splits = split(
            &cases_with_splits,
            SplitSettings { test: Some(0.5), validation: Some(0.5), ..HELD_OUT },
            &Counter::new(1),
        );
        assert_eq!((splits.train, splits.val, splits.test), (vec![3, 4, 5], vec![0, 1], vec![2]));
        assert_eq!((splits.test_estimate, splits.overfit_risk), (Some(TestEstimate::Split), false));
    }

    #[test]
    fn test_cases_are_used_for_everything_if_there_are_no_others() {
        let cases_with_splits = cases(2, |_| json!({"split": "test"}));
        let splits = split(&cases_with_splits, HELD_OUT, &Counter::new(1));
        assert_eq!((&splits.train, &splits.val, &splits.test), (&vec![0, 1], &vec![0, 1], &vec![0, 1]));
        assert!(splits.overfit_risk);
    }

    #[test]
    fn a_single_case_is_used_for_everything() {
        let splits = plain(1, SplitSettings { validation: Some(0.9), ..SHARED });
        assert_eq!((splits.train, splits.val), (vec![0], vec![0]));
    }
}
