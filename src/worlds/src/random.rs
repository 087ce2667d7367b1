//! Stateless draws: functions of a seed and a place.

/// Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (splitmix64).
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A place for draws: a seed, narrowed by purposes and indices. Draws at different places are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw(u64);

impl Draw {
    /// The draws for a seed and a purpose.
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        Self(mix(seed.wrapping_add(GAMMA))).for_key(purpose)
    }

    /// The sub-place with this index.
    pub(super) fn at(self, index: usize) -> Self {
        self.number(u64::try_from(index).unwrap_or(u64::MAX))
    }

    /// The sub-place with this number.
    pub(super) const fn number(self, number: u64) -> Self {
        Self(mix(self.0.rotate_left(23) ^ mix(number.wrapping_add(GAMMA))))
    }

    /// The sub-place with this key.
    pub(super) fn for_key(self, key: &str) -> Self {
        self.number(digest(key))
    }

    /// A number in [0, 1), with 53 bits.
    pub(super) fn unit(self) -> f64 {
        let bits = mix(self.0 ^ GAMMA) >> 11;
        let (high, low) = (u32::try_from(bits >> 32), u32::try_from(bits & 0xFFFF_FFFF));
        let high = f64::from(high.unwrap_or_default()) * 4_294_967_296.0;
        (high + f64::from(low.unwrap_or_default())) / 9_007_199_254_740_992.0
    }

    /// True with this probability.
    pub(super) fn happens(self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A whole number below `limit`; 0 if `limit` is 0.
    pub(super) fn below(self, limit: usize) -> usize {
        let wide = u128::from(mix(self.0 ^ GAMMA)) * u128::try_from(limit).unwrap_or_default();
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// A whole number from `least` to `most`, both included.
    pub(super) fn within(self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Chooses an item; `None` from an empty list.
    pub(super) fn choose<T>(self, list: &[T]) -> Option<&T> {
        list.get(self.below(list.len()))
    }

    /// Shuffles the list.
    pub(super) fn shuffle<T>(self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.at(last).below(last + 1));
        }
    }

    /// Sixteen hexadecimal digits.
    pub(super) fn hex(self) -> String {
        format!("{:016x}", mix(self.0))
    }
}

/// The splitmix64 finalizer.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Source: FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    text.as_bytes().iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// A count as a number; exact below 2^32.
pub(super) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The mean; 0 without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / float(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_purpose_and_index() {
        let draw = Draw::new(7, "a").at(1).for_key("x");
        assert_eq!(draw, Draw::new(7, "a").at(1).for_key("x"));
        for other in [
            Draw::new(8, "a").at(1).for_key("x"),
            Draw::new(7, "b").at(1).for_key("x"),
            Draw::new(7, "a").for_key("x").at(1),
        ] {
            assert_ne!(draw, other);
        }
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let draw = Draw::new(3, "test");
        let mut counts = [0_u32; 10];
        let mut sum = 0.0;
        for index in 0..10_000 {
            counts[draw.at(index).below(10)] += 1;
            sum += draw.at(index).for_key("unit").unit();
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert!((sum / 10_000.0 - 0.5).abs() < 0.015, "{sum}");
        assert_eq!((draw.below(0), draw.choose::<u8>(&[])), (0, None));
    }

    #[test]
    fn neighbours_are_independent() {
        let draw = Draw::new(1, "test");
        let both = (0..10_000).filter(|at| draw.at(*at).happens(0.5) && draw.at(at + 1).happens(0.5)).count();
        assert!((2_350..2_650).contains(&both), "{both}");
    }

    #[test]
    fn a_shuffle_preserves_each_entry() {
        let mut list: Vec<usize> = (0..50).collect();
        Draw::new(1, "test").shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
