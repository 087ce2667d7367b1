//! The port through which a search gets case results, asks the optimizer's model, and publishes events.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use models::Message;

use super::ending::StopReason;
use crate::compare::Comparison;
use crate::evaluators::Verdict;
use crate::prompts::Demo;
use crate::runner::CaseRun;
use crate::score::Summary;
use crate::warning::Warning;

/// The texts of all trainable prompts, and the demos of prompts with trainable demos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// 0 for the seed, then in creation order.
    pub number: u32,
    /// The candidates from which it was made.
    pub parents: Vec<u32>,
    /// The prompt texts by name.
    pub prompts: Arc<BTreeMap<String, String>>,
    /// The demos by prompt name, for prompts with `demos_trainable`; may be empty.
    pub demos: Arc<BTreeMap<String, Vec<Demo>>>,
}

impl Candidate {
    /// Names of prompts whose text or demos differ from `other`.
    #[must_use]
    pub fn changed_from(&self, other: &Self) -> Vec<String> {
        let is_changed = |name: &&String| {
            self.prompts.get(*name) != other.prompts.get(*name)
                || self.demos.get(*name) != other.demos.get(*name)
        };
        self.prompts.keys().filter(is_changed).cloned().collect()
    }
}

/// The execution's purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Tests whether any gain is possible.
    Headroom,
    /// Collects results to propose from.
    Train,
    /// Compares a candidate with its parent.
    Race,
    /// Determines a candidate's score.
    Val,
    /// Chooses the winner with fresh samples.
    Final,
    /// The test, once at the end.
    Test,
    /// Compares judge models with people: judges recorded outputs without executing anything.
    Calibration,
}

impl Phase {
    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::Train => "train",
            Self::Race => "race",
            Self::Val => "val",
            Self::Final => "final",
            Self::Test => "test",
            Self::Calibration => "calibration",
        }
    }
}

/// The execution's purpose and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// The purpose.
    pub phase: Phase,
    /// The epoch, from 1; 0 before the first one.
    pub epoch: u32,
    /// The first sample number per case; the others follow.
    pub first_sample: u32,
}

/// An executed and judged case.
#[derive(Debug, Clone)]
pub struct JudgedRun {
    /// The case result.
    pub run: Arc<CaseRun>,
    /// The verdicts in evaluator order.
    pub verdicts: Vec<Verdict>,
}

/// The samples of cases, in the order of the requested places.
pub type SamplesResult = Result<Vec<Vec<JudgedRun>>, Stop>;

/// A request to the optimizer's model.
#[derive(Debug, Clone)]
pub struct Question {
    /// The proposal number, from 1.
    pub proposal: u32,
    /// The prompt in question.
    pub prompt: String,
    /// The request number within this proposal and prompt, from 0.
    pub ordinal: u32,
    /// The messages to send.
    pub messages: Vec<Message>,
}

/// The reason why nothing more is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The budget is spent.
    Budget,
    /// The time limit is reached.
    MaxSeconds,
    /// The run was cancelled.
    Cancelled,
    /// This process may not continue; another one will.
    Lost,
}

impl Stop {
    /// The stop reason if the run ends here with a result; `None` if another process will continue it.
    #[must_use]
    pub const fn reason(self) -> Option<StopReason> {
        match self {
            Self::Budget => Some(StopReason::Budget),
            Self::MaxSeconds => Some(StopReason::MaxSeconds),
            Self::Cancelled => Some(StopReason::Cancelled),
            Self::Lost => None,
        }
    }
}

/// The decision about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Better than its parent.
    Accepted,
    /// Not better than its parent.
    Rejected,
}

/// An event for the run's readers.
#[derive(Debug, Clone)]
pub enum SearchEvent<'a> {
    /// A candidate was compared with its parent.
    Candidate {
        /// The candidate.
        candidate: &'a Candidate,
        /// The prompts that differ from its parent's.
        changed: &'a [String],
        /// The decision.
        decision: Decision,
        /// The reason for the decision.
        reason: String,
        /// The rationale by the model that wrote its texts.
        rationale: Option<&'a str>,
        /// The comparison on the cases that the decision needed.
        comparison: Comparison,
    },
    /// An epoch has ended.
    Epoch {
        /// The epoch number, from 1.
        epoch: u32,
        /// The best candidate so far.
        best: &'a Candidate,
        /// The best candidate's summary on all scoring cases.
        summary: &'a Summary,
        /// The best candidate's score with penalties.
        score: f64,
    },
    /// Prompts to store: at the interval, at the last epoch, or as a new best.
    Checkpoint {
        /// The epoch, from 1; 0 before the first one.
        epoch: u32,
        /// The candidate with these prompts.
        candidate: &'a Candidate,
        /// The summary for exactly these prompts on all scoring cases, or on the final's cases if the budget allowed
        /// no more before.
        summary: &'a Summary,
    },
    /// A warning to the author.
    Warning(Warning),
}

/// Executes cases and asks the optimizer's model. Finished work is returned again without being repeated. The lab
/// reserves two parts of the budget: [`Problem::kept_thousandths`](super::Problem::kept_thousandths) until the first
/// case of [`Phase::Final`] or [`Phase::Test`], so that fresh samples decide, and
/// [`Problem::kept_for_demos`](super::Problem::kept_for_demos) until [`Self::release_demos`].
#[async_trait]
pub trait Lab: Send + Sync {
    /// Executes and judges cases with a candidate's prompts; returns the requested samples per place, in the order of
    /// `places`. [`Phase::Calibration`]: one sample each, the recorded output.
    ///
    /// # Errors
    /// [`Stop`]; no result is returned then, but finished executions are kept.
    async fn evaluate(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult;

    /// Returns earlier results with a candidate's prompts in the shape of [`Self::evaluate`]; empty for a case that
    /// was not executed.
    ///
    /// # Errors
    /// [`Stop::Lost`] if they cannot be read.
    async fn recall(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult;

    /// Announces to readers that these cases' earlier results are reused.
    ///
    /// # Errors
    /// [`Stop::Lost`] if that cannot be stored.
    async fn reuse(&self, candidate: &Candidate, places: &[usize], round: Round) -> Result<(), Stop>;

    /// Asks the optimizer's model and returns its reply; `None` if it did not answer.
    ///
    /// # Errors
    /// [`Stop`].
    async fn ask(&self, question: Question) -> Result<Option<String>, Stop>;

    /// Releases the budget and time reserved for demos.
    fn release_demos(&self);

    /// Publishes an event to readers.
    ///
    /// # Errors
    /// [`Stop::Lost`] if it cannot be stored.
    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop>;
}
