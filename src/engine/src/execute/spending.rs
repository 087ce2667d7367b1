//! Model usage and its limits.

use async_trait::async_trait;
use models::{Message, ModelAnswer, ModelRequest, Part, Usage, cost};

use crate::NodeError;

/// Answer tokens that a reservation assumes if the request sets no limit.
const ANSWER_TOKENS: u64 = 1_024;
/// Tokens charged per image.
const IMAGE_TOKENS: u64 = 1_000;
/// Text bytes per estimated token.
const BYTES_OF_TOKEN: usize = 4;

/// Actual or expected usage by model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spending {
    /// Calls that a model answered.
    pub calls: u64,
    /// Tokens that models read; estimated if the endpoint does not report them.
    pub input_tokens: u64,
    /// Tokens that models wrote; estimated in the same case.
    pub output_tokens: u64,
    /// US dollars, for models with a price.
    pub dollars: f64,
}

impl Spending {
    /// Input and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds two amounts.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            dollars: self.dollars + other.dollars,
        }
    }

    /// Estimates the usage of a model call.
    #[must_use]
    pub fn expected(model: &str, request: &ModelRequest) -> Self {
        let messages: usize = request.messages.iter().map(bytes_of).sum();
        let tools: usize =
            request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len()).sum();
        let answer = request.max_tokens.map_or(ANSWER_TOKENS, u64::from);
        let images: u64 = request.messages.iter().map(images_of).sum();
        let input = tokens_of(messages + tools).saturating_add(images.saturating_mul(IMAGE_TOKENS));
        Self::for_call(model, input, answer)
    }

    /// Estimates the usage of embedding these texts.
    #[must_use]
    pub fn expected_of_texts(model: &str, texts: &[String]) -> Self {
        Self::for_call(model, tokens_of(texts.iter().map(String::len).sum()), 0)
    }

    /// Returns a call's usage: as the endpoint reports it, else the expected input and an answer with `answer` bytes.
    #[must_use]
    pub fn used(model: &str, usage: Option<Usage>, expected: &Self, answer: usize) -> Self {
        match usage {
            Some(usage) => Self {
                calls: 1,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                dollars: cost(model, usage).unwrap_or_default(),
            },
            None => Self::for_call(model, expected.input_tokens, tokens_of(answer)),
        }
    }

    /// Returns an answered call's usage.
    #[must_use]
    pub fn answered(model: &str, answer: &ModelAnswer, expected: &Self) -> Self {
        let calls = answer.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len());
        Self::used(model, answer.usage, expected, answer.text.len() + calls.sum::<usize>())
    }

    /// Returns one call with these tokens.
    #[must_use]
    pub fn for_call(model: &str, input_tokens: u64, output_tokens: u64) -> Self {
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        Self { calls: 1, input_tokens, output_tokens, dollars: cost(model, usage).unwrap_or_default() }
    }
}

/// Text bytes in a message, including its files and its calls' arguments.
fn bytes_of(message: &Message) -> usize {
    let parts: usize = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Image(_) => 0,
        })
        .sum();
    let calls: usize = message.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum();
    parts.max(message.content.len()) + calls
}

fn images_of(message: &Message) -> u64 {
    let images = message.parts.iter().filter(|part| matches!(part, Part::Image(_))).count();
    u64::try_from(images).unwrap_or(u64::MAX)
}

fn tokens_of(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_OF_TOKEN).unwrap_or(u64::MAX)
}

/// A run's model budget.
#[async_trait]
pub trait ModelBudget: Send + Sync {
    /// Reserves a call's expected usage; [`Self::release`] follows.
    ///
    /// # Errors
    /// [`NodeError`] if a limit would be exceeded; nothing is reserved then.
    async fn reserve(&self, expected: &Spending) -> Result<(), NodeError>;

    /// Replaces a reservation by the actual usage when the call ends.
    fn release(&self, expected: &Spending, used: &Spending);
}

#[cfg(test)]
mod tests {
    use models::{Message, Role};

    use super::*;

    #[test]
    fn a_call_reserves_its_input_and_its_longest_answer() {
        let messages = vec![Message::text(Role::User, "x".repeat(400))];
        let request = ModelRequest { messages, ..ModelRequest::default() };
        let expected = Spending::expected("openai/gpt-4.1-mini", &request);
        assert_eq!((expected.input_tokens, expected.output_tokens), (100, ANSWER_TOKENS));
        assert!(expected.dollars > 0.0);
        let limited = ModelRequest { max_tokens: Some(7), ..request };
        assert_eq!(Spending::expected("openai/other", &limited).output_tokens, 7);
        assert_eq!(Spending::expected("openai/other", &limited).dollars, 0.0);
    }

    #[test]
    fn unreported_usage_is_estimated() {
        let expected = Spending { input_tokens: 100, ..Spending::default() };
        let used = Spending::used("openai/other", None, &expected, 40);
        assert_eq!((used.calls, used.tokens()), (1, 110));
        let usage = Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() };
        assert_eq!(Spending::used("openai/other", Some(usage), &expected, 40).tokens(), 7);
    }
}
