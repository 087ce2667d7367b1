//! The reflector: the model that improves prompts.

use super::definition::World;
use super::feedback;
use super::random::Draw;
use super::rewriting::{criticize, rewrite};

/// The share of replies with text around the prompt that use a fence instead of the tag.
const FENCED: f64 = 0.25;
const REFUSAL: &str = "I'm sorry, but I can't help with that.";
const WITHOUT_PROMPT: &str = "I cannot find a prompt in the request.";

impl World {
    /// The reflector's reply to messages, each `(role, content)`.
    ///
    /// A function of messages and seed. A request with `<prompt name="…">` and `<new_prompt>` gets a new prompt in
    /// that tag, with the mistakes from [`Rates`](super::Rates); one without `<new_prompt>` gets a one-sentence
    /// critique. The reflector reads the first six failing records.
    #[must_use]
    pub fn reflect(&self, messages: &[(&str, &str)], seed: u64) -> String {
        let draw = self.reflection(messages, seed);
        let Some(request) = feedback::read(messages) else { return WITHOUT_PROMPT.to_owned() };
        if request.is_critique {
            return criticize(self, &request, draw);
        }
        if draw.for_key("refuses").happens(self.rates.refuses) {
            return REFUSAL.to_owned();
        }
        let text = rewrite(self, &request, draw);
        let chatter = draw.for_key("chatter");
        if !chatter.happens(self.rates.chatter) {
            return format!("<new_prompt>\n{text}\n</new_prompt>");
        }
        let written = match chatter.for_key("fence").happens(FENCED) {
            true => format!("```\n{text}\n```"),
            false => format!("<new_prompt>\n{text}\n</new_prompt>"),
        };
        format!("Sure! Here is the improved prompt:\n\n{written}\n\nI stated what the records show.")
    }

    /// The draws for a request.
    fn reflection(&self, messages: &[(&str, &str)], seed: u64) -> Draw {
        let draw = self.drawn("reflect").number(seed);
        messages.iter().fold(draw, |draw, (role, content)| draw.for_key(role).for_key(content))
    }
}
