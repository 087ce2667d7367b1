//! A world's models, with a call count.

use std::collections::BTreeMap;

use super::super::cases::{Case, Split};
use super::super::definition::World;

/// The lowest passing score.
const PERFECT: f64 = 1.0 - 1e-9;

/// Prompt texts by name.
pub(super) type Prompts = BTreeMap<String, String>;

/// The budget is spent.
#[derive(Debug)]
pub(super) struct Spent;

/// A world's models within a budget.
pub(super) struct Models<'w> {
    pub(super) world: &'w World,
    /// All cases except the final test cases.
    pub(super) all: Vec<Case>,
    pub(super) train: Vec<Case>,
    /// Without splits the same cases as `train`.
    pub(super) val: Vec<Case>,
    budget: u64,
    calls: u64,
    seed: u64,
}

/// An executed case.
#[derive(Debug, Clone)]
pub(super) struct Executed {
    pub(super) score: f64,
    /// Its record in a request.
    record: String,
}

impl Executed {
    pub(super) fn has_passed(&self) -> bool {
        self.score >= PERFECT
    }
}

impl<'w> Models<'w> {
    pub(super) fn new(world: &'w World, budget: u64, seed: u64) -> Self {
        let of = |splits: &[Split]| -> Vec<Case> {
            let is_of = |case: &Case| case.split.is_none_or(|known| splits.contains(&known));
            world.cases().into_iter().filter(is_of).collect()
        };
        let (all, train, val) = (of(&[Split::Train, Split::Val]), of(&[Split::Train]), of(&[Split::Val]));
        let seed = seed.rotate_left(32);
        Self { world, all, train, val, budget, calls: 0, seed }
    }

    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Pays for calls and returns a unique seed for them.
    fn pay(&mut self, calls: usize) -> Result<u64, Spent> {
        let calls = u64::try_from(calls).unwrap_or(u64::MAX);
        let after = self.calls.saturating_add(calls);
        if after > self.budget {
            return Err(Spent);
        }
        self.calls = after;
        Ok(self.seed.wrapping_add(after))
    }

    pub(super) fn execute(&mut self, prompts: &Prompts, case: &Case) -> Result<Executed, Spent> {
        let seed = self.pay(self.world.prompt_names().len())?;
        let got = self.world.execute(prompts, &BTreeMap::new(), case, seed);
        let expected = case.expected_output.as_str().map(str::to_owned);
        let expected = expected.unwrap_or_else(|| case.expected_output.to_string());
        let line =
            if got.contains('\n') { serde_json::Value::from(got.clone()).to_string() } else { got.clone() };
        let score = self.world.score(&got, case);
        let feedback = if score >= PERFECT { "" } else { "\nFeedback: The case has failed." };
        let record = format!("Input: {}\nExpected: {expected}\nGot: {line}{feedback}", case.message);
        Ok(Executed { score, record })
    }

    /// Requests a case critique.
    pub(super) fn criticize(&mut self, name: &str, text: &str, executed: &Executed) -> Result<String, Spent> {
        self.reflect(&format!("{}\n\n{}\n\nWrite a critique.", shown(name, text), executed.record))
    }

    /// Requests a better text and returns the reply. `critiques`: one per case.
    pub(super) fn rewrite(
        &mut self,
        name: &str,
        text: &str,
        executed: &[Executed],
        critiques: &[String],
    ) -> Result<String, Spent> {
        let mut parts = vec![shown(name, text)];
        let mut critiques = critiques.iter();
        parts.extend(executed.iter().map(|executed| match critiques.next() {
            Some(critique) => format!("{} {critique}", executed.record),
            None => executed.record.clone(),
        }));
        parts.push("Answer with the new prompt inside <new_prompt> and </new_prompt>.".to_owned());
        self.reflect(&parts.join("\n\n"))
    }

    fn reflect(&mut self, request: &str) -> Result<String, Spent> {
        let seed = self.pay(1)?;
        Ok(self.world.reflect(&[("system", "You improve a prompt."), ("user", request)], seed))
    }
}

fn shown(name: &str, text: &str) -> String {
    format!("<prompt name=\"{name}\">\n{text}\n</prompt>")
}
