//! The end of a search: chooses the winner, tests whether it is significantly better than the seed, and runs the test
//! split.

use super::board::Board;
use super::fewshot;
use super::lab::{Candidate, Lab, Phase, Round, Stop};
use super::search::Search;
use crate::compare::{Comparison, WeightedScore, interval, kfold};
use crate::numbers::{NOISE, float, mean};
use crate::splits::TestEstimate;

/// Maximum candidates that are executed again at the end.
pub(crate) const FINALISTS: usize = 3;
/// Cases per block; seed and finalist take turns, so that an exhausted budget leaves pairs.
const BLOCK: usize = 4;
/// Virtual cases without a gain that are added for ranking a candidate.
const DOUBT: f64 = 8.0;
/// Minimum cases for fresh samples to decide; with fewer, the earlier results decide.
const FEWEST: usize = 8;

/// The reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// All epochs completed.
    Epochs,
    /// The budget is spent.
    Budget,
    /// The time limit is reached.
    MaxSeconds,
    /// The target score is reached.
    TargetScore,
    /// No new best for too many epochs.
    Patience,
    /// No training case can improve.
    TrainSaturated,
    /// No scoring case can improve.
    NoHeadroom,
    /// The run was cancelled.
    Cancelled,
}

impl StopReason {
    /// The wire name.
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

/// A search's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Better prompts than the seed's.
    Improved,
    /// No significantly better candidate: the seed is returned.
    NoSignificantGain,
    /// No possible gain.
    NoHeadroom,
}

impl Outcome {
    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::NoSignificantGain => "no_significant_gain",
            Self::NoHeadroom => "no_headroom",
        }
    }
}

/// The seed's and the winner's scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeedAndBest {
    /// The seed's score.
    pub seed: f64,
    /// The winner's score.
    pub best: f64,
}

/// The search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The reason for the end.
    pub stop_reason: StopReason,
    /// The outcome.
    pub outcome: Outcome,
    /// The returned prompts: the winner's, or the seed's.
    pub best: Candidate,
    /// Scores on the scoring cases, with fresh samples if there was a final.
    pub val: SeedAndBest,
    /// Scores on the test cases, or estimated by folds; `None` without a requested test, or if it was not possible.
    pub test: Option<SeedAndBest>,
    /// The seed compared with the winner, or with the candidate that was not significantly better.
    pub comparison: Comparison,
    /// The 95 % interval of the mean difference.
    pub ci95: (f64, f64),
}

/// Fresh samples for the seed and the finalists.
struct Final<'a> {
    board: Board<'a>,
    /// The scoring cases executed with each one.
    places: Vec<usize>,
}

/// Ends a search. Beyond the budget, the existing results decide.
pub(super) async fn end(mut search: Search<'_>, mut stop_reason: StopReason) -> Result<Finding, Stop> {
    let problem = search.problem;
    let val = problem.splits.val.clone();
    let seed = problem.seed();
    let mut finalists = finalists(&search, &val);
    let fresh = if finalists.is_empty() || stop_reason == StopReason::Cancelled {
        None
    } else {
        unless_cancelled(fresh(&search, &mut finalists, &val).await, &mut stop_reason)?
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
    let comparison = Comparison::from_scores(&one, &other);
    // Small guard losses may have added up since the seed.
    let is_safe = board.worse_guard(&seed, &winner, &both).is_none();
    let is_better = winner.number != 0 && is_safe && comparison.is_significant();
    let winner_is_seed = winner.number == 0;
    search.best = if is_better { winner } else { seed.clone() };
    let outcome = match (is_better, stop_reason) {
        (true, _) => Outcome::Improved,
        (false, StopReason::NoHeadroom) => Outcome::NoHeadroom,
        (false, _) => Outcome::NoSignificantGain,
    };
    let test = unless_cancelled(test(&mut search, stop_reason).await, &mut stop_reason)?;
    // Prompts from an earlier epoch may already have a checkpoint.
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
        // If the winner is the seed, the interval is empty.
        ci95: if winner_is_seed { (0.0, 0.0) } else { interval(&one, &other, &problem.counter) },
    })
}

/// The result of a step; after a cancel, none, and the search ends as cancelled.
fn unless_cancelled<T>(
    result: Result<Option<T>, Stop>,
    stop_reason: &mut StopReason,
) -> Result<Option<T>, Stop> {
    if matches!(result, Err(Stop::Cancelled)) {
        *stop_reason = StopReason::Cancelled;
        return Ok(None);
    }
    result
}

/// The best candidates besides the seed, best first: accepted or executed on all scoring cases, and better than the
/// seed. Ties go to candidates that repeat no training case, then to shorter ones.
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

/// The gain over the seed on shared cases. Fewer cases reduce it, because the best candidates on few cases are good
/// by chance.
fn gain(search: &Search<'_>, candidate: &Candidate, val: &[usize]) -> f64 {
    let Comparison { n, mean_diff, .. } = search.board.compared(&search.problem.seed(), candidate, val);
    mean_diff * float(n) / (float(n) + DOUBT)
}

/// Rounds a score, so that float noise does not matter.
pub(super) fn rounded(score: f64) -> f64 {
    (score / NOISE).round()
}

/// Fresh samples for the seed and the finalists, on as many cases and finalists as the budget allows; the first
/// finalist takes precedence. `None` if there are too few to decide.
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
    // If the budget does not cover a whole finalist, no further one is tried.
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

/// Executes these cases with each candidate; returns whether the budget sufficed.
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

/// The finalist with the best fresh scores; ties go to the one that ranked higher before.
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

/// Runs the test once.
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
