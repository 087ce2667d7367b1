//! Deterministic pseudorandom numbers. Pure.

/// Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (splitmix64).
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number at this position in the sequence.
pub(super) const fn splitmix(place: u64) -> u64 {
    let z = place.wrapping_add(1).wrapping_mul(GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_reference_implementation() {
        // The reference implementation's first two numbers for seed 0.
        assert_eq!([0, 1].map(splitmix), [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }
}
