//! What a bench has found about each of its gates, and what all of them say together. Pure but for what is printed.

use anyhow::{Result, bail};

/// What was found about a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Nothing that the gate needs has run.
    NotMeasured,
}

impl Outcome {
    pub(super) const fn of(is_passed: bool) -> Self {
        if is_passed { Self::Passed } else { Self::Failed }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotMeasured => "not measured",
        }
    }
}

/// The gates of a bench, with their outcomes.
#[derive(Debug, Default)]
pub(super) struct Gates(Vec<(Outcome, String)>);

impl Gates {
    pub(super) fn add(&mut self, outcome: Outcome, gate: String) {
        self.0.push((outcome, gate));
    }

    /// Adds those of a part, which its name precedes.
    pub(super) fn extend(&mut self, part: &str, gates: Self) {
        self.0.extend(gates.0.into_iter().map(|(outcome, gate)| (outcome, format!("{part}: {gate}"))));
    }

    /// One line for each.
    pub(super) fn print(&self) {
        for (outcome, gate) in &self.0 {
            println!("  {:<12} {gate}", outcome.as_str());
        }
    }

    fn of(&self, wanted: Outcome) -> Vec<&str> {
        let found = self.0.iter().filter(|(outcome, _)| *outcome == wanted);
        found.map(|(_, gate)| gate.as_str()).collect()
    }

    /// Ends with success only if each gate was measured and has passed.
    ///
    /// # Errors
    /// Names the gates that failed, and those that were not measured.
    pub(super) fn conclude(&self) -> Result<()> {
        let [passed, failed, unmeasured] =
            [Outcome::Passed, Outcome::Failed, Outcome::NotMeasured].map(|outcome| self.of(outcome));
        println!("\n{} passed, {} FAILED, {} not measured", passed.len(), failed.len(), unmeasured.len());
        if !failed.is_empty() {
            bail!("gates that failed:\n  {}", failed.join("\n  "));
        }
        if passed.is_empty() || !unmeasured.is_empty() {
            bail!("no gate failed, but these were not measured:\n  {}", unmeasured.join("\n  "));
        }
        println!("all gates passed");
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn count(&self, wanted: Outcome) -> usize {
        self.of(wanted).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gates_that_were_measured_make_a_success() {
        let gates = |outcomes: &[Outcome]| {
            let mut gates = Gates::default();
            outcomes.iter().for_each(|outcome| gates.add(*outcome, "a gate".to_owned()));
            gates.conclude().map_err(|error| error.to_string())
        };
        assert_eq!(gates(&[Outcome::Passed, Outcome::Passed]), Ok(()));
        assert!(gates(&[Outcome::Passed, Outcome::NotMeasured]).unwrap_err().contains("not measured"));
        assert!(gates(&[Outcome::NotMeasured, Outcome::Failed]).unwrap_err().contains("failed:\n  a gate"));
        assert!(gates(&[]).is_err());
    }
}
