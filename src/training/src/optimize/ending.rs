//! The end of a search: the winner among the best, whether it is better than the seed by more than chance, and the test.

use super::board::Board;
use super::fewshot;
use super::lab::{Candidate, Lab, Phase, Round, Stop};
use super::search::Search;
use crate::compare::{Comparison, WeightedScore, interval, kfold};
use crate::numbers::{NOISE, float, mean};
use crate::splits::TestEstimate;

/// Candidates that are executed again at the end.
pub(crate) const FINALISTS: usize = 3;
/// Cases that are executed with the seed and a finalist in turn, so that a budget that ends leaves pairs.
const BLOCK: usize = 4;
/// Cases without a gain that are added to those that a candidate was executed on, to rank it.
const DOUBT: f64 = 8.0;
/// Cases of which fresh samples decide; of fewer the earlier results do.
const FEWEST: usize = 8;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// All epochs were done.
    Epochs,
    /// The budget is spent.
    Budget,
    /// The time is spent.
    MaxSeconds,
    /// The score that was wanted is reached.
    TargetScore,
    /// No new best for long.
    Patience,
    /// No case for training could be better.
    TrainSaturated,
    /// No scoring case could be better.
    NoHeadroom,
    /// The run was cancelled.
    Cancelled,
}

impl StopReason {
    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Epochs => "epochs",
            Self::Budget => "budget",
            Self::MaxSeconds => "max_seconds",
            Self::TargetScore => "target_score",
            Self::Patience => "patience",
            Self::TrainSaturated => "train_saturated",
            Self::NoHeadroom => "no_headroom",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Better prompts than the seed's.
    Improved,
    /// Nothing that is better by more than chance: the seed is returned.
    NoSignificantGain,
    /// There was nothing to gain.
    NoHeadroom,
}

impl Outcome {
    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::NoSignificantGain => "no_significant_gain",
            Self::NoHeadroom => "no_headroom",
        }
    }
}

/// A score of the seed and of the winner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeedAndBest {
    /// Of the seed.
    pub seed: f64,
    /// Of the winner.
    pub best: f64,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What it has found.
    pub outcome: Outcome,
    /// The prompts that are returned: the winner's, or the seed's.
    pub best: Candidate,
    /// On the scoring cases, with fresh samples if there was a final.
    pub val: SeedAndBest,
    /// On the test cases, or estimated by folds; `None` if the request wants no test, or it could not be done.
    pub test: Option<SeedAndBest>,
    /// The winner, or the candidate that was not better by more than chance, against the seed.
    pub comparison: Comparison,
    /// The 95 % interval of the mean difference.
    pub ci95: (f64, f64),
}

/// Fresh samples of the seed and of finalists.
struct Final<'a> {
    board: Board<'a>,
    /// The scoring cases that were executed with each.
    places: Vec<usize>,
}

