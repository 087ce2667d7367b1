//! Call prices of a run: request prices take precedence over list prices. Pure.

use models::{Price, list_price};
use serde_json::Value;

/// A model at an endpoint; `None`: the operator's or the provider's endpoint.
pub(crate) type PricedModel = (String, Option<String>);

/// Prices that a request names for a model at an endpoint, for every role. All other prices are list prices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPrices(Vec<(PricedModel, Price)>);

impl RunPrices {
    /// Adds a price. The first price for a model counts.
    pub fn add(&mut self, model: &str, base_url: Option<&str>, price: Price) {
        self.0.push(((model.to_owned(), base_url.map(place)), price));
    }

    /// The price that the request names for this model at this endpoint.
    pub(crate) fn own(&self, model: &str, base_url: Option<&str>) -> Option<Price> {
        let wanted = base_url.map(place);
        self.0.iter().find(|((name, at), _)| name == model && *at == wanted).map(|(_, price)| *price)
    }

    /// The price of a model at an endpoint; `None` if neither the request nor the table has one.
    #[must_use]
    pub fn find(&self, model: &str, base_url: Option<&str>) -> Option<Price> {
        self.own(model, base_url).or_else(|| list_price(model))
    }

    /// The price of a call. `endpoint`: as in the call.
    pub(super) fn of_call(&self, model: &str, endpoint: Option<&Value>) -> Option<Price> {
        self.find(model, endpoint.and_then(|endpoint| endpoint.get("base_url")?.as_str()))
    }
}

/// Normalizes a URL by removing insignificant differences.
fn place(base_url: &str) -> String {
    base_url.trim().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_price_applies_to_a_model_at_an_endpoint() {
        let own = Price { input: 2.0, cached: None, output: 3.0, text_only: false };
        let mut prices = RunPrices::default();
        prices.add("openai/gpt-4.1-mini", Some("https://models.example/v1/"), own);
        let there = json!({"base_url": "https://models.example/v1", "api_key": "[[key]]"});
        assert_eq!(prices.of_call("openai/gpt-4.1-mini", Some(&there)), Some(own));
        // The operator's endpoint has the list price.
        assert_eq!(prices.of_call("openai/gpt-4.1-mini", None), list_price("openai/gpt-4.1-mini"));
        assert_eq!(prices.of_call("openai/own", Some(&there)), None);
        assert_eq!(prices.of_call("practice/classify", None), Some(Price::FREE));
    }
}
