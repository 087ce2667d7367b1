//! `opro`: a model sees only the best texts with their scores and a few cases.

use models::Message;

use super::ending::rounded;
use super::lab::Stop;
use super::proposal::{Changes, Ordinals, answer, described, example};
use super::search::Search;
use crate::prompts::TrainablePrompt;
use crate::rewrite::{Example, ScoredText, scored};

/// Proposals per step; all use the same request.
const STEP: u32 = 4;
/// Maximum texts and cases that a model sees.
const TEXTS: usize = 20;
const EXAMPLES: usize = 3;

/// The search's current step.
#[derive(Default)]
pub(super) struct Scored {
    /// Proposals so far.
    proposals: u32,
    step: Option<Step>,
}

/// The state that a step's proposals share.
struct Step {
    /// The prompt's position among the trained prompts.
    prompt: usize,
    /// The prompt's best text.
    current: String,
    messages: Vec<Message>,
}

/// Proposes a new text for one prompt, another one in each step; `None` if the model gives no usable text, or if the
/// text was tried before.
pub(super) async fn propose(search: &mut Search<'_>, minibatch: &[usize]) -> Result<Option<Changes>, Stop> {
    if search.scored.proposals.is_multiple_of(STEP) {
        search.scored.step = step(search, minibatch);
    }
    search.scored.proposals = search.scored.proposals.saturating_add(1);
    let Some(Step { prompt, current, messages }) = &search.scored.step else { return Ok(None) };
    let Some(prompt) = search.problem.prompts.get(*prompt) else { return Ok(None) };
    let mut ordinals = Ordinals::default();
    let asked = answer(search, prompt, current, messages.clone(), &mut ordinals).await?;
    let Some(new) = asked else { return Ok(None) };
    let is_tried = |text: &String| {
        let mut prompts = (*search.best.prompts).clone();
        prompts.insert(prompt.name.clone(), text.clone());
        search.candidates.iter().any(|known| *known.prompts == prompts)
    };
    Ok((!is_tried(&new.text)).then(|| Changes::from([(prompt.name.clone(), new)])))
}

/// Prepares the request for the next proposals.
fn step(search: &Search<'_>, minibatch: &[usize]) -> Option<Step> {
    let problem = search.problem;
    let steps = usize::try_from(search.scored.proposals / STEP).unwrap_or_default();
    let place = steps.checked_rem(problem.prompts.len())?;
    let prompt = problem.prompts.get(place)?;
    let current = search.best.prompts.get(&prompt.name)?.clone();
    let cases = minibatch.iter().filter_map(|place| problem.cases.get(*place));
    let examples: Vec<Example> = cases.take(EXAMPLES).map(example).collect();
    let guidance = problem.optimizer.guidance.as_deref();
    let messages = scored(described(prompt, &current), &tried(search, prompt), &examples, guidance);
    Some(Step { prompt: place, current, messages })
}

/// The best texts tried for a prompt, best last. A text scores like its best candidate: the seed's score plus
/// the candidate's gain on their shared cases.
fn tried(search: &Search<'_>, prompt: &TrainablePrompt) -> Vec<ScoredText> {
    let (val, seed) = (&search.problem.splits.val, search.problem.seed());
    let of_seed = search.board.mean(&seed, val);
    let mut tried: Vec<ScoredText> = Vec::new();
    for candidate in &search.candidates {
        let Some(text) = candidate.prompts.get(&prompt.name) else { continue };
        let gain = search.board.compared(&seed, candidate, val).mean_diff;
        let score = (of_seed + gain).clamp(0.0, 1.0);
        match tried.iter_mut().find(|known| known.text == *text) {
            Some(known) => known.score = known.score.max(score),
            None => tried.push(ScoredText { text: text.clone(), score }),
        }
    }
    // Stable: on ties the older is first.
    tried.sort_by(|one, other| rounded(one.score).total_cmp(&rounded(other.score)));
    tried.split_off(tried.len().saturating_sub(TEXTS))
}