/// Ends a search. What the budget does not allow any more is decided by the results that are there.
pub(super) async fn end(mut search: Search<'_>, mut stop_reason: StopReason) -> Result<Finding, Stop> {
    let problem = search.problem;
    let val = problem.splits.val.clone();
    let seed = problem.seed();
    let mut finalists = finalists(&search, &val);
    let fresh = if finalists.is_empty() || stop_reason == StopReason::Cancelled {
        None
    } else {
        match fresh(&search, &mut finalists, &val).await {
            Err(Stop::Cancelled) => {
                stop_reason = StopReason::Cancelled;
                None
            }
            fresh => fresh?,
        }
    };
    let board = fresh.as_ref().map_or(&search.board, |fresh| &fresh.board);
    let (winner, both) = match &fresh {
        Some(fresh) => (winner(fresh, &finalists), fresh.places.clone()),
        None => {
            let mut complete = finalists.into_iter().filter(|it| board.has_all(it.number, &val));
            let winner = complete.next().unwrap_or_else(|| seed.clone());
            // Not every case was executed with the seed.
            let both = board.shared(seed.number, winner.number, &val);
            (winner, both)
        }
    };
    let (one, other) = board.pairs(&seed, &winner, &both);
    let comparison = Comparison::of(&one, &other);
    // Small losses of a guard may have added up on the way from the seed.
    let is_safe = board.worse_guard(&seed, &winner, &both).is_none();
    let is_better = winner.number != 0 && is_safe && comparison.is_significant();
    let winner_is_seed = winner.number == 0;
    search.best = if is_better { winner } else { seed.clone() };
    let outcome = match (is_better, stop_reason) {
        (true, _) => Outcome::Improved,
        (false, StopReason::NoHeadroom) => Outcome::NoHeadroom,
        (false, _) => Outcome::NoSignificantGain,
    };
    let test = match test(&mut search, stop_reason).await {
        Err(Stop::Cancelled) => {
            stop_reason = StopReason::Cancelled;
            None
        }
        test => test?,
    };
    // Of prompts of an earlier epoch there is one already.
    if !search.has_kept_best() {
        if search.board.has_all(search.best.number, &val) {
            search.keep().await?;
        } else if let Some(Final { board, places }) = &fresh {
            search.keep_with(&board.summary(search.best.number, places)).await?;
        }
    }
    let mean_of =
        |scores: &[WeightedScore]| mean(scores.iter().map(|it| (it.weight, it.score))).unwrap_or_default();
    Ok(Finding {
        stop_reason,
        outcome,
        best: search.best,
        val: SeedAndBest { seed: mean_of(&one), best: mean_of(&other) },
        test,
        comparison,
        // Of the seed against itself there is nothing to draw.
        ci95: if winner_is_seed { (0.0, 0.0) } else { interval(&one, &other, &problem.counter) },
    })
}

/// The best candidates besides the seed that were accepted, or executed on all scoring cases, and are better than the seed, the best
/// first. Of equal ones those that repeat no case for training, then the shorter.
pub(super) fn finalists(search: &Search<'_>, val: &[usize]) -> Vec<Candidate> {
    let memorises = |candidate: &Candidate| {
        candidate.prompts.values().any(|text| search.problem.leaks.memorised(text).is_some())
    };
    let length = |candidate: &Candidate| {
        let texts = candidate.prompts.values().map(|text| text.chars().count()).sum::<usize>();
        texts + fewshot::length(candidate)
    };
    let is_known =
        |it: &&Candidate| search.accepted.contains(&it.number) || search.board.has_all(it.number, val);
    let known = search.candidates.iter().skip(1).filter(is_known);
    let known = known.filter(|it| !search.guard_rejected.contains(&it.number));
    let mut known: Vec<(f64, Candidate)> = known.map(|it| (gain(search, it, val), it.clone())).collect();
    known.retain(|(gain, _)| *gain > NOISE);
    known.sort_by(|(one, first), (other, second)| {
        let by_gain = rounded(*other).total_cmp(&rounded(*one));
        by_gain
            .then_with(|| memorises(first).cmp(&memorises(second)))
            .then(length(first).cmp(&length(second)))
            .then(first.number.cmp(&second.number))
    });
    known.into_iter().take(FINALISTS).map(|(_, candidate)| candidate).collect()
}

/// How much better than the seed a candidate is, on the cases that both were executed on. It counts less on fewer cases, of which the
/// best candidates are good by chance.
fn gain(search: &Search<'_>, candidate: &Candidate, val: &[usize]) -> f64 {
    let Comparison { n, mean_diff, .. } = search.board.compared(&search.problem.seed(), candidate, val);
    mean_diff * float(n) / (float(n) + DOUBT)
}

/// The score, so that rounding makes no difference.
pub(super) fn rounded(score: f64) -> f64 {
    (score / NOISE).round()
}

