//! A bench's gate outcomes, and their combined result. Pure, except for printing.

use anyhow::{Result, bail};

/// A gate's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// A measurement that the gate needs did not run.
    NotMeasured,
}

impl Outcome {
    pub(super) const fn from_passed(is_passed: bool) -> Self {
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

/// A bench's gates with their outcomes.
#[derive(Debug, Default)]
pub(super) struct Gates(Vec<(Outcome, String)>);

impl Gates {
    pub(super) fn add(&mut self, outcome: Outcome, gate: String) {
        self.0.push((outcome, gate));
    }

    /// Adds a part's gates, prefixed with its name.
    pub(super) fn extend(&mut self, part: &str, gates: Self) {
        self.0.extend(gates.0.into_iter().map(|(outcome, gate)| (outcome, format!("{part}: {gate}"))));
    }

    /// Prints one line per gate.
    pub(super) fn print(&self) {
        for (outcome, gate) in &self.0 {
            println!("  {:<12} {gate}", outcome.as_str());
        }
    }

    fn names_with(&self, wanted: Outcome) -> Vec<&str> {
        let found = self.0.iter().filter(|(outcome, _)| *outcome == wanted);
        found.map(|(_, gate)| gate.as_str()).collect()
    }

    /// Succeeds only if each gate was measured and has passed.
    ///
    /// # Errors
    /// Names the gates that failed, and those that were not measured.
    pub(super) fn conclude(&self) -> Result<()> {
        let [passed, failed, unmeasured] =
            [Outcome::Passed, Outcome::Failed, Outcome::NotMeasured].map(|outcome| self.names_with(outcome));
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
    pub(super) fn count(&self, outcome: Outcome) -> usize {
        self.names_with(outcome).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_measured_gates_count_as_success() {
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
