//! What two runs of the same training must have in common, whatever interrupts one of them. Pure but for the files of a difference.

use std::path::Path;

use anyhow::{Result, bail};

use super::found::Found;
use super::models::Received;

/// A row of the table.
struct Row {
    what: String,
    is_passed: bool,
    figure: String,
}

/// What one run has left, and what the models have received from it.
pub(super) struct Trial {
    pub(super) found: Found,
    pub(super) received: Received,
}

/// How often the second run was killed.
pub(super) struct Kills {
    pub(super) wanted: u64,
    pub(super) done: u64,
    /// Calls that may be in flight at each.
    pub(super) calls: u64,
}

/// Prints the table; fails if a row does.
pub(super) fn judge(target: &Path, undisturbed: &Trial, killed: &Trial, kills: &Kills) -> Result<()> {
    let (one, other) = (&undisturbed.found, &killed.found);
    let mut rows = Vec::new();
    let mut row = |what: &str, is_passed: bool, figure: String| {
        rows.push(Row { what: what.to_owned(), is_passed, figure });
    };
    row("kills", kills.done * 2 >= kills.wanted, format!("{} of {}", kills.done, kills.wanted));
    for ((name, one), (_, other)) in one.parts.iter().zip(&other.parts) {
        let is_same = one == other;
        let figure =
            if is_same { format!("{} equal bytes", one.len()) } else { written(target, name, [one, other])? };
        row(name, is_same, figure);
    }
    let is_gapless = |found: &Found| (1..).zip(&found.numbers).all(|(wanted, number)| wanted == *number);
    row(
        "event numbers without a gap",
        is_gapless(one) && is_gapless(other),
        format!("1 to {}", other.numbers.len()),
    );
    for (name, trial) in [("undisturbed", undisturbed), ("killed", killed)] {
        let (found, received) = (&trial.found, &trial.received);
        let stored = |count: usize, rows: i64| i64::try_from(count) == Ok(rows);
        let is_once = stored(found.executed, found.rows.cases)
            && stored(found.announced_checkpoints, found.rows.checkpoints)
            && found.rows.calls == found.rows.different_calls;
        let figure = format!(
            "{} cases, {} checkpoints, {} answered calls",
            found.rows.cases, found.rows.checkpoints, found.rows.calls
        );
        row(&format!("{name}: rows stored and announced once"), is_once, figure);
        let most = if name == "killed" { kills.calls * kills.done } else { 0 };
        let lost = received.requests.checked_sub(found.calls);
        let figure = format!("{} in usage, {} received", found.calls, received.requests);
        row(&format!("{name}: calls, at most {most} more"), lost.is_some_and(|lost| lost <= most), figure);
        let figure = received.repeated.to_string();
        row(&format!("{name}: repeated calls, at most {most}"), received.repeated <= most, figure);
    }
    println!();
    for row in &rows {
        let verdict = if row.is_passed { "pass" } else { "FAIL" };
        println!("  {verdict}  {:<44} {}", row.what, row.figure);
    }
    match rows.iter().filter(|row| !row.is_passed).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} rows failed", rows.len()),
    }
}

/// Writes two texts that differ, and says where.
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
