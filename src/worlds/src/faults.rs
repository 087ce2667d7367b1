//! Faults that a simulated server injects.

use super::random::Draw;

/// Fault rates, from 0 to 1; their sum is at most 1. Seed and request number determine the fault.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Faults {
    /// The seed of the draws.
    pub seed: u64,
    /// Responses with status 429.
    pub rate_limited: f64,
    /// `Retry-After` for these, in seconds.
    pub retry_after_seconds: u64,
    /// Responses with status 500.
    pub failed: f64,
    /// Responses that break off in the middle.
    pub cut: f64,
    /// Responses that are delayed.
    pub slow: f64,
    /// The delay for these, in milliseconds.
    pub delay_ms: u64,
}

/// A request's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    RateLimited,
    Failed,
    Cut,
    Slow,
}

impl Faults {
    /// The fault for the request with this number, from 0.
    pub(super) fn for_request(&self, request: u64) -> Option<Fault> {
        let drawn = Draw::new(self.seed, "faults").number(request).unit();
        let rates = [
            (self.rate_limited, Fault::RateLimited),
            (self.failed, Fault::Failed),
            (self.cut, Fault::Cut),
            (self.slow, Fault::Slow),
        ];
        let mut sum = 0.0;
        rates.into_iter().find_map(|(rate, fault)| {
            sum += rate;
            (drawn < sum).then_some(fault)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_their_rates() {
        let faults =
            Faults { seed: 1, rate_limited: 0.1, failed: 0.05, cut: 0.02, slow: 0.2, ..Faults::default() };
        let drawn: Vec<Option<Fault>> = (0..10_000).map(|request| faults.for_request(request)).collect();
        let count = |fault| drawn.iter().filter(|drawn| **drawn == Some(fault)).count();
        let near = |count: usize, expected: usize| count.abs_diff(expected) < expected / 5;
        assert!(near(count(Fault::RateLimited), 1_000) && near(count(Fault::Failed), 500));
        assert!(near(count(Fault::Cut), 200) && near(count(Fault::Slow), 2_000));
        assert_eq!(drawn, (0..10_000).map(|request| faults.for_request(request)).collect::<Vec<_>>());
        assert!((0..10_000).all(|request| Faults::default().for_request(request).is_none()));
    }
}
