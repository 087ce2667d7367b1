//! `gepa`: a pool of candidates that each win somewhere. Its races use only a subset of the scoring cases, which
//! grows while no proposal succeeds.

use kernel::Purpose;

use super::ending::{FINALISTS, rounded};
use super::lab::{Candidate, Decision, Phase, Stop};
use super::proposal::{Changes, NewText, Ordinals, lessons, rewrite};
use super::search::Search;
use super::textgrad;
use crate::numbers::NOISE;
use crate::request::OptimizerName;

/// The initial subset size.
const SUBSET: usize = 12;
/// Consecutive failed proposals before the subset grows by the factor 8 / 5.
const PATIENCE: u32 = 4;
/// Pool members kept when the subset grows; the others leave the pool.
const SURVIVORS: usize = 6;
/// The minimum probability that the best candidate becomes the parent.
const BEST: f64 = 0.6;
/// Maximum merges per run, and the proposals between two merges.
const MERGES: u32 = 5;
const MERGE_INTERVAL: u32 = 4;
/// Consecutive rejections after which another algorithm continues.
const STALLED: u32 = 8;

/// A parent with new texts for some prompts.
type Proposed = (Candidate, Changes);

/// The remaining candidates and their scoring subset size.
pub(super) struct Pool {
    /// The members, the seed first.
    members: Vec<Candidate>,
    subset: usize,
    without_success: u32,
    /// Consecutive rejections on all scoring cases.
    rejected: u32,
    proposals: u32,
    merges: u32,
}

impl Pool {
    pub(super) fn new(seed: Candidate, scoring_cases: usize) -> Self {
        let subset = SUBSET.min(scoring_cases);
        Self { members: vec![seed], subset, without_success: 0, rejected: 0, proposals: 0, merges: 0 }
    }

    /// Adds a candidate that was found before the pool started.
    pub(super) fn add(&mut self, candidate: Candidate) {
        self.members.push(candidate);
    }

    /// Whether the pool has stalled: no proposal succeeds on all scoring cases.
    pub(super) fn is_stalled(&self) -> bool {
        self.rejected >= STALLED
    }
}

/// Makes one proposal and races it.
pub(super) async fn step(search: &mut Search<'_>, minibatch: &[usize]) -> Result<(), Stop> {
    let val = &search.problem.splits.val;
    search.pool.proposals += 1;
    let subset = val.get(..search.pool.subset).unwrap_or_default();
    let round = search.round(Phase::Val);
    for member in &search.pool.members {
        search.board.fill(search.lab, member, subset, round).await?;
    }
    let proposed = match merge(search, subset) {
        Some(merged) => Some(merged),
        None => mutate(search, subset, minibatch).await?,
    };
    let Some((parent, changes)) = proposed else { return Ok(()) };
    let candidate = search.candidate(&parent, &changes);
    match search.compare(&parent, &candidate, subset).await? {
        Decision::Accepted => {
            search.pool.members.push(candidate);
            (search.pool.without_success, search.pool.rejected) = (0, 0);
        }
        Decision::Rejected => {
            search.pool.without_success += 1;
            search.pool.rejected = if search.pool.subset == val.len() { search.pool.rejected + 1 } else { 0 };
        }
    }
    if search.pool.without_success >= PATIENCE && search.pool.subset < val.len() {
        grow(search);
    }
    Ok(())
}

/// Makes the best member the best candidate, if it is better on their shared cases. The last epoch tries more
/// members, among which fresh samples choose.
pub(super) async fn end_epoch(search: &mut Search<'_>) -> Result<(), Stop> {
    let val = &search.problem.splits.val;
    let subset = val.get(..search.pool.subset).unwrap_or_default();
    let is_last = search.epoch == search.problem.optimizer.epochs;
    let seed = search.problem.seed().number;
    let tried = ranked(search, subset).into_iter().take(if is_last { FINALISTS } else { 1 });
    // The seed needs no more cases to be beaten; if it is still the best, the epoch executes them.
    for candidate in tried.filter(|candidate| candidate.number != seed) {
        let round = search.round(Phase::Val);
        search.board.fill(search.lab, &candidate, val, round).await?;
        if search.board.compared(&search.best, &candidate, val).mean_diff > NOISE {
            search.best = candidate;
        }
    }
    if search.best.number != seed { search.keep().await } else { Ok(()) }
}

