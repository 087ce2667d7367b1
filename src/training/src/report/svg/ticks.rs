//! Chooses the epochs that an axis labels.

/// Maximum labels.
const MAX_TICKS: u64 = 11;

/// Multiples of 1, 2, 5, 10, 20, 50, … between both epochs; the step keeps them few.
pub(super) fn ticks(first: u32, last: u32) -> Vec<u32> {
    let (first, last) = (u64::from(first), u64::from(last));
    let count = |step: u64| (last / step + 1).saturating_sub(first.div_ceil(step));
    let steps = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    // The largest step has at most one multiple, so a step is always found.
    let Some(step) = steps.take(36).find(|step| count(*step) <= MAX_TICKS) else { return Vec::new() };
    let start = first.div_ceil(step);
    (start..=last / step).filter_map(|multiple| u32::try_from(multiple * step).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_round_epochs_are_named() {
        assert_eq!(ticks(1, 1), [1]);
        assert_eq!(ticks(1, 5), [1, 2, 3, 4, 5]);
        assert_eq!(ticks(1, 50), [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]);
        assert_eq!(ticks(7, 20), [8, 10, 12, 14, 16, 18, 20]);
        assert!(ticks(0, u32::MAX).len() <= 11 && !ticks(0, u32::MAX).is_empty());
        assert!(ticks(5, 1).is_empty());
    }
}
