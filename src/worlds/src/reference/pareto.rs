//! GEPA as published: a gate with three training cases, parents from the Pareto front over all scoring cases,
//! round-robin prompts, and merges.

use std::collections::BTreeSet;

use super::super::cases::Case;
use super::super::random::{Draw, mean};
use super::models::{Executed, Models, Prompts, Spent};

/// Training cases per gate.
const MINIBATCH: usize = 3;
/// Maximum merges per run, pairs tried per merge, and scoring cases in its gate.
const MERGES: usize = 5;
const PAIRS: usize = 10;
const MERGE_CASES: usize = 5;
/// Differences up to this are rounding.
pub(super) const NOISE: f64 = 1e-9;

struct Program {
    prompts: Prompts,
    /// Scores by scoring case.
    scores: Vec<f64>,
    parents: Vec<usize>,
    /// The next prompt to rewrite, by position.
    next: usize,
}

impl Program {
    fn mean(&self) -> f64 {
        mean(self.scores.iter().copied())
    }
}

struct Pool {
    programs: Vec<Program>,
    draw: Draw,
    iteration: usize,
    merges: usize,
    /// Whether the last iteration found a program.
    is_merge_due: bool,
    /// Merged pairs with their ancestor.
    merged: BTreeSet<(usize, usize, usize)>,
}

/// The program with the best mean score; the seed if nothing could be scored.
pub(super) fn run(models: &mut Models<'_>, seed: u64) -> Prompts {
    let first = models.world.seed_prompts();
    let mut pool = Pool {
        programs: Vec::new(),
        draw: Draw::new(seed, "gepa"),
        iteration: 0,
        merges: 0,
        is_merge_due: false,
        merged: BTreeSet::new(),
    };
    if pool.add(models, first.clone(), Vec::new(), 0).is_ok() {
        while pool.step(models).is_ok() {}
    }
    let mut best: Option<&Program> = None;
    for program in &pool.programs {
        if best.is_none_or(|known| program.mean() > known.mean() + NOISE) {
            best = Some(program);
        }
    }
    best.map_or(first, |program| program.prompts.clone())
}

impl Pool {
    /// Scores a program on all scoring cases.
    fn add(
        &mut self,
        models: &mut Models<'_>,
        prompts: Prompts,
        parents: Vec<usize>,
        next: usize,
    ) -> Result<(), Spent> {
        let executed = execute(models, &prompts, &models.val.clone())?;
        let scores = executed.iter().map(|executed| executed.score).collect();
        self.programs.push(Program { prompts, scores, parents, next });
        Ok(())
    }

    fn step(&mut self, models: &mut Models<'_>) -> Result<(), Spent> {
        self.iteration += 1;
        if std::mem::take(&mut self.is_merge_due) && self.merges < MERGES && self.merge(models)? {
            return Ok(());
        }
        self.mutate(models)
    }

    fn mutate(&mut self, models: &mut Models<'_>) -> Result<(), Spent> {
        let Some(at) = self.parent() else { return Err(Spent) };
        let names = models.world.prompt_names();
        let batch = self.minibatch(&models.train);
        let Some(parent) = self.programs.get_mut(at) else { return Err(Spent) };
        let prompts = parent.prompts.clone();
        let place = parent.next;
        parent.next = (place + 1) % names.len().max(1);
        let next = parent.next;
        let before = execute(models, &prompts, &batch)?;
        if before.iter().all(Executed::has_passed) {
            return Ok(());
        }
        let Some(name) = names.get(place) else { return Ok(()) };
        let text = prompts.get(*name).map(String::as_str).unwrap_or_default();
        let reply = models.rewrite(name, text, &before, &[])?;
        let mut child = prompts.clone();
        child.insert((*name).to_owned(), extracted(&reply));
        let after = execute(models, &child, &batch)?;
        if sum(&after) > sum(&before) + NOISE {
            self.add(models, child, vec![at], next)?;
            self.is_merge_due = true;
        }
        Ok(())
    }