/// Adds scoring cases, for the best members only.
fn grow(search: &mut Search<'_>) {
    let val = &search.problem.splits.val;
    let seed = search.problem.seed();
    let before = val.get(..search.pool.subset).unwrap_or_default();
    let mut left = ranked(search, before);
    left.retain(|member| member.number != seed.number);
    left.truncate(SURVIVORS);
    left.insert(0, seed);
    search.pool.members = left;
    search.pool.subset = (search.pool.subset * 8).div_ceil(5).min(val.len());
    search.pool.without_success = 0;
}

/// The members, best first; ties go to the older.
fn ranked(search: &Search<'_>, places: &[usize]) -> Vec<Candidate> {
    let mut scored: Vec<(f64, &Candidate)> =
        search.pool.members.iter().map(|member| (search.board.mean(member, places), member)).collect();
    scored.sort_by(|(one, first), (other, second)| {
        rounded(*other).total_cmp(&rounded(*one)).then(first.number.cmp(&second.number))
    });
    scored.into_iter().map(|(_, member)| member.clone()).collect()
}

/// The best member.
fn best(search: &Search<'_>, places: &[usize]) -> Candidate {
    ranked(search, places).into_iter().next().unwrap_or_else(|| search.problem.seed())
}

/// Draws the best member, or a winner on some case, weighted by its wins.
fn parent(search: &Search<'_>, places: &[usize]) -> Candidate {
    let counter = &search.problem.counter;
    let number = u64::from(search.proposals);
    let turn = u64::from(search.pool.proposals);
    let best = best(search, places);
    if counter.unit(Purpose::Parent, number, turn) < BEST {
        return best;
    }
    let mut winners: Vec<&Candidate> = Vec::new();
    for place in places {
        let score = |member: &Candidate| search.board.score(member.number, *place).unwrap_or_default();
        let most = search.pool.members.iter().map(score).fold(0.0, f64::max);
        winners.extend(search.pool.members.iter().filter(|member| score(member) >= most - NOISE));
    }
    let drawn = counter.below(Purpose::Pareto, number, turn, winners.len());
    winners.get(drawn).map_or(best, |winner| (*winner).clone())
}

/// Draws a parent and new texts for all blamed prompts. `auto` alternates with `textgrad`, because the models
/// determine whether critiques are worth their calls.
async fn mutate(
    search: &mut Search<'_>,
    places: &[usize],
    minibatch: &[usize],
) -> Result<Option<Proposed>, Stop> {
    let is_auto = search.problem.optimizer.name == OptimizerName::Auto;
    if is_auto && !search.pool.proposals.is_multiple_of(2) {
        let parent = best(search, places);
        let changes = textgrad::propose(search, &parent, minibatch).await?;
        return Ok(changes.map(|changes| (parent, changes)));
    }
    let parent = parent(search, places);
    let changes = rewrites(search, &parent, minibatch).await?;
    Ok(changes.map(|changes| (parent, changes)))
}

/// New texts for all blamed prompts.
async fn rewrites(
    search: &mut Search<'_>,
    parent: &Candidate,
    minibatch: &[usize],
) -> Result<Option<Changes>, Stop> {
    let problem = search.problem;
    let Some(lessons) = lessons(search, parent, minibatch, true).await? else { return Ok(None) };
    let mut changes = Changes::new();
    for prompt in problem.prompts {
        let Some(records) = lessons.get(&prompt.name) else { continue };
        let text = rewrite(search, parent, prompt, records, &mut Ordinals::default()).await?;
        changes.extend(text.map(|text| (prompt.name.clone(), text)));
    }
    Ok((!changes.is_empty()).then_some(changes))
}

/// Merges into the best member the prompts that only the second-best member has changed from the seed.
fn merge(search: &mut Search<'_>, places: &[usize]) -> Option<Proposed> {
    if search.pool.merges >= MERGES || !search.pool.proposals.is_multiple_of(MERGE_INTERVAL) {
        return None;
    }
    let ranked = ranked(search, places);
    let (best, second) = (ranked.first()?.clone(), ranked.get(1)?);
    let seed = search.problem.seed();
    let is_seed =
        |candidate: &Candidate, name: &String| candidate.prompts.get(name) == seed.prompts.get(name);
    let missing = second.prompts.iter().filter(|(name, _)| is_seed(&best, name) && !is_seed(second, name));
    let rationale = || Some(format!("From candidate {}.", second.number));
    let changes: Changes = missing
        .map(|(name, text)| (name.clone(), NewText { text: text.clone(), rationale: rationale() }))
        .collect();
    if changes.is_empty() {
        return None;
    }
    search.pool.merges += 1;
    Some((best, changes))
}