/// Fresh samples of the seed and of the finalists: as many cases and finalists as the budget pays for, the first finalist before the
/// others. `None` if that is too little to decide.
async fn fresh<'a>(
    search: &Search<'a>,
    finalists: &mut Vec<Candidate>,
    val: &[usize],
) -> Result<Option<Final<'a>>, Stop> {
    let problem = search.problem;
    let mut board = Board::new(problem, problem.optimizer.settings.repeats);
    let round = Round { phase: Phase::Final, epoch: search.epoch, first_sample: 0 };
    let pair: Vec<Candidate> = std::iter::once(problem.seed()).chain(finalists.first().cloned()).collect();
    let mut paid = 0;
    for block in val.chunks(BLOCK) {
        if !is_paid(&mut board, search.lab, &pair, block, round).await? {
            break;
        }
        paid += block.len();
    }
    let places = val.get(..paid).unwrap_or_default().to_vec();
    let mut kept = 1;
    // Without the budget for a whole finalist, none for the next one.
    while paid == val.len() && kept < finalists.len() {
        let next = finalists.get(kept..=kept).unwrap_or_default();
        if !is_paid(&mut board, search.lab, next, val, round).await? {
            break;
        }
        kept += 1;
    }
    if paid < FEWEST.min(val.len()) {
        return Ok(None);
    }
    finalists.truncate(kept);
    Ok(Some(Final { board, places }))
}

/// Executes these cases with each candidate; whether the budget has paid for it.
async fn is_paid(
    board: &mut Board<'_>,
    lab: &dyn Lab,
    candidates: &[Candidate],
    places: &[usize],
    round: Round,
) -> Result<bool, Stop> {
    for candidate in candidates {
        match board.fill(lab, candidate, places, round).await {
            Ok(()) => {}
            Err(Stop::Budget | Stop::MaxSeconds) => return Ok(false),
            Err(stop) => return Err(stop),
        }
    }
    Ok(true)
}

/// The finalist with the best fresh scores; of equal ones the one that was better before.
fn winner(Final { board, places }: &Final<'_>, finalists: &[Candidate]) -> Candidate {
    let mut best: Option<(f64, &Candidate)> = None;
    for candidate in finalists {
        let score = board.mean(candidate, places);
        if best.is_none_or(|(known, _)| score > known + NOISE) {
            best = Some((score, candidate));
        }
    }
    best.map_or_else(|| board.problem().seed(), |(_, candidate)| candidate.clone())
}

/// The test, once.
async fn test(search: &mut Search<'_>, stop_reason: StopReason) -> Result<Option<SeedAndBest>, Stop> {
    let problem = search.problem;
    let (val, cases) = (&problem.splits.val, &problem.splits.test);
    let both = [problem.seed(), search.best.clone()];
    let [seed, best] = &both;
    let may_execute = stop_reason != StopReason::Cancelled;
    let round = search.round(Phase::Test);
    match problem.splits.test_estimate {
        Some(TestEstimate::Split) if may_execute => {
            if !is_paid(&mut search.board, search.lab, &both, cases, round).await? {
                return Ok(None);
            }
            let score = |candidate| search.board.mean(candidate, cases);
            Ok(Some(SeedAndBest { seed: score(seed), best: score(best) }))
        }
        Some(TestEstimate::KFold) => {
            let seeds = std::slice::from_ref(seed);
            // A pool may have beaten the seed with fewer cases.
            let is_complete = search.board.has_all(seed.number, val)
                || may_execute && is_paid(&mut search.board, search.lab, seeds, val, round).await?;
            if !is_complete {
                return Ok(None);
            }
            let complete = search.candidates.iter().filter(|it| search.board.has_all(it.number, val));
            let complete = complete.filter(|it| !search.guard_rejected.contains(&it.number));
            let scores: Vec<Vec<WeightedScore>> = complete.map(|it| search.board.weighted(it, val)).collect();
            let first = search.board.mean(seed, val);
            Ok(Some(SeedAndBest { seed: first, best: kfold(&scores, &problem.counter) }))
        }
        _ => Ok(None),
    }
}
