//! The cases of a world.

use serde_json::{Map, Value, json};

use super::definition::World;
use super::family::{Family, Scoring, Sizes};
use super::random::Draw;
use super::words::{ticket, word_set};

/// Minimum and maximum distractor words per input.
const DISTRACTORS: (usize, usize) = (2, 4);
/// The probability that an input has only one trigger from a rule with two.
const HALF_TRIGGERS: f64 = 0.25;
/// Connections between the words in an input.
const LINKS: [&str; 4] = ["came with", "asks about", "was sent to", "waits for"];

/// A case's purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Split {
    /// Training.
    Train,
    /// Decides between candidates.
    Val,
    /// The final test.
    Test,
}

impl Split {
    /// The name in `metadata.split`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}

/// A case of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The id, unique in the world.
    pub id: String,
    /// `None` in a world without splits.
    pub split: Option<Split>,
    /// The case's niche: 0, or 1 in the family `niche`.
    pub niche: usize,
    /// `inputs.message`: ticket, desk and words.
    pub message: String,
    /// `inputs.desk`, which every prompt's placeholder names.
    pub desk: String,
    /// A token unique to this case; in val and test cases it is the canary.
    pub ticket: String,
    /// The applicable rules, ascending.
    pub rules: Vec<usize>,
    /// The required words in rule order; a word that no rule explains is last.
    pub expected: Vec<String>,
    /// `expected_output`: a list, a text or an object, as the family's evaluator wants it.
    pub expected_output: Value,
}

impl Case {
    /// The token that must never reach the reflector; `None` for a training case.
    #[must_use]
    pub fn canary(&self) -> Option<&str> {
        matches!(self.split, Some(Split::Val | Split::Test)).then_some(&self.ticket)
    }

    /// The case as an entry of `training.dataset.cases`:
    /// `{id, inputs: {message, desk}, expected_output, metadata: {split?, group?}}`.
    #[must_use]
    pub fn json(&self, family: Family) -> Value {
        let mut metadata = Map::new();
        metadata.extend(self.split.map(|split| ("split".to_owned(), json!(split.as_str()))));
        if family == Family::Niche {
            metadata.insert("group".to_owned(), json!(format!("niche{}", self.niche)));
        }
        json!({
            "id": self.id,
            "inputs": {"message": self.message, "desk": self.desk},
            "expected_output": self.expected_output,
            "metadata": metadata,
        })
    }
}

impl World {
    /// The cases in the family's default counts, train first.
    #[must_use]
    pub fn cases(&self) -> Vec<Case> {
        self.cases_of(self.family.sizes())
    }

    /// The cases in the given counts, train first. A larger count extends a split: its first cases stay the same.
    #[must_use]
    pub fn cases_of(&self, sizes: Sizes) -> Vec<Case> {
        let has_splits = sizes.has_splits();
        let splits = [(Split::Train, sizes.train), (Split::Val, sizes.val), (Split::Test, sizes.test)];
        let of = |(split, count): (Split, usize)| (0..count).map(move |index| (split, index));
        let case =
            |(split, index): (Split, usize)| self.case(split.as_str(), index, has_splits.then_some(split));
        splits.into_iter().flat_map(of).map(case).collect()
    }

    /// Whether a text contains a val or test token.
    #[must_use]
    pub fn has_canary(&self, text: &str) -> bool {
        text.contains(&self.canary_prefix)
    }

    /// Draws a case for a purpose: a split name or another one.
    pub(super) fn case(&self, purpose: &str, index: usize, split: Option<Split>) -> Case {
        let (shape, draw) = (self.family.shape(), self.drawn("cases").for_key(purpose).at(index));
        let first = (index + self.drawn("first").for_key(purpose).below(self.rules.len())) % self.rules.len();
        let niche = self.rules.get(first).map_or(0, |rule| rule.niche);
        let mut others: Vec<usize> = (0..self.rules.len()).collect();
        others.retain(|at| *at != first && self.rules.get(*at).is_some_and(|rule| rule.niche == niche));
        draw.for_key("rules").shuffle(&mut others);
        let (least, most) = shape.per_case;
        let count = draw.for_key("count").within(least, most);
        let drawn = std::iter::once(first).chain(others.iter().copied().take(count.saturating_sub(1)));
        let drawn = drawn.filter_map(|at| self.rules.get(at));
        let mut said: Vec<String> = drawn.flat_map(|rule| rule.triggers.clone()).collect();
        said.extend(self.half_trigger(niche, draw.for_key("half")));
        let mut distractors = self.distractors.clone();
        draw.for_key("distractors").shuffle(&mut distractors);
        let (least, most) = DISTRACTORS;
        said.extend(distractors.into_iter().take(draw.for_key("more").within(least, most)));
        draw.for_key("order").shuffle(&mut said);
        let desk = draw.for_key("desk").choose(&self.desks).cloned().unwrap_or_default();
        let is_held_out = matches!(split, Some(Split::Val | Split::Test));
        let prefix = if is_held_out { &self.canary_prefix } else { &self.ticket_prefix };
        // Val and test share a prefix, and so do train and fresh cases: their indices must differ.
        let number = if matches!(purpose, "test" | "fresh") { index + (1 << 15) } else { index };
        let ticket = ticket(prefix, number, draw.for_key("ticket"));
        let message = format!("Note {ticket} for {desk}: {}.", sentence(&said, draw.for_key("links")));
        let words = word_set(&message);
        let rules: Vec<usize> = (0..self.rules.len())
            .filter(|at| self.rules.get(*at).is_some_and(|rule| rule.applies(&words)))
            .collect();
        let mut expected: Vec<String> =
            rules.iter().filter_map(|at| self.rules.get(*at)).map(|rule| rule.action.clone()).collect();
        if draw.for_key("noise").happens(shape.noise) {
            expected.extend(draw.for_key("noise word").choose(&self.unpredictable).cloned());
        }
        let expected_output = expected_output(&expected, shape.scoring);
        Case {
            id: format!("{purpose}-{index}"),
            split,
            niche,
            message,
            desk,
            ticket,
            rules,
            expected,
            expected_output,
        }
    }

