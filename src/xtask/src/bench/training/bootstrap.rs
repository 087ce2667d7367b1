//! The mean of differences with its confidence interval. Pure.

use crate::bench::splitmix::splitmix;

/// Resamples per interval.
const RESAMPLES: u64 = 4_000;

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Estimates the mean by bootstrap: deterministic; 0 for no values.
pub(super) fn estimate(values: &[f64]) -> Estimate {
    let count = u64::try_from(values.len()).unwrap_or(u64::MAX).max(1);
    let resample = |number: u64| {
        let drawn = (0..count).map(|at| splitmix(number.wrapping_mul(count).wrapping_add(at)) % count);
        let drawn: Vec<f64> = drawn.filter_map(|at| values.get(usize::try_from(at).ok()?).copied()).collect();
        mean(&drawn)
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(resample).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |place: usize| means.get(place).copied().unwrap_or_default();
    let tail = means.len() / 40;
    Estimate { mean: mean(values), low: at(tail), high: at(means.len().saturating_sub(1 + tail)) }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / crate::bench::server::count(values.len()).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_mean_and_is_narrow_for_equal_values() {
        let same = estimate(&[0.25; 12]);
        assert_eq!((same.mean, same.low, same.high), (0.25, 0.25, 0.25));
        let values: Vec<f64> = (0..100).map(|at| f64::from(at % 10) / 10.0).collect();
        let found = estimate(&values);
        // 1.96 standard errors of a standard deviation of .287.
        assert!((found.mean - 0.45).abs() < 1e-9, "{found:?}");
        assert!((found.low - 0.394).abs() < 0.01 && (found.high - 0.506).abs() < 0.01, "{found:?}");
        assert_eq!(found, estimate(&values));
        assert_eq!(estimate(&[]), Estimate { mean: 0.0, low: 0.0, high: 0.0 });
    }
}
