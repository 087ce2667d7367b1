//! Canary decisions: thread assignment, and the end of a canary.

use proptest::prelude::*;
use training::{CanaryRecord, CanaryVerdict, Share, fisher, judge_canary, uses_canary};

fn share(part: u32, of: u32) -> Share {
    Share { part, of }
}

fn close(found: f64, known: f64) {
    assert!((found - known).abs() <= known * 1e-6, "{found} is not {known}");
}

#[test]
fn fishers_test_has_known_values() {
    // Fisher's tea tasting: all four cups, or three of four.
    close(fisher(share(4, 4), share(0, 4)), 1.0 / 70.0);
    close(fisher(share(3, 4), share(1, 4)), 17.0 / 70.0);
    close(fisher(share(8, 10), share(1, 9)), 415.0 / 92_378.0);
    close(fisher(share(5, 20), share(0, 10)), 15_504.0 / 142_506.0);
    assert!((fisher(share(0, 20), share(5, 20)) - 1.0).abs() < 1e-12);
    assert!((fisher(share(0, 0), share(0, 0)) - 1.0).abs() < 1e-12);
    assert!((fisher(share(20, 20), share(0, 0)) - 1.0).abs() < 1e-12);
}

/// The same with exact integers, for small tables.
fn exact(first: Share, second: Share) -> f64 {
    let choose = |n: u32, k: u32| -> u128 {
        (0..u128::from(k)).fold(1, |product, at| product * (u128::from(n) - at) / (at + 1))
    };
    let together = first.part + second.part;
    let ways = |x: u32| {
        if together - x > second.of { 0 } else { choose(first.of, x) * choose(second.of, together - x) }
    };
    let all: u128 = (0..=together.min(first.of)).map(ways).sum();
    let tail: u128 = (first.part..=together.min(first.of)).map(ways).sum();
    ratio(tail, all)
}

fn ratio(part: u128, whole: u128) -> f64 {
    // 15 decimals.
    let scaled = part * 1_000_000_000_000_000 / whole;
    scaled.to_string().parse::<f64>().unwrap() / 1e15
}

fn shares(most: u32) -> impl Strategy<Value = Share> {
    (0..=most).prop_flat_map(|of| (0..=of).prop_map(move |part| Share { part, of }))
}

proptest! {
    #[test]
    fn fishers_test_equals_an_exact_sum(first in shares(24), second in shares(24)) {
        let (found, known) = (fisher(first, second), exact(first, second));
        prop_assert!((found - known).abs() < 1e-11, "{found} {known}");
    }

    #[test]
    fn fishers_test_is_a_probability_and_decreases_with_the_part(first in shares(200_000), second in shares(200_000)) {
        let p = fisher(first, second);
        prop_assert!((0.0..=1.0).contains(&p));
        if first.part < first.of && second.part > 0 {
            // One more part at the same total.
            let more = fisher(share(first.part + 1, first.of), share(second.part - 1, second.of));
            prop_assert!(more <= p + 1e-9, "{more} {p}");
        }
    }

    #[test]
    fn a_share_of_threads_uses_the_canary(percent in 1..=50_i32, seed in any::<u32>()) {
        let uses = |thread: &u32| uses_canary("0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c", 3, &format!("thr_{seed}{thread}"), percent);
        let of_canary = (0..2_000_u32).filter(uses).count();
        let share = f64::from(u32::try_from(of_canary).unwrap()) / 20.0;
        // More than five standard deviations.
        prop_assert!((share - f64::from(percent)).abs() < 6.0, "{share} {percent}");
    }

    #[test]
    fn a_higher_percentage_keeps_the_canary_threads(thread in any::<u64>(), percent in 1..50_i32) {
        let uses = |percent| uses_canary("w", 2, &thread.to_string(), percent);
        prop_assert!(!uses(percent) || uses(percent + 1));
    }
}

#[test]
fn feedback_ends_a_canary_after_at_least_twenty_ratings() {
    let of = |negative| CanaryRecord { negative, ..CanaryRecord::default() };
    let live = of(share(2, 40));
    assert_eq!(judge_canary(of(share(19, 19)), live, None), None);
    assert!(matches!(
        judge_canary(of(share(8, 20)), live, None),
        Some(CanaryVerdict::NegativeFeedback { p }) if p < 0.05
    ));
    assert_eq!(judge_canary(of(share(2, 20)), live, None), None);
    // Without live ratings, a regression cannot be shown.
    assert_eq!(judge_canary(of(share(20, 20)), of(share(0, 0)), None), None);
}

#[test]
fn failed_turns_end_a_canary_after_fifty_turns_instead_of_a_promotion() {
    let of = |failed| CanaryRecord { failed, ..CanaryRecord::default() };
    let live = of(share(1, 100));
    assert_eq!(judge_canary(of(share(30, 49)), live, None), None);
    let ended = judge_canary(of(share(10, 50)), live, Some(50));
    assert!(matches!(ended, Some(CanaryVerdict::FailedTurns { p }) if p < 0.01));
    assert_eq!(judge_canary(of(share(1, 50)), live, Some(50)), Some(CanaryVerdict::Promote));
    assert_eq!(judge_canary(of(share(1, 50)), live, Some(51)), None);
    assert_eq!(judge_canary(of(share(1, 50)), live, None), None);
}
