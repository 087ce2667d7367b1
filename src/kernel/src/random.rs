//! The only source of randomness.

use ring::rand::SecureRandom;

/// The system could not provide random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct RandomError;

/// Random bytes fit for secrets.
pub trait Random: Send + Sync + 'static {
    /// Fills `into` with random bytes.
    ///
    /// # Errors
    /// [`RandomError`] if the source fails; `into` must not be used then.
    fn fill(&self, into: &mut [u8]) -> Result<(), RandomError>;
}

/// The system's generator, through ring.
#[derive(Debug, Clone)]
pub struct SystemRandom(ring::rand::SystemRandom);

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
        self.0.fill(into).map_err(|_| RandomError)
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