    /// Training cases in epochs: all of them in one order, then in another.
    fn minibatch(&self, train: &[Case]) -> Vec<Case> {
        let each = train.len().div_ceil(MINIBATCH).max(1);
        let mut order: Vec<usize> = (0..train.len()).collect();
        self.draw.for_key("batch").at(self.iteration / each).shuffle(&mut order);
        let first = (self.iteration % each) * MINIBATCH;
        let places = order.iter().cycle().skip(first).take(MINIBATCH.min(train.len()));
        places.filter_map(|place| train.get(*place).cloned()).collect()
    }

    /// The best programs per scoring case, without dominated programs.
    fn fronts(&self) -> Vec<BTreeSet<usize>> {
        let cases = self.programs.first().map_or(0, |program| program.scores.len());
        let of = |case: usize| -> BTreeSet<usize> {
            let score = |program: &Program| program.scores.get(case).copied().unwrap_or_default();
            let best = self.programs.iter().map(score).fold(0.0, f64::max);
            let programs = self.programs.iter().enumerate();
            programs.filter(|(_, program)| score(program) >= best - NOISE).map(|(at, _)| at).collect()
        };
        let mut fronts: Vec<BTreeSet<usize>> = (0..cases).map(of).collect();
        // Worst first: a program that is never alone in a front is dropped.
        let mut order: Vec<usize> = (0..self.programs.len()).collect();
        let score = |at: &usize| self.programs.get(*at).map_or(0.0, Program::mean);
        order.sort_by(|one, other| score(one).total_cmp(&score(other)));
        for at in order {
            if fronts.iter().all(|front| !front.contains(&at) || front.len() > 1) {
                for front in &mut fronts {
                    front.remove(&at);
                }
            }
        }
        fronts
    }

    /// Draws a program, weighted by its fronts.
    fn parent(&self) -> Option<usize> {
        let all: Vec<usize> = self.fronts().into_iter().flatten().collect();
        self.draw.for_key("parent").at(self.iteration).choose(&all).copied()
    }

    fn ancestors(&self, program: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![program];
        while let Some(at) = open.pop() {
            let parents = self.programs.get(at).map(|program| program.parents.clone()).unwrap_or_default();
            open.extend(parents.into_iter().filter(|parent| found.insert(*parent)));
        }
        found
    }

