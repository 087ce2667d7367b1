//! Canary decisions: assigns threads, and compares the canary with the live version. Pure.

use ring::digest::{SHA256, digest};

/// Minimum canary ratings before its feedback is judged.
const LEAST_RATINGS: u32 = 20;
/// Minimum canary turns before its failures are judged.
const LEAST_TURNS: u32 = 50;
/// Significance level that ends a canary by feedback.
const FEEDBACK_LEVEL: f64 = 0.05;
/// Significance level for failed turns; lower, because they have other causes, too.
const FAILURE_LEVEL: f64 = 0.01;
/// Terms below this fraction of the sum do not change it.
const NEGLIGIBLE: f64 = 1e-17;

/// A part of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The counted items.
    pub part: u32,
    /// The total.
    pub of: u32,
}

/// The turn and rating counts by which a version is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CanaryRecord {
    /// Failed turns.
    pub failed: Share,
    /// Negative ratings.
    pub negative: Share,
}

/// The decision about a canary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CanaryVerdict {
    /// The canary has more negative ratings than chance explains.
    NegativeFeedback {
        /// The probability if both versions are alike.
        p: f64,
    },
    /// The canary has more failed turns than chance explains.
    FailedTurns {
        /// The probability if both versions are alike.
        p: f64,
    },
    /// The canary has had enough turns.
    Promote,
}

/// Whether a new thread uses the canary: SHA-256 of `<workflow> <version> <thread>`, as a number, modulo 100.
#[must_use]
pub fn uses_canary(workflow: &str, version: i32, thread: &str, percent: i32) -> bool {
    let digest = digest(&SHA256, format!("{workflow} {version} {thread}").as_bytes());
    let rest = digest.as_ref().iter().fold(0_i32, |rest, byte| (rest * 256 + i32::from(*byte)) % 100);
    rest < percent
}

/// Judges a canary; `None`: it continues. It becomes live after `promote_after` turns.
#[must_use]
pub fn judge_canary(
    canary: CanaryRecord,
    live: CanaryRecord,
    promote_after: Option<u32>,
) -> Option<CanaryVerdict> {
    if canary.failed.of >= LEAST_TURNS {
        let p = fisher(canary.failed, live.failed);
        if p < FAILURE_LEVEL {
            return Some(CanaryVerdict::FailedTurns { p });
        }
    }
    if canary.negative.of >= LEAST_RATINGS {
        let p = fisher(canary.negative, live.negative);
        if p < FEEDBACK_LEVEL {
            return Some(CanaryVerdict::NegativeFeedback { p });
        }
    }
    let is_enough = |turns: u32| canary.failed.of >= turns;
    promote_after.is_some_and(is_enough).then_some(CanaryVerdict::Promote)
}

/// Fisher's exact test, one-sided: the probability that `first` has at least its observed share of the parts if only
/// chance divides them.
///
/// Source: R. A. Fisher, The Design of Experiments, 1935, section 9; the hypergeometric distribution.
#[must_use]
pub fn fisher(first: Share, second: Share) -> f64 {
    let (part, others) = (u64::from(first.part), u64::from(second.part));
    let (size, rest) = (u64::from(first.of), u64::from(second.of));
    let together = part + others;
    let most = together.min(size);
    // P(X = x): x parts in a sample with `size` items; both samples have `together` parts.
    let at = |x: u64| {
        let ln = ln_choose(size, x) + ln_choose(rest, together.saturating_sub(x))
            - ln_choose(size + rest, together);
        ln.exp()
    };
    // Terms decrease after the mode, so the sum may end at a negligible term.
    let mode = (real(together) + 1.0) * (real(size) + 1.0) / (real(size + rest) + 2.0);
    let mut sum = 0.0;
    for x in part.max(together.saturating_sub(rest))..=most {
        let term = at(x);
        sum += term;
        if real(x) > mode && term < sum * NEGLIGIBLE {
            break;
        }
    }
    f64::min(sum, 1.0)
}

/// Converts a count to a float; counts are sums of two `u32`.
fn real(count: u64) -> f64 {
    let high = u32::try_from(count >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(count & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The natural logarithm of `n!`: exact products for small numbers, Stirling's series above.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|k| real(k).ln()).sum();
    }
    let n = real(n);
    let inverse = 1.0 / n;
    let square = inverse * inverse;
    let series =
        inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1_260.0 - square / 1_680.0)));
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + series
}
