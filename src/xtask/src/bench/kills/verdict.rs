//! The properties that runs of the same training must share, however they are interrupted. Pure, except for the files
//! that show a difference.

use std::path::Path;

use anyhow::Result;

use super::found::StoredResults;
use crate::bench::outcome::{Gates, Outcome};
use crate::bench::simulated::Received;

/// One run's stored results, and the calls that the models received from it.
pub(super) struct Trial {
    pub(super) found: StoredResults,
    pub(super) received: Received,
}

/// A run with its number of kills.
pub(super) struct Killed {
    pub(super) trial: Trial,
    pub(super) kills: u64,
}

/// Prints the table; fails if a row fails. `wanted`: kills; `in_flight`: calls that each kill may lose.
pub(super) fn judge(
    target: &Path,
    undisturbed: &Trial,
    killed: &[Killed],
    wanted: u64,
    in_flight: u64,
) -> Result<()> {
    let mut gates = Gates::default();
    let done = killed.iter().map(|killed| killed.kills).sum();
    gates.add(of_kills(done, wanted), format!("kills: {done} of {wanted}"));
    of_trial(&mut gates, "undisturbed", undisturbed, 0);
    for (number, Killed { trial, kills }) in (1_u64..).zip(killed) {
        let name = format!("killed {kills} times (training {number})");
        for ((part, one), (_, other)) in undisturbed.found.parts.iter().zip(&trial.found.parts) {
            let is_same = one == other;
            let figure = if is_same {
                format!("{} equal bytes", one.len())
            } else {
                written(target, &format!("{number}-{part}"), [one, other])?
            };
            gates.add(Outcome::from_passed(is_same), format!("{name}: {part}: {figure}"));
        }
        of_trial(&mut gates, &name, trial, in_flight * kills);
    }
    println!();
    gates.print();
    gates.conclude()
}

/// All kills must have happened.
const fn of_kills(done: u64, wanted: u64) -> Outcome {
    Outcome::from_passed(done >= wanted && done > 0)
}

/// One run's rows. `most`: maximum received calls beyond those in its usage.
fn of_trial(gates: &mut Gates, name: &str, Trial { found, received }: &Trial, most: u64) {
    let mut row = |is_passed: bool, figure: String| {
        gates.add(Outcome::from_passed(is_passed), format!("{name}: {figure}"));
    };
    let is_gapless = (1..).zip(&found.numbers).all(|(wanted, number)| wanted == *number);
    row(is_gapless, format!("event numbers without a gap: 1 to {}", found.numbers.len()));
    let stored = |count: usize, rows: i64| i64::try_from(count) == Ok(rows);
    let rows = &found.rows;
    let is_once = stored(found.executed, rows.cases)
        && stored(found.announced_checkpoints, rows.checkpoints)
        && rows.calls == rows.different_calls;
    row(
        is_once,
        format!(
            "rows stored and announced once: {} cases, {} checkpoints, {} answered calls",
            rows.cases, rows.checkpoints, rows.calls
        ),
    );
    let lost = received.requests.checked_sub(found.calls);
    row(
        lost.is_some_and(|lost| lost <= most),
        format!("calls, at most {most} more: {} in usage, {} received", found.calls, received.requests),
    );
    row(received.repeated <= most, format!("repeated calls, at most {most}: {}", received.repeated));
}

/// Writes two texts that differ, and returns where they differ.
fn written(target: &Path, name: &str, texts: [&String; 2]) -> Result<String> {
    for (text, of) in texts.iter().zip(["undisturbed", "killed"]) {
        std::fs::write(target.join(format!("bench-kills-{name}-{of}.txt")), text)?;
    }
    let [one, other] = texts;
    let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &String| {
        let start = text.floor_char_boundary(at.saturating_sub(60));
        let end = text.floor_char_boundary((at + 60).min(text.len()));
        text.get(start..end).unwrap_or_default().to_owned()
    };
    Ok(format!(
        "differ at byte {at}: …{}… and …{}…; see {}",
        around(one),
        around(other),
        target.join(format!("bench-kills-{name}-*.txt")).display()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::found::Rows;
    use super::*;

    #[test]
    fn all_kills_must_have_happened() {
        assert_eq!(of_kills(100, 100), Outcome::Passed);
        assert_eq!(
            [(50, 100), (99, 100), (0, 0)].map(|(done, planned)| of_kills(done, planned)),
            [Outcome::Failed; 3]
        );
    }

    fn trial(requests: u64, result: &str) -> Trial {
        let rows = Rows { cases: 2, checkpoints: 1, calls: 5, different_calls: 5 };
        let parts = vec![("result", result.to_owned())];
        let found = StoredResults {
            parts,
            numbers: vec![1, 2],
            executed: 2,
            announced_checkpoints: 1,
            rows,
            calls: 5,
        };
        Trial { found, received: Received { requests, repeated: requests - 5 } }
    }

    #[test]
    fn each_training_must_be_equal_and_may_lose_what_was_in_flight() {
        let folder = std::env::temp_dir();
        let judge = |trials: Vec<(Trial, u64)>| {
            let killed: Vec<Killed> =
                trials.into_iter().map(|(trial, kills)| Killed { trial, kills }).collect();
            judge(&folder, &trial(5, "a"), &killed, 3, 4).is_ok()
        };
        assert!(judge(vec![(trial(13, "a"), 2), (trial(9, "a"), 1)]));
        assert!(!judge(vec![(trial(13, "a"), 2)]), "a kill is missing");
        assert!(!judge(vec![(trial(13, "a"), 2), (trial(10, "a"), 1)]), "a call too many");
        assert!(!judge(Vec::new()));
    }
}
