//! `fewshot`: demos from passing training cases, in sets that are compared with the best candidate so far.

use std::collections::BTreeMap;

use engine::demo_output;
use kernel::Purpose;

use super::ending::finalists;
use super::lab::{Candidate, Decision, JudgedRun, Phase, SearchEvent, Stop};
use super::proposal::Changes;
use super::search::Search;
use crate::case::Case;
use crate::prompts::{Demo, TrainablePrompt};
use crate::rewrite::contains_tags;
use crate::runner::CaseStep;
use crate::score::case_score;
use crate::warning::Warning;

/// Maximum sets per run.
pub(crate) const SETS: u32 = 8;
/// Maximum demos per set.
const LARGEST_SET: usize = 4;
/// Maximum bytes per demo as JSON: a full set stays within a prompt's demo limit.
const LARGEST_DEMO: usize = 16_000;
/// Maximum draws until a set is new.
const DRAWS: u64 = 8;
/// Draws per set size; the largest wins, because large sets show more.
const SIZES: u64 = 3;
/// Passing cases that suffice to draw from, and the minibatches per epoch executed at once to find them.
const ENOUGH: usize = 8;
pub(crate) const AT_ONCE: usize = 4;

/// The demos from passing cases, and the progress in using them.
#[derive(Default)]
pub(super) struct Examples {
    /// The latest demos by case position and prompt.
    of_cases: BTreeMap<usize, BTreeMap<String, Demo>>,
    /// The number of compared sets.
    sets: u32,
    /// Whether the training cases offer no further new set.
    is_exhausted: bool,
    /// Whether `auto` began with demos.
    pub(super) came_first: bool,
}

/// Minimum proposals per epoch: all epochs together compare every set.
pub(super) fn proposals(epochs: u32) -> usize {
    usize::try_from(SETS.div_ceil(epochs.max(1))).unwrap_or(1)
}

/// Whether no set is left to compare.
pub(super) fn is_complete(search: &Search<'_>) -> bool {
    search.examples.sets >= SETS || search.examples.is_exhausted
}

/// Total demo characters as JSON.
pub(super) fn length(candidate: &Candidate) -> usize {
    candidate.demos.values().flatten().map(|demo| written(demo).chars().count()).sum()
}

/// Races one set against a candidate. A better set becomes the best candidate.
pub(super) async fn step(search: &mut Search<'_>, base: &Candidate, minibatch: &[usize]) -> Result<(), Stop> {
    gather_enough(search, base, minibatch).await?;
    let Some(demos) = drawn(search, base, None) else {
        let is_exhausted = search.board.has_all(base.number, &search.problem.splits.train);
        if is_exhausted && search.examples.of_cases.is_empty() {
            let message = "no training case passes with a node that could become a demo";
            search.publish(SearchEvent::Warning(Warning::new("no_demos", message))).await?;
        }
        search.examples.is_exhausted |= is_exhausted;
        return Ok(());
    };
    let candidate = candidate(search, base, demos);
    let val = &search.problem.splits.val;
    if search.compare(base, &candidate, val).await? == Decision::Accepted {
        search.best = candidate;
        search.keep().await?;
    }
    Ok(())
}

/// `auto` compares one set with the seed. If it is significantly better, all sets come before rewrites.
pub(super) async fn at_the_start(search: &mut Search<'_>) -> Result<(), Stop> {
    let problem = search.problem;
    let (seed, val) = (problem.seed(), &problem.splits.val);
    let minibatches = search.minibatches();
    let first = minibatches.first().map(Vec::as_slice).unwrap_or_default();
    gather_enough(search, &seed, first).await?;
    let Some(demos) = drawn(search, &seed, Some(LARGEST_SET)) else { return Ok(()) };
    search.proposals = search.proposals.saturating_add(1);
    let probe = candidate(search, &seed, demos);
    let decision = search.compare(&seed, &probe, val).await?;
    if decision == Decision::Rejected || !search.board.compared(&seed, &probe, val).is_significant() {
        return Ok(());
    }
    search.examples.came_first = true;
    search.lab.release_demos();
    search.best = probe;
    search.keep().await?;
    all_sets(search, &minibatches).await?;
    search.pool.add(search.best.clone());
    Ok(())
}

/// `auto` compares the remaining sets with its best candidate.
pub(super) async fn at_the_end(search: &mut Search<'_>) -> Result<(), Stop> {
    let val = search.problem.splits.val.clone();
    let minibatches = search.minibatches();
    // An exhausted budget leaves a pool that was not compared with the best candidate.
    let Some(winner) = finalists(search, &val).into_iter().next() else {
        return all_sets(search, &minibatches).await;
    };
    for minibatch in minibatches.iter().cycle() {
        if is_complete(search) || search.best.number > winner.number {
            break;
        }
        search.proposals = search.proposals.saturating_add(1);
        step(search, &winner, minibatch).await?;
    }
    all_sets(search, &minibatches).await
}

async fn all_sets(search: &mut Search<'_>, minibatches: &[Vec<usize>]) -> Result<(), Stop> {
    for minibatch in minibatches.iter().cycle() {
        if is_complete(search) {
            break;
        }
        search.proposals = search.proposals.saturating_add(1);
        let best = search.best.clone();
        step(search, &best, minibatch).await?;
    }
    Ok(())
}