    /// Sometimes returns one trigger from a rule with two in this niche.
    fn half_trigger(&self, niche: usize, draw: Draw) -> Option<String> {
        let halves = self.rules.iter().filter(|rule| rule.triggers.len() > 1 && rule.niche == niche);
        let halves: Vec<&String> = halves.flat_map(|rule| rule.triggers.get(draw.below(2))).collect();
        draw.at(0).choose(&halves).filter(|_| draw.at(1).happens(HALF_TRIGGERS)).map(|word| (*word).clone())
    }
}

fn sentence(words: &[String], draw: Draw) -> String {
    let part = |(at, pair): (usize, &[String])| match pair {
        [one, other] => format!("{one} {} {other}", draw.at(at).choose(&LINKS).unwrap_or(&"and")),
        _ => format!("{} is new", pair.concat()),
    };
    words.chunks(2).enumerate().map(part).collect::<Vec<_>>().join(", ")
}

fn expected_output(expected: &[String], scoring: Scoring) -> Value {
    match scoring {
        Scoring::Share | Scoring::F1 => json!(expected),
        Scoring::Exact => json!(expected.join(", ")),
        Scoring::Json => {
            expected.iter().map(|word| (word.clone(), Value::Bool(true))).collect::<Map<_, _>>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cases_are_the_same_each_time_and_extend() {
        for family in Family::ALL {
            let world = World::draw(family, 5);
            assert_eq!(world.cases(), World::draw(family, 5).cases());
            let sizes = family.sizes();
            let more = world.cases_of(Sizes { train: sizes.train + 9, ..sizes });
            assert_eq!(more[..sizes.train], world.cases()[..sizes.train]);
        }
    }

    #[test]
    fn canaries_are_unique_and_only_in_val_and_test() {
        for family in Family::ALL {
            let world = World::draw(family, 6);
            let cases = world.cases();
            let tickets: BTreeSet<&String> = cases.iter().map(|case| &case.ticket).collect();
            assert_eq!(tickets.len(), cases.len());
            for case in &cases {
                let is_held_out = matches!(case.split, Some(Split::Val | Split::Test));
                assert_eq!(
                    (case.canary().is_some(), world.has_canary(&case.message)),
                    (is_held_out, is_held_out)
                );
                assert!(case.message.contains(&case.ticket));
                assert_eq!(cases.iter().filter(|other| other.message.contains(&case.ticket)).count(), 1);
            }
            let count = |split| cases.iter().filter(|case| case.split == split).count();
            match family {
                Family::Tiny => assert_eq!(count(None), 16),
                _ => assert!(
                    count(Some(Split::Val)) >= 20 && count(Some(Split::Test)) >= 12 && count(None) == 0
                ),
            }
        }
    }

    #[test]
    fn a_case_requires_the_actions_of_its_triggers() {
        for family in Family::ALL {
            let world = World::draw(family, 7);
            let cases = world.cases();
            let (least, most) = family.shape().per_case;
            for case in &cases {
                assert!((least..=most).contains(&case.rules.len()), "{case:?}");
                assert!(case.rules.iter().all(|at| world.rules[*at].niche == case.niche));
                assert!(case.message.contains(&case.desk));
                assert!(case.expected.len() - case.rules.len() <= 1);
                assert!(family == Family::NullOpt || case.expected.len() == case.rules.len());
            }
            let learnt: BTreeSet<usize> = cases
                .iter()
                .filter(|case| case.canary().is_none())
                .flat_map(|case| case.rules.clone())
                .collect();
            assert_eq!(learnt.len(), world.rules.len(), "train shows every rule");
        }
    }

    #[test]
    fn a_case_has_the_form_of_a_dataset() {
        let world = World::draw(Family::Niche, 1);
        let case = &world.cases()[0];
        let json = case.json(world.family());
        assert_eq!(json["inputs"], json!({"message": case.message, "desk": case.desk}));
        assert_eq!(json["metadata"]["split"], "train");
        assert!(json["metadata"]["group"].as_str().unwrap().starts_with("niche"));
        assert_eq!(json["expected_output"], json!(case.expected));
        let strict = &World::draw(Family::Strict, 1).cases()[0];
        assert_eq!(strict.expected_output, json!(strict.expected.join(", ")));
    }
}
