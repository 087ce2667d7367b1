//! `textgrad`: critiques failing cases, then writes one new text for each blamed prompt.

use super::lab::{Candidate, Decision, Question, Stop};
use super::proposal::{Changes, Ordinals, described, lessons, rewrite};
use super::search::Search;
use crate::rewrite::critique;

/// Maximum critique characters.
const LONGEST: usize = 600;

/// Makes one proposal from the best candidate, and races it on all scoring cases.
pub(super) async fn step(search: &mut Search<'_>, minibatch: &[usize]) -> Result<(), Stop> {
    let parent = search.best.clone();
    let Some(changes) = propose(search, &parent, minibatch).await? else { return Ok(()) };
    let candidate = search.candidate(&parent, &changes);
    let val = &search.problem.splits.val;
    if search.compare(&parent, &candidate, val).await? == Decision::Accepted {
        search.best = candidate;
        search.rejected.clear();
        search.keep().await?;
    }
    Ok(())
}

/// Proposes new texts for a candidate's prompts from its results on these cases; `None` if no case teaches anything
/// or no text is usable.
pub(super) async fn propose(
    search: &mut Search<'_>,
    base: &Candidate,
    minibatch: &[usize],
) -> Result<Option<Changes>, Stop> {
    let problem = search.problem;
    let Some(mut lessons) = lessons(search, base, minibatch, false).await? else { return Ok(None) };
    let mut changes = Changes::new();
    for prompt in problem.prompts {
        let Some(records) = lessons.get_mut(&prompt.name) else { continue };
        let Some(current) = base.prompts.get(&prompt.name) else { continue };
        let mut ordinals = Ordinals::default();
        for record in records.iter_mut().filter(|record| !record.passed) {
            let question = Question {
                proposal: search.proposals,
                prompt: prompt.name.clone(),
                ordinal: ordinals.next(),
                messages: critique(described(prompt, current), record),
            };
            if let Some(critique) = search.lab.ask(question).await?.as_deref().and_then(sentences) {
                record.feedback = format!("{} {critique}", record.feedback).trim().to_owned();
            }
        }
        if let Some(text) = rewrite(search, base, prompt, records, &mut ordinals).await? {
            changes.insert(prompt.name.clone(), text);
        }
    }
    Ok((!changes.is_empty()).then_some(changes))
}

/// A critique as one line; `None` if the reply contains a prompt, which could be mistaken for the one to improve.
fn sentences(reply: &str) -> Option<String> {
    let has_markup = ["```", "<prompt", "<new_prompt"].iter().any(|mark| reply.contains(mark));
    let line: Vec<&str> = reply.split_whitespace().collect();
    let line: String = line.join(" ").chars().take(LONGEST).collect();
    (!has_markup && !line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_critique_is_one_line_and_not_a_prompt() {
        assert_eq!(sentences(" It lacks\nthe price. ").as_deref(), Some("It lacks the price."));
        for reply in
            ["", " \n", "```\nBe kind.\n```", "<prompt name=\"p\">x</prompt>", "<new_prompt>x</new_prompt>"]
        {
            assert_eq!(sentences(reply), None, "{reply:?}");
        }
        assert_eq!(sentences(&"é".repeat(5_000)).map(|line| line.chars().count()), Some(LONGEST));
    }
}
