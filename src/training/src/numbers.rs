//! Counts and means as floats.

/// A count as a float; exact below 2^32.
pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A part of a whole; 0 of nothing.
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// The mean of `(weight, value)`, added in the order of the items; `None` without any weight.
pub(crate) fn mean(items: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (weights, sum) =
        items.fold((0.0, 0.0), |(weights, sum), (weight, value)| (weights + weight, sum + weight * value));
    (weights > 0.0).then(|| sum / weights)
}

/// By multiplication, which is the same on every machine; `powi` need not be.
pub(crate) fn squared(value: f64) -> f64 {
    value * value
}

/// Differences below it are rounding.
pub(crate) const NOISE: f64 = 1e-9;
/// A score from which on nothing is left to gain.
pub(crate) const PERFECT: f64 = 1.0 - NOISE;
