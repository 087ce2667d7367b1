//! The judge: the model that scores answers.

use serde_json::json;

use super::definition::World;
use super::random::{Draw, float};
use super::words::{is_action, word_set, words};

/// The error of a wrong judgement.
const SLIP: f64 = 0.25;

impl World {
    /// The judge's reply to messages, each `(role, content)`: a JSON object `{reasoning, score, feedback}`, with a
    /// score from 0 to 1.
    ///
    /// A function of messages and seed. The user message has `Input:`, `Expected:` and `Answer:`, as the node `judge`
    /// writes them. The score is the share of required words in the answer: those in `Expected:`, else those of the
    /// rules that apply to `Input:`.
    #[must_use]
    pub fn judge(&self, messages: &[(&str, &str)], seed: u64) -> String {
        let user = messages
            .iter()
            .rev()
            .find(|(role, _)| *role == "user")
            .map(|(_, content)| *content)
            .unwrap_or_default();
        let (input, expected, answer) = sections(user);
        let required: Vec<String> = match expected {
            Some(expected) => words(expected).filter(|word| is_action(word)).collect(),
            None => {
                let rules = self.applying(&word_set(input)).into_iter();
                rules.filter_map(|at| self.rules.get(at)).map(|rule| rule.action.clone()).collect()
            }
        };
        let answered = word_set(answer);
        let missing: Vec<&String> = required.iter().filter(|word| !answered.contains(*word)).collect();
        let share = 1.0 - float(missing.len()) / float(required.len().max(1));
        let draw = messages
            .iter()
            .fold(self.drawn("judge").number(seed), |draw: Draw, (_, content)| draw.for_key(content));
        let slip = match draw.happens(self.rates.judge_slips) {
            true if draw.for_key("up").happens(0.5) => SLIP,
            true => -SLIP,
            false => 0.0,
        };
        let score = ((share + slip).clamp(0.0, 1.0) * 100.0).round() / 100.0;
        let missing: Vec<String> = missing.iter().map(|word| format!("\"{word}\"")).collect();
        let feedback = if missing.is_empty() {
            String::new()
        } else {
            format!("The answer lacks {}.", missing.join(", "))
        };
        let reasoning = format!(
            "The answer has {} of {} required words.",
            required.len() - missing.len(),
            required.len()
        );
        json!({"reasoning": reasoning, "score": score, "feedback": feedback}).to_string()
    }
}

/// Splits a request into input, expected output and answer.
fn sections(user: &str) -> (&str, Option<&str>, &str) {
    let (before, answer) = user.rsplit_once("Answer:").unwrap_or(("", user));
    let (input, expected) = match before.rsplit_once("Expected:") {
        Some((input, expected)) => (input, Some(expected)),
        None => (before, None),
    };
    (input, expected, answer)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::family::Family;
    use super::super::rates::Rates;
    use super::*;

    fn verdict(world: &World, user: &str, seed: u64) -> Value {
        serde_json::from_str(&world.judge(&[("system", "You judge."), ("user", user)], seed)).unwrap()
    }

    #[test]
    fn a_score_is_the_share_of_the_required_words() {
        let world = World::draw(Family::One, 1).with_rates(Rates { judge_slips: 0.0, ..Rates::default() });
        let case = world.cases().into_iter().find(|case| case.expected.len() == 2).unwrap();
        let (first, all) = (&case.expected[0], case.expected.join(", "));
        let with = |answer: &str| {
            verdict(
                &world,
                &format!("Input: {}\n\nExpected: {}\n\nAnswer: {answer}", case.message, case.expected_output),
                1,
            )
        };
        assert_eq!((with(&all)["score"].as_f64(), with(first)["score"].as_f64()), (Some(1.0), Some(0.5)));
        assert!(with(first)["feedback"].as_str().unwrap().contains(&case.expected[1]));
        let without = verdict(&world, &format!("Input: {}\n\nAnswer: {first}", case.message), 1);
        assert_eq!(without["score"], 0.5);
    }

    #[test]
    fn judgements_slip_at_their_rate() {
        let world = World::draw(Family::One, 1);
        let case = world.cases().into_iter().find(|case| case.expected.len() == 2).unwrap();
        let user = format!(
            "Input: {}\n\nExpected: {}\n\nAnswer: {}",
            case.message, case.expected_output, case.expected[0]
        );
        let slips = (0..1_000).filter(|seed| verdict(&world, &user, *seed)["score"] != 0.5).count();
        assert!((60..140).contains(&slips), "{slips}");
        assert_eq!(verdict(&world, &user, 7), verdict(&world, &user, 7));
    }
}
