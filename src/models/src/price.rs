//! Call costs: list prices of well-known models, from `prices.json`.
//!
//! List prices exclude discounts for batches, long prompts or contracts. A model that is missing from the table has no
//! price.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Usage;

/// A model's prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price for input tokens.
    pub input: f64,
    /// Price for cached input tokens; `None` means the `input` price.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Price for output tokens.
    pub output: f64,
    /// Whether the model reads text only and rejects images.
    #[serde(default)]
    pub text_only: bool,
}

/// The price table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The month in which the prices were collected.
    pub as_of: String,
    /// Prices by `<provider>/<model>`.
    #[serde(rename = "per_million_tokens_usd")]
    pub models: BTreeMap<String, Price>,
}

static PRICES: LazyLock<Prices> = LazyLock::new(|| {
    let read = serde_json::from_str(include_str!("prices.json"));
    // A test parses the file.
    read.unwrap_or_else(|_| Prices { as_of: String::new(), models: BTreeMap::new() })
});

impl Prices {
    /// The built-in table.
    #[must_use]
    pub fn known() -> &'static Self {
        &PRICES
    }
}

impl Price {
    /// The price of a free model.
    pub const FREE: Self = Self { input: 0.0, cached: None, output: 0.0, text_only: false };

    /// Returns the cost of a call in US dollars.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let of = |tokens: u64, price: f64| f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) * price;
        let millionths = of(usage.input_tokens - cached, self.input)
            + of(cached, self.cached.unwrap_or(self.input))
            + of(usage.output_tokens, self.output);
        rounded(millionths / 1e6)
    }
}

/// Returns the list price of `<provider>/<model>`; `None` if the table does not have it. The built-in model is free.
#[must_use]
pub fn list_price(model: &str) -> Option<Price> {
    if model.starts_with("practice/") { Some(Price::FREE) } else { find(model).copied() }
}

/// Returns the cost of a `<provider>/<model>` call in US dollars; `None` if its price is unknown.
#[must_use]
pub fn cost(model: &str, usage: Usage) -> Option<f64> {
    list_price(model).map(|price| price.cost(usage))
}

/// Whether images may be sent to `<provider>/<model>`: not if the table marks it as text-only. A model that is missing
/// from the table may accept images.
#[must_use]
pub fn sees_images(model: &str) -> bool {
    !find(model).is_some_and(|price| price.text_only)
}

/// Rounds an amount to remove binary fraction noise.
#[must_use]
pub fn rounded(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}

/// Finds the price of a model or its dated version.
fn find(model: &str) -> Option<&'static Price> {
    let prices = &PRICES.models;
    prices.get(model).or_else(|| {
        let known =
            prices.iter().filter(|(name, _)| model.strip_prefix(name.as_str()).is_some_and(is_version));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
    })
}

/// Version suffixes that denote the same model: `-2025-04-14`, `-20250929`, `-001`, `-latest`, `-preview…`.
fn is_version(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('-') else { return false };
    let first = rest.split('-').next().unwrap_or_default();
    let dated = first.len() >= 3 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    dated || rest == "latest" || rest.starts_with("preview")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, cached_tokens }
    }

    #[test]
    fn the_price_table_is_valid_and_lists_known_providers() {
        let prices = Prices::known();
        assert_eq!(prices.as_of.len(), 7);
        assert!(prices.models.len() > 20);
        for (name, price) in &prices.models {
            assert!(
                ["openai/", "anthropic/", "gemini/"].iter().any(|start| name.starts_with(start)),
                "{name}"
            );
            assert!(price.input > 0.0 && price.output >= 0.0, "{name}");
            assert!(price.cached.is_none_or(|cached| cached < price.input), "{name}");
        }
    }

    #[test]
    fn a_model_sees_images_unless_the_table_says_otherwise() {
        for (model, sees) in [
            ("openai/gpt-4.1-mini-2025-04-14", true),
            ("openai/o3", true),
            ("openai/o3-mini", false),
            ("openai/o3-mini-2025-01-31", false),
            ("openai/text-embedding-3-small", false),
            ("gemini/gemini-embedding-001", false),
            ("anthropic/claude-3-haiku-20240307", true),
            ("openai/llava", true),
            ("practice/assistant", true),
        ] {
            assert_eq!(sees_images(model), sees, "{model}");
        }
    }

    #[test]
    fn a_call_costs_what_its_tokens_do() {
        for (model, usage, dollars) in [
            ("openai/gpt-4.1-mini", used(1_000_000, 0, 0), Some(0.4)),
            ("openai/gpt-4.1-mini", used(1_000_000, 500_000, 1_000_000), Some(0.2 + 0.05 + 1.6)),
            ("openai/gpt-4.1-mini-2025-04-14", used(0, 0, 10), Some(0.000_016)),
            ("anthropic/claude-sonnet-4-20250514", used(3, 0, 1), Some(0.000_024)),
            ("anthropic/claude-opus-4-1-20250805", used(1_000, 0, 0), Some(0.015)),
            ("openai/gpt-5.5", used(1_000_000, 1_000_000, 0), Some(5.0)),
            ("gemini/gemini-2.5-flash-lite", used(1_000_000, 0, 0), Some(0.1)),
            ("gemini/gemini-2.5-flash-image", used(1, 0, 0), None),
            ("openai/gpt-5-pro", used(1, 0, 0), None),
            ("openai/llama3", used(1, 0, 1), None),
            ("practice/assistant", used(9, 0, 9), Some(0.0)),
        ] {
            assert_eq!(cost(model, usage), dollars, "{model}");
        }
    }
}
