//! Counts and means as floats.

/// A count as a float; exact below 2^32.
pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// `part / whole`; 0 if `whole` is 0.
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// An incremental weighted mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    weights: f64,
    sum: f64,
}

impl Mean {
    pub(crate) fn add(&mut self, weight: f64, value: f64) {
        self.weights += weight;
        self.sum += weight * value;
    }

    /// `None` without any weight.
    pub(crate) fn value(self) -> Option<f64> {
        (self.weights > 0.0).then(|| self.sum / self.weights)
    }
}

/// The mean of `(weight, value)` items, added in their order; `None` without any weight.
pub(crate) fn mean(items: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut mean = Mean::default();
    items.for_each(|(weight, value)| mean.add(weight, value));
    mean.value()
}

/// Squares by multiplication, which is the same on every machine; `powi` need not be.
pub(crate) fn squared(value: f64) -> f64 {
    value * value
}

/// Differences below this are rounding errors.
pub(crate) const NOISE: f64 = 1e-9;
/// From this score on, no improvement is possible.
pub(crate) const PERFECT: f64 = 1.0 - NOISE;