    /// Merges two front programs; `false` if no pair can be merged.
    fn merge(&mut self, models: &mut Models<'_>) -> Result<bool, Spent> {
        let draw = self.draw.for_key("merge").at(self.iteration);
        let fronts: BTreeSet<usize> = self.fronts().into_iter().flatten().collect();
        let front: Vec<usize> = fronts.into_iter().collect();
        for at in 0..PAIRS {
            let mut pair = front.clone();
            draw.for_key("pair").at(at).shuffle(&mut pair);
            let [first, second, ..] = pair.as_slice() else { return Ok(false) };
            let (first, second) = (*first.min(second), *first.max(second));
            let (of_first, of_second) = (self.ancestors(first), self.ancestors(second));
            if of_first.contains(&second) || of_second.contains(&first) {
                continue;
            }
            let common: Vec<usize> = of_first.intersection(&of_second).copied().collect();
            let Some(ancestor) = draw.for_key("ancestor").at(at).choose(&common).copied() else { continue };
            let Some(child) = self.merged(first, second, ancestor) else { continue };
            if !self.merged.insert((first, second, ancestor)) {
                continue;
            }
            let mut places: Vec<usize> = (0..models.val.len()).collect();
            draw.for_key("cases").shuffle(&mut places);
            places.truncate(MERGE_CASES);
            let cases: Vec<Case> = places.iter().filter_map(|at| models.val.get(*at).cloned()).collect();
            let executed = execute(models, &child, &cases)?;
            let known = |program: usize| -> f64 {
                let scores = self.programs.get(program).map(|program| program.scores.as_slice());
                places.iter().filter_map(|at| scores?.get(*at)).sum()
            };
            if sum(&executed) >= known(first).max(known(second)) - NOISE {
                self.add(models, child, vec![first, second], 0)?;
                self.merges += 1;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes each prompt from the program that changed it since the ancestor; if both did, from the better one.
    /// `None` if the result equals a parent, or if the ancestor was better.
    fn merged(&self, first: usize, second: usize, ancestor: usize) -> Option<Prompts> {
        let (one, other) = (self.programs.get(first)?, self.programs.get(second)?);
        let old = self.programs.get(ancestor)?;
        if old.mean() > one.mean().min(other.mean()) {
            return None;
        }
        let (better, worse) = if one.mean() >= other.mean() { (one, other) } else { (other, one) };
        let chosen = |(name, text): (&String, &String)| {
            let known = old.prompts.get(name);
            let taken = if known == Some(text) { worse.prompts.get(name)? } else { text };
            Some((name.clone(), taken.clone()))
        };
        let child: Prompts = better.prompts.iter().filter_map(chosen).collect();
        (child != better.prompts && child != worse.prompts).then_some(child)
    }
}

pub(super) fn execute(
    models: &mut Models<'_>,
    prompts: &Prompts,
    cases: &[Case],
) -> Result<Vec<Executed>, Spent> {
    cases.iter().map(|case| models.execute(prompts, case)).collect()
}

pub(super) fn sum(executed: &[Executed]) -> f64 {
    executed.iter().map(|executed| executed.score).sum()
}

/// Extracts the prompt from a reply: in its tag, else in its fence, else the whole reply.
pub(super) fn extracted(reply: &str) -> String {
    let between = |begin: &str, end: &str| {
        let (_, inside) = reply.split_once(begin)?;
        Some(inside.rsplit_once(end)?.0.trim().to_owned())
    };
    let found = between("<new_prompt>", "</new_prompt>").or_else(|| between("```\n", "```"));
    found.unwrap_or_else(|| reply.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(texts: [&str; 2], scores: &[f64], parents: &[usize]) -> Program {
        let prompts = ["a", "b"].iter().zip(texts).map(|(name, text)| ((*name).to_owned(), text.to_owned()));
        Program { prompts: prompts.collect(), scores: scores.to_vec(), parents: parents.to_vec(), next: 0 }
    }

    fn pool(programs: Vec<Program>) -> Pool {
        let (draw, merged) = (Draw::new(1, "test"), BTreeSet::new());
        Pool { programs, draw, iteration: 0, merges: 0, is_merge_due: false, merged }
    }

    #[test]
    fn dominated_programs_are_not_parents() {
        let programs = vec![
            program(["s", "s"], &[0.0, 0.0, 0.5], &[]),
            program(["x", "s"], &[1.0, 0.0, 0.5], &[0]),
            program(["s", "y"], &[0.0, 1.0, 0.5], &[0]),
        ];
        let fronts = pool(programs).fronts();
        let all: BTreeSet<usize> = fronts.iter().flatten().copied().collect();
        assert_eq!(all, BTreeSet::from([1, 2]));
        assert_eq!(fronts[2], BTreeSet::from([1, 2]));
    }

    #[test]
    fn a_merge_takes_the_changed_prompts_of_each_program() {
        let programs = vec![
            program(["s", "s"], &[0.0, 0.0], &[]),
            program(["x", "s"], &[1.0, 0.0], &[0]),
            program(["s", "y"], &[0.0, 1.0], &[0]),
            program(["z", "s"], &[0.0, 0.5], &[0]),
        ];
        let pool = pool(programs);
        let texts = |merged: Prompts| merged.into_values().collect::<Vec<String>>();
        assert_eq!(pool.merged(1, 2, 0).map(texts), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(pool.merged(1, 3, 0), None, "both have changed the same prompt");
        assert_eq!(pool.ancestors(2), BTreeSet::from([0]));
    }

    #[test]
    fn a_prompt_is_extracted_from_its_reply() {
        assert_eq!(extracted("Sure!\n<new_prompt>\na\nb\n</new_prompt> Done."), "a\nb");
        assert_eq!(extracted("Sure!\n```\na\n```\nDone."), "a");
        assert_eq!(extracted(" I cannot. "), "I cannot.");
    }
}