fn candidate(search: &mut Search<'_>, base: &Candidate, demos: BTreeMap<String, Vec<Demo>>) -> Candidate {
    search.examples.sets += 1;
    search.candidate_of(base, &Changes::new(), demos)
}

/// Like [`gather`], but also executes further minibatches while there are too few passing cases.
async fn gather_enough(search: &mut Search<'_>, base: &Candidate, minibatch: &[usize]) -> Result<(), Stop> {
    gather(search, base, minibatch).await?;
    for more in search.minibatches().iter().take(AT_ONCE) {
        if search.examples.of_cases.len() >= ENOUGH {
            break;
        }
        gather(search, base, more).await?;
    }
    Ok(())
}

/// Executes these cases with a candidate, and keeps the demos from passing cases.
async fn gather(search: &mut Search<'_>, base: &Candidate, minibatch: &[usize]) -> Result<(), Stop> {
    let round = search.round(Phase::Train);
    search.board.fill(search.lab, base, minibatch, round).await?;
    let results = search.lab.recall(base, minibatch, round).await?;
    for (place, samples) in minibatch.iter().zip(results) {
        // Checkpoints are permanent: a visitor's text would stay in them after its erasure everywhere else.
        if search.problem.cases.get(*place).is_some_and(Case::is_of_visitor) {
            continue;
        }
        let passing = samples.iter().filter(|judged| passes(search, judged));
        let shown = passing.map(|judged| demos(search, judged)).find(|shown| !shown.is_empty());
        if let Some(shown) = shown {
            search.examples.of_cases.insert(*place, shown);
        }
    }
    Ok(())
}

fn passes(search: &Search<'_>, JudgedRun { run, verdicts }: &JudgedRun) -> bool {
    let problem = search.problem;
    let scored = case_score(problem.evaluators, verdicts, problem.optimizer.objective.aggregate);
    run.error.is_none() && scored.passed && scored.score.is_some()
}

/// The demos that a passing case offers per prompt.
fn demos(search: &Search<'_>, JudgedRun { run, .. }: &JudgedRun) -> BTreeMap<String, Demo> {
    let prompts = search.problem.prompts.iter().filter(|prompt| prompt.demos_trainable);
    let of = |prompt: &TrainablePrompt| {
        let mut demos = run.trace.iter().filter_map(|step| demo(step, &prompt.name));
        // An output may contain more than its case. Visitor texts must stay data wherever demos are copied to.
        let may_be_shown = |demo: &Demo| {
            let leaks = &search.problem.leaks;
            let is_leak = leaks.leaks_in(&demo.inputs) || leaks.leaks_in(&demo.output);
            let is_tagged = contains_tags(&demo.inputs) || contains_tags(&demo.output);
            written(demo).len() <= LARGEST_DEMO && !is_leak && !is_tagged
        };
        Some((prompt.name.clone(), demos.find(may_be_shown)?))
    };
    prompts.filter_map(of).collect()
}

/// A prompt's demo from a node visit.
fn demo(step: &CaseStep, prompt: &str) -> Option<Demo> {
    let example =
        step.example.as_ref().filter(|example| example.prompts.iter().any(|name| name == prompt))?;
    let output = step.output.as_ref().filter(|_| step.error.is_none())?;
    Some(Demo { inputs: example.inputs.clone(), output: demo_output(output)? })
}

fn written(demo: &Demo) -> String {
    serde_json::to_string(demo).unwrap_or_default()
}

/// Draws new demos for a candidate's prompts, from 1 to 4 cases or from `size` cases; a prompt without a demo in the
/// drawn cases keeps its own. `None` if every drawn set was compared before.
fn drawn(search: &Search<'_>, base: &Candidate, size: Option<usize>) -> Option<BTreeMap<String, Vec<Demo>>> {
    let is_new = |demos: &BTreeMap<String, Vec<Demo>>| {
        let is_same = |known: &Candidate| *known.demos == *demos && known.prompts == base.prompts;
        !search.candidates.iter().any(is_same)
    };
    let first = u64::from(search.examples.sets) * DRAWS;
    (first..first + DRAWS).map(|number| set(search, base, number, size)).find(is_new)
}

/// Draws the set with this number.
fn set(
    search: &Search<'_>,
    base: &Candidate,
    number: u64,
    size: Option<usize>,
) -> BTreeMap<String, Vec<Demo>> {
    let counter = &search.problem.counter;
    let cases: Vec<&BTreeMap<String, Demo>> = search.examples.of_cases.values().collect();
    // Two draws per set: its size and its cases.
    let (first, second) = (number * 2, number * 2 + 1);
    let sizes = (0..SIZES).map(|index| counter.below(Purpose::Demos, first, index, LARGEST_SET) + 1);
    let size = size.or_else(|| sizes.max()).unwrap_or(LARGEST_SET);
    let mut places = counter.shuffled(Purpose::Demos, second, cases.len());
    places.truncate(size);
    // Dataset order, so that the same cases give the same set.
    places.sort_unstable();
    let shown = |name: &String| -> Vec<Demo> {
        let cases = places.iter().filter_map(|place| cases.get(*place));
        cases.filter_map(|case| case.get(name).cloned()).collect()
    };
    let mut demos = (*base.demos).clone();
    for (name, demos) in &mut demos {
        let shown = shown(name);
        if !shown.is_empty() {
            *demos = shown;
        }
    }
    demos
}
