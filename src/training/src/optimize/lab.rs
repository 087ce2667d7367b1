//! What a search needs from outside: results of cases, replies of the optimizer's model, and readers of its events.

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

/// Texts of all trainable prompts, and demos of those that may get others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// 0 for the seed, then in the order in which they were made.
    pub number: u32,
    /// The candidates that it was made of.
    pub parents: Vec<u32>,
    /// The text of each prompt, by its name.
    pub prompts: Arc<BTreeMap<String, String>>,
    /// The demos of each prompt with `demos_trainable`, by its name; empty for one without demos.
    pub demos: Arc<BTreeMap<String, Vec<Demo>>>,
}

impl Candidate {
    /// The names of the prompts whose text or demos differ from another candidate's.
    #[must_use]
    pub fn changed_from(&self, other: &Self) -> Vec<String> {
        let is_changed = |name: &&String| {
            self.prompts.get(*name) != other.prompts.get(*name)
                || self.demos.get(*name) != other.demos.get(*name)
        };
        self.prompts.keys().filter(is_changed).cloned().collect()
    }
}

/// What cases are executed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Whether there is anything to gain.
    Headroom,
    /// To propose something.
    Train,
    /// To compare a candidate with its parent.
    Race,
    /// To know the score of a candidate.
    Val,
    /// To choose the winner, with fresh samples.
    Final,
    /// Once, at the end.
    Test,
    /// To compare the models that judge with people: recorded outputs are judged, nothing is executed.
    Calibration,
}

impl Phase {
    /// Its name on the wire.
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

/// Why and when cases are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// What for.
    pub phase: Phase,
    /// The epoch, from 1; 0 before the first one.
    pub epoch: u32,
    /// The number of the first sample of each case; the others follow.
    pub first_sample: u32,
}

/// A case that was executed and judged.
#[derive(Debug, Clone)]
pub struct JudgedRun {
    /// Its result.
    pub run: Arc<CaseRun>,
    /// Of the evaluators, in their order.
    pub verdicts: Vec<Verdict>,
}

/// A request to the optimizer's model.
#[derive(Debug, Clone)]
pub struct Question {
    /// The number of the proposal that it is for, from 1.
    pub proposal: u32,
    /// The prompt that it is about.
    pub prompt: String,
    /// The number of the request among those of this proposal and prompt, from 0.
    pub ordinal: u32,
    /// What is sent.
    pub messages: Vec<Message>,
}

/// Why nothing more is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The budget is spent.
    Budget,
    /// The time is spent.
    MaxSeconds,
    /// The run was cancelled.
    Cancelled,
    /// This process may not continue; another one will.
    Lost,
}

impl Stop {
    /// Why a run ends with a result because of this; `None` if another process will continue it.
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
    /// It is better than its parent.
    Accepted,
    /// It is not.
    Rejected,
}

/// An event for the readers of the run.
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
        /// Why.
        reason: String,
        /// Why it was made, in the words of the model that wrote its texts.
        rationale: Option<&'a str>,
        /// On the cases that were needed to decide.
        comparison: Comparison,
    },
    /// An epoch has ended.
    Epoch {
        /// Its number, from 1.
        epoch: u32,
        /// The best candidate so far.
        best: &'a Candidate,
        /// Of the best candidate, on all scoring cases.
        summary: &'a Summary,
        /// The score of the best candidate with its penalties.
        score: f64,
    },
    /// Prompts are to be kept: at the interval, at the last epoch, or since they are a new best.
    Checkpoint {
        /// The epoch, from 1; 0 before the first one.
        epoch: u32,
        /// Whose prompts.
        candidate: &'a Candidate,
        /// For exactly these prompts, on all scoring cases; on those of the final if the budget has not paid for more before.
        summary: &'a Summary,
    },
    /// Something that the author should know.
    Warning(Warning),
}

/// Executes cases and asks the optimizer's model. What was done before is returned again without being done. A part of the budget,
/// [`Problem::kept_thousandths`](super::Problem::kept_thousandths), is kept until the first case of [`Phase::Final`] or
/// [`Phase::Test`], so that fresh samples decide; another one,
/// [`Problem::kept_for_demos`](super::Problem::kept_for_demos), until [`Self::release_demos`].
#[async_trait]
pub trait Lab: Send + Sync {
    /// Executes and judges cases with the prompts of a candidate: for each place the samples that the request asks for, in the
    /// order of the places. [`Phase::Calibration`]: one sample of each, the recorded output.
    ///
    /// # Errors
    /// [`Stop`]; nothing is returned for any of the cases then, but what was executed is kept.
    async fn evaluate(
        &self,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<Vec<Vec<JudgedRun>>, Stop>;

    /// Results of cases that were executed before with the prompts of a candidate, as [`Self::evaluate`] returns them; none for a case that
    /// was not executed.
    ///
    /// # Errors
    /// [`Stop::Lost`] if they cannot be read.
    async fn recall(
        &self,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<Vec<Vec<JudgedRun>>, Stop>;

    /// Announces to readers that earlier results of these cases are used again.
    ///
    /// # Errors
    /// [`Stop::Lost`] if that cannot be stored.
    async fn reuse(&self, candidate: &Candidate, places: &[usize], round: Round) -> Result<(), Stop>;

    /// The reply of the optimizer's model; `None` if it did not answer.
    ///
    /// # Errors
    /// [`Stop`].
    async fn ask(&self, question: Question) -> Result<Option<String>, Stop>;

    /// What is kept of the budget and of the time for demos may be used from now on.
    fn release_demos(&self);

    /// Publishes an event to readers.
    ///
    /// # Errors
    /// [`Stop::Lost`] if it cannot be stored.
    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop>;
}
