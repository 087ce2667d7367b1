//! Critiques and rewrites that are always accepted.

use super::super::cases::Case;
use super::models::{Executed, Models, Prompts, Spent};

/// The simulated reflector's prompt tags. A request for the bare prompt gets none.
const TAGS: [&str; 2] = ["<new_prompt>\n", "\n</new_prompt>"];

/// The cases for an algorithm without splits, which trains and measures on the same ones.
#[derive(Debug, Clone, Copy)]
pub(super) enum CaseSelection {
    /// Training and validation cases.
    All,
    /// Training cases.
    Train,
}

/// The best checkpoint; the seed without one. `is_paired`: checkpoints have the prompts that were scored.
pub(super) fn run(models: &mut Models<'_>, selection: CaseSelection, is_paired: bool) -> Prompts {
    let cases = match selection {
        CaseSelection::All => models.all.clone(),
        CaseSelection::Train => models.train.clone(),
    };
    let mut search = Rewrites { cases, prompts: models.world.seed_prompts(), best: None, is_paired };
    while let Ok(true) = search.epoch(models) {}
    search.best.map_or_else(|| models.world.seed_prompts(), |(_, prompts)| prompts)
}

struct Rewrites {
    cases: Vec<Case>,
    prompts: Prompts,
    /// The best checkpoint with its score.
    best: Option<(usize, Prompts)>,
    is_paired: bool,
}

impl Rewrites {
    /// Executes all cases, then rewrites all prompts; `false` if no case failed.
    fn epoch(&mut self, models: &mut Models<'_>) -> Result<bool, Spent> {
        let mut failing: Vec<Executed> = Vec::new();
        let mut passed = 0;
        for case in &self.cases {
            let executed = models.execute(&self.prompts, case)?;
            if executed.has_passed() {
                passed += 1;
            } else {
                failing.push(executed);
            }
        }
        if self.is_paired {
            self.keep(passed);
        }
        if failing.is_empty() {
            self.keep(passed);
            return Ok(false);
        }
        for (name, text) in self.prompts.clone() {
            let mut critiques = Vec::new();
            for executed in &failing {
                critiques.push(models.criticize(&name, &text, executed)?);
            }
            let reply = models.rewrite(&name, &text, &failing, &critiques)?;
            // Text around the prompt becomes part of it.
            let text = TAGS.iter().fold(reply, |reply, tag| reply.replace(tag, ""));
            self.prompts.insert(name, text);
        }
        if !self.is_paired {
            self.keep(passed);
        }
        Ok(true)
    }

    fn keep(&mut self, passed: usize) {
        if self.best.as_ref().is_none_or(|(best, _)| passed > *best) {
            self.best = Some((passed, self.prompts.clone()));
        }
    }
}
