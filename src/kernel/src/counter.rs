//! Deterministic pseudorandom numbers: repeated work, after a crash or on another machine, draws the same numbers.

use ring::digest::{Context, SHA256};

/// A draw's purpose. Draws for different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Assigns cases to training, validation and test.
    Split,
    /// Selects a proposal's cases.
    Minibatch,
    /// Selects the candidate that a proposal changes.
    Parent,
    /// Selects a candidate among those that are best somewhere.
    Pareto,
    /// Selects the examples that a prompt shows.
    Demos,
    /// Selects the values in a resample.
    Bootstrap,
    /// A model call's seed.
    CallSeed,
}

impl Purpose {
    const fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Minibatch => "minibatch",
            Self::Parent => "parent",
            Self::Pareto => "pareto",
            Self::Demos => "demos",
            Self::Bootstrap => "bootstrap",
            Self::CallSeed => "call seed",
        }
    }
}

/// Draws numbers for a seed. It is stateless: each draw is the SHA-256 of seed, purpose and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    seed: u64,
}

impl Counter {
    /// A counter for this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A draw's 32 bytes.
    #[must_use]
    pub fn bytes(&self, purpose: Purpose, iteration: u64, index: u64) -> [u8; 32] {
        self.digest(purpose, &[&iteration.to_be_bytes(), &index.to_be_bytes()])
    }

    /// The 32 bytes for a draw whose place is named by texts.
    #[must_use]
    pub fn digest(&self, purpose: Purpose, place: &[&[u8]]) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        context.update(&self.seed.to_be_bytes());
        for part in [purpose.name().as_bytes()].iter().chain(place) {
            // The length prefix keeps different lists of parts distinct.
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            context.update(&length.to_be_bytes());
            context.update(part);
        }
        let mut bytes = [0; 32];
        for (byte, drawn) in bytes.iter_mut().zip(context.finish().as_ref()) {
            *byte = *drawn;
        }
        bytes
    }

    /// A whole number below `limit`; 0 if `limit` is 0. Its bias is below `limit` / 2^64.
    #[must_use]
    pub fn below(&self, purpose: Purpose, iteration: u64, index: u64, limit: usize) -> usize {
        let wide = u128::from(first(&self.bytes(purpose, iteration, index)));
        let limit = u128::try_from(limit).unwrap_or_default();
        usize::try_from((wide * limit) >> 64).unwrap_or_default()
    }

    /// `count` uniform whole numbers below `limit`; empty if `limit` is 0. For many draws: a digest yields eight
    /// numbers. Limits above 2^32 - 1 are reduced to that.
    ///
    /// Source: Lemire 2019, "Fast random integer generation in an interval".
    #[must_use]
    pub fn indices(&self, purpose: Purpose, iteration: u64, count: usize, limit: usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        let limit = u64::from(u32::try_from(limit).unwrap_or(u32::MAX));
        if limit == 0 {
            return drawn;
        }
        // 2^32 is not a multiple of most limits: skipping the excess products gives every number equally many words.
        let excess = (1_u64 << 32) % limit;
        for index in 0.. {
            for word in self.bytes(purpose, iteration, index).as_chunks().0 {
                if drawn.len() >= count {
                    return drawn;
                }
                let product = u64::from(u32::from_be_bytes(*word)) * limit;
                if product & 0xFFFF_FFFF >= excess {
                    drawn.push(usize::try_from(product >> 32).unwrap_or_default());
                }
            }
        }
        drawn
    }

    /// A number in [0, 1), with 53 bits.
    #[must_use]
    pub fn unit(&self, purpose: Purpose, iteration: u64, index: u64) -> f64 {
        let bits = first(&self.bytes(purpose, iteration, index)) >> 11;
        let (high, low) = (u32::try_from(bits >> 32).unwrap_or_default(), u32::try_from(bits & 0xFFFF_FFFF));
        // Both parts and their sum are exact.
        (f64::from(high) * 4_294_967_296.0 + f64::from(low.unwrap_or_default())) / 9_007_199_254_740_992.0
    }

    /// The numbers below `count` in random order.
    #[must_use]
    pub fn shuffled(&self, purpose: Purpose, iteration: u64, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let index = u64::try_from(last).unwrap_or(u64::MAX);
            order.swap(last, self.below(purpose, iteration, index, last + 1));
        }
        order
    }
}

