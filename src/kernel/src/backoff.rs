//! Backoff between attempts.

use std::time::Duration;

use crate::Random;

/// Returns the pause after `failures` consecutive failures, from 1: `first`, doubled for each further failure, up to
/// `longest`.
#[must_use]
pub fn backoff(first: Duration, failures: u32, longest: Duration) -> Duration {
    let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// Returns half to all of the pause, so that clients that fail together do not retry together; all of it if the
/// random source fails.
#[must_use]
pub fn jittered(pause: Duration, random: &dyn Random) -> Duration {
    let mut byte = [u8::MAX];
    if random.fill(&mut byte).is_err() {
        return pause;
    }
    let [byte] = byte;
    let half = pause / 2;
    half.saturating_add(half.saturating_mul(u32::from(byte)) / 255)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RandomError, SystemRandom};

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(30));
        let millis: Vec<u128> = (0..12).map(|n| backoff(first, n, longest).as_millis()).collect();
        assert_eq!(millis, [100, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        assert_eq!(backoff(first, u32::MAX, longest), longest);
    }

    #[test]
    fn jitter_leaves_half_to_all_of_a_pause() {
        struct Failing;
        impl Random for Failing {
            fn fill(&self, _: &mut [u8]) -> Result<(), RandomError> {
                Err(RandomError)
            }
        }
        let pause = Duration::from_secs(10);
        let random = SystemRandom::new();
        let pauses: Vec<Duration> = (0..64).map(|_| jittered(pause, &random)).collect();
        assert!(pauses.iter().all(|one| (pause / 2..=pause).contains(one)), "{pauses:?}");
        assert!(pauses.iter().any(|one| *one != pauses[0]), "{pauses:?}");
        assert_eq!(jittered(pause, &Failing), pause);
    }
}
