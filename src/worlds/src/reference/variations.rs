//! Variations of single prompts, without feedback.

use super::super::random::Draw;
use super::models::{Executed, Models, Prompts, Spent};
use super::pareto::{NOISE, execute, extracted, sum};

/// Scoring cases after which a variation that is not better is rejected.
const FIRST: usize = 8;

/// The best variation; the seed if none is better.
pub(super) fn run(models: &mut Models<'_>, seed: u64) -> Prompts {
    let mut best = models.world.seed_prompts();
    let Ok(mut scored) = execute(models, &best, &models.val.clone()) else { return best };
    let draw = Draw::new(seed, "random");
    let mut proposals = 0;
    while let Ok(better) = vary(models, &best, &scored, draw.at(proposals)) {
        if let Some(better) = better {
            (best, scored) = better;
        }
        proposals += 1;
    }
    best
}

/// Varies a drawn prompt. `None` if the variation is not better than the best prompts, whose results are `scored`.
fn vary(
    models: &mut Models<'_>,
    best: &Prompts,
    scored: &[Executed],
    draw: Draw,
) -> Result<Option<(Prompts, Vec<Executed>)>, Spent> {
    let Some(name) = draw.choose(models.world.prompt_names()) else { return Err(Spent) };
    let text = best.get(*name).map(String::as_str).unwrap_or_default();
    let reply = models.rewrite(name, text, &[], &[])?;
    let mut varied = best.clone();
    varied.insert((*name).to_owned(), extracted(&reply));
    let cases = models.val.clone();
    let (first, rest) = cases.split_at(FIRST.min(cases.len()));
    let mut executed = Vec::new();
    for block in [first, rest] {
        executed.extend(execute(models, &varied, block)?);
        let before = scored.get(..executed.len()).unwrap_or_default();
        if sum(&executed) <= sum(before) + NOISE {
            return Ok(None);
        }
    }
    Ok(Some((varied, executed)))
}