/// The 53 bits from a draw that a JSON number keeps exactly.
#[must_use]
pub fn fifty_three_bits(bytes: &[u8; 32]) -> u64 {
    first(bytes) >> 11
}

fn first(bytes: &[u8; 32]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_only_on_seed_purpose_and_index() {
        let counter = Counter::new(7);
        let drawn = counter.bytes(Purpose::Split, 1, 2);
        assert_eq!(drawn, Counter::new(7).bytes(Purpose::Split, 1, 2));
        for other in [
            Counter::new(8).bytes(Purpose::Split, 1, 2),
            counter.bytes(Purpose::Parent, 1, 2),
            counter.bytes(Purpose::Split, 2, 1),
            counter.digest(Purpose::Split, &[&1_u64.to_be_bytes(), &2_u64.to_be_bytes(), b""]),
        ] {
            assert_ne!(drawn, other);
        }
        assert_ne!(
            counter.digest(Purpose::CallSeed, &[b"ab", b"c"]),
            counter.digest(Purpose::CallSeed, &[b"a", b"bc"])
        );
    }

    #[test]
    fn the_bytes_stay_the_same_in_later_versions() {
        // SHA-256 over 7, 5, "split", 8, 1, 8, 2, with numbers as 8 bytes; computed with Python's hashlib.
        let expected = "c793f8634a19c2e52ae96298ecc1e58f193425f492b918aed9b3dfc30eafbb5c";
        let bytes = Counter::new(7).bytes(Purpose::Split, 1, 2);
        assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let counter = Counter::new(3);
        let mut counts = [0_u32; 10];
        for index in 0..10_000 {
            counts[counter.below(Purpose::Minibatch, 0, index, 10)] += 1;
            let unit = counter.unit(Purpose::Minibatch, 1, index);
            assert!((0.0..1.0).contains(&unit), "{unit}");
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!(counter.below(Purpose::Minibatch, 0, 0, 0), 0);
    }

    #[test]
    fn many_numbers_come_from_few_digests() {
        let counter = Counter::new(3);
        let drawn = counter.indices(Purpose::Bootstrap, 5, 10_000, 10);
        assert_eq!((drawn.len(), &drawn), (10_000, &counter.indices(Purpose::Bootstrap, 5, 10_000, 10)));
        let mut counts = [0_u32; 10];
        drawn.iter().for_each(|number| counts[*number] += 1);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        // The first number comes from the first four bytes, the ninth from the second digest.
        let word = |index| {
            let bytes = counter.bytes(Purpose::Bootstrap, 5, index);
            usize::try_from(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) >> 1).unwrap()
        };
        let half = counter.indices(Purpose::Bootstrap, 5, 9, 1 << 31);
        assert_eq!((half[0], half[8]), (word(0), word(1)));
        assert!(counter.indices(Purpose::Bootstrap, 0, 5, 0).is_empty());
        assert!(counter.indices(Purpose::Bootstrap, 0, 0, 5).is_empty());
    }

    #[test]
    fn a_limit_that_does_not_divide_the_words_has_no_bias() {
        // Four words per three numbers: if all words counted, a third of the numbers would occur twice as often.
        let mut counts = [0_u32; 3];
        for number in Counter::new(1).indices(Purpose::Bootstrap, 0, 9_000, 3 << 30) {
            counts[number % 3] += 1;
        }
        assert!(counts.iter().all(|count| (2_850..3_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_contains_each_number_once() {
        let mut order = Counter::new(1).shuffled(Purpose::Split, 0, 50);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        assert_ne!(order, Counter::new(1).shuffled(Purpose::Split, 1, 50));
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
        assert!(Counter::new(1).shuffled(Purpose::Split, 0, 0).is_empty());
    }
}
