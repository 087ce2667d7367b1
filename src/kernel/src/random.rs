//! The one source of randomness.

use std::cell::RefCell;

use ring::rand::SecureRandom;

/// The machine could not give random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct RandomError;

/// Random bytes fit for secrets.
pub trait Random: Send + Sync + 'static {
    /// Fills `into` with random bytes.
    ///
    /// # Errors
    /// [`RandomError`] when the source fails; `into` must not be used then.
    fn fill(&self, into: &mut [u8]) -> Result<(), RandomError>;
}

/// The system's generator, through ring. Few bytes, as for an id, come from a buffer of the thread: a turn takes eight ids, and
/// each would be a system call. Longer ones, as for a key, come from the system itself.
#[derive(Debug, Clone)]
pub struct SystemRandom(ring::rand::SystemRandom);

/// Bytes that one system call reads ahead.
const AHEAD: usize = 512;
/// Bytes of the longest request that the buffer serves.
const SHORT: usize = 24;

/// Random bytes of a thread, each given out once; zeros behind those that are left.
struct Ahead {
    bytes: [u8; AHEAD],
    left: usize,
}

thread_local! {
    static READ_AHEAD: RefCell<Ahead> = const { RefCell::new(Ahead { bytes: [0; AHEAD], left: 0 }) };
}

impl Ahead {
    fn take(&mut self, into: &mut [u8], system: &ring::rand::SystemRandom) -> Result<(), RandomError> {
        if self.left < into.len() {
            self.left = 0;
            system.fill(&mut self.bytes).map_err(|_| RandomError)?;
            self.left = AHEAD;
        }
        let from = self.left.saturating_sub(into.len());
        let taken = self.bytes.get_mut(from..self.left).ok_or(RandomError)?;
        into.copy_from_slice(taken);
        taken.fill(0);
        self.left = from;
        Ok(())
    }
}

impl SystemRandom {
    /// The system's generator.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the source of randomness")]
    pub fn new() -> Self {
        Self(ring::rand::SystemRandom::new())
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for SystemRandom {
    fn fill(&self, into: &mut [u8]) -> Result<(), RandomError> {
        if into.len() <= SHORT {
            return READ_AHEAD.with_borrow_mut(|ahead| ahead.take(into, &self.0));
        }
        self.0.fill(into).map_err(|_| RandomError)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_given_out_twice() {
        let random = SystemRandom::new();
        let mut seen = HashSet::new();
        for length in [16, 24, 8, 32].into_iter().cycle().take(4 * AHEAD) {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes).unwrap();
            assert!(seen.insert(bytes), "the same bytes again");
        }
    }

    #[test]
    fn what_was_given_out_is_forgotten() {
        let system = SystemRandom::new().0;
        let mut ahead = Ahead { bytes: [0; AHEAD], left: 0 };
        let mut id = [0; 16];
        ahead.take(&mut id, &system).unwrap();
        assert_eq!(ahead.left, AHEAD - id.len());
        assert!(ahead.bytes[ahead.left..].iter().all(|byte| *byte == 0));
        assert_ne!(id, [0; 16]);
    }
}

#[cfg(feature = "test-util")]
pub use seeded::SeededRandom;

#[cfg(feature = "test-util")]
mod seeded {
    use parking_lot::Mutex;

    use super::{Random, RandomError};

    /// Repeatable bytes for tests (splitmix64). Never for secrets.
    pub struct SeededRandom(Mutex<u64>);

    impl SeededRandom {
        /// The same seed gives the same bytes.
        #[must_use]
        pub fn new(seed: u64) -> Self {
            Self(Mutex::new(seed))
        }
    }

    impl Random for SeededRandom {
        fn fill(&self, into: &mut [u8]) -> Result<(), RandomError> {
            let mut state = self.0.lock();
            for chunk in into.chunks_mut(8) {
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                z ^= z >> 31;
                for (byte, random) in chunk.iter_mut().zip(z.to_le_bytes()) {
                    *byte = random;
                }
            }
            Ok(())
        }
    }
}
