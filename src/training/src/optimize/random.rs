//! `random`: varies one prompt, without feedback.

use kernel::Purpose;

use super::lab::Stop;
use super::proposal::{Changes, Ordinals, rewrite};
use super::search::Search;

const GUIDANCE: &str = "Write a variation of the prompt that could do better.";

/// Varies the best text of a randomly drawn prompt.
pub(super) async fn propose(search: &mut Search<'_>) -> Result<Option<Changes>, Stop> {
    let problem = search.problem;
    let iteration = u64::from(search.proposals);
    let drawn =
        problem.counter.below(Purpose::Parent, iteration, u64::from(search.epoch), problem.prompts.len());
    let Some(prompt) = problem.prompts.get(drawn) else { return Ok(None) };
    let base = search.best.clone();
    let text = rewrite(search, &base, prompt, &[], Some(GUIDANCE), &mut Ordinals::default()).await?;
    Ok(text.map(|text| Changes::from([(prompt.name.clone(), text)])))
}
