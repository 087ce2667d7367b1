//! Races: compares two candidates on the same cases, block by block.

use super::lab::{Candidate, Decision, Phase, SearchEvent, Stop};
use super::search::Search;
use crate::compare::{Comparison, Race, race};
use crate::rewrite::RejectedEdit;

impl Search<'_> {
    /// Compares a candidate with its parent, and publishes the decision.
    pub(super) async fn compare(
        &mut self,
        parent: &Candidate,
        candidate: &Candidate,
        places: &[usize],
    ) -> Result<Decision, Stop> {
        let (decision, reason, comparison) = self.race(parent, candidate, places).await?;
        self.announce(candidate, decision, &reason, comparison).await?;
        if decision == Decision::Accepted {
            self.accepted.insert(candidate.number);
        } else {
            let is_edit = |(name, text): &(&String, &String)| parent.prompts.get(*name) != Some(text);
            for (prompt, text) in candidate.prompts.iter().filter(is_edit) {
                let edit = RejectedEdit { text: text.clone(), reason: reason.clone() };
                self.rejected.entry(prompt.clone()).or_default().push(edit);
            }
        }
        Ok(decision)
    }

    /// The reason if a guard rejects the candidate.
    fn regressed(&mut self, parent: &Candidate, candidate: &Candidate, places: &[usize]) -> Option<String> {
        let guard = self.board.worse_guard(parent, candidate, places)?;
        let reason = format!("the guard '{guard}' has become worse");
        self.guard_rejected.insert(candidate.number);
        Some(reason)
    }

    /// Publishes the decision about a candidate.
    async fn announce(
        &self,
        candidate: &Candidate,
        decision: Decision,
        reason: &str,
        comparison: Comparison,
    ) -> Result<(), Stop> {
        let origin = candidate.parents.first();
        let origin = self.candidates.iter().find(|known| origin == Some(&known.number));
        let changed = origin.map(|origin| candidate.changed_from(origin)).unwrap_or_default();
        let rationale = self.rationales.get(&candidate.number).map(String::as_str);
        let (changed, reason) = (changed.as_slice(), reason.to_owned());
        self.publish(SearchEvent::Candidate { candidate, changed, decision, reason, rationale, comparison })
            .await
    }

    /// Races a candidate against its parent on these cases, block by block.
    async fn race(
        &mut self,
        parent: &Candidate,
        candidate: &Candidate,
        val: &[usize],
    ) -> Result<(Decision, String, Comparison), Stop> {
        let mut seen = 0;
        loop {
            let places = val.get(..seen).unwrap_or_default();
            let (one, other) = self.board.pairs(parent, candidate, places);
            let comparison = Comparison::from_scores(&one, &other);
            if let Some(reason) = self.regressed(parent, candidate, places) {
                return Ok((Decision::Rejected, reason, comparison));
            }
            let next = match race(&one, &other, val.len()) {
                Race::Next(next) => next,
                Race::Accepted => {
                    let reason = format!("better by {:.3} on {} cases", comparison.mean_diff, comparison.n);
                    return Ok((Decision::Accepted, reason, comparison));
                }
                Race::Rejected => {
                    let reason =
                        format!("no better on {} cases ({:+.3})", comparison.n, comparison.mean_diff);
                    return Ok((Decision::Rejected, reason, comparison));
                }
            };
            let block = val.get(seen..seen + next).unwrap_or_default();
            for contestant in [parent, candidate] {
                let round = self.round(Phase::Race);
                self.board.fill(self.lab, contestant, block, round).await?;
            }
            seen += next;
        }
    }
}
