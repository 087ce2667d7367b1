//! Models that a request names for its optimizer and its judges.

use engine::Fields;
use models::{PRACTICE, PROVIDERS, Price};
use net::Url;
use serde_json::{Map, Value, json};
use wire::{FieldError, is_credential_name, nearest};

use super::fields::{ID, POSITIVE, number, object, text};
use crate::calls::RunPrices;

/// Maximum bytes of a URL.
const LONGEST_URL: usize = 2_000;

/// The models that a request names. Both default to the model of the first node that reads a trainable prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunModels {
    /// The model that writes proposals; none in an evaluation.
    pub optimizer: Option<ModelChoice>,
    /// The model that evaluators ask.
    pub judge: Option<ModelChoice>,
}

/// A model that a request names.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// `<provider>/<model>` with a known provider.
    pub model: String,
    /// An http or https endpoint that replaces the operator's.
    pub base_url: Option<String>,
    /// The credential with the endpoint's key, by name; without `base_url` the key is sent to the provider's own
    /// address.
    pub credential: Option<String>,
    /// From 0 to 2; defaults to the endpoint's own.
    pub temperature: Option<f64>,
    /// US dollars per million tokens; defaults to the price table.
    pub prices: Option<Price>,
}

impl RunModels {
    /// Reads `models`, which may have the members `names`.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        names: &[&'static str],
        problems: &mut Vec<FieldError>,
    ) -> Self {
        let Some(mut fields) = object(fields, "models", problems) else { return Self::default() };
        let mut of = |name: &'static str| {
            let fields = if names.contains(&name) { object(&mut fields, name, problems) } else { None };
            fields.and_then(|fields| ModelChoice::read(fields, problems))
        };
        let read = Self { optimizer: of("optimizer"), judge: of("judge") };
        let at = fields.at("judge");
        fields.refuse_others(problems);
        let [one, two] =
            [&read.optimizer, &read.judge].map(|choice| choice.as_ref().and_then(ModelChoice::own_price));
        if let (Some((model, price)), Some((other, second))) = (one, two)
            && model == other
            && price != second
        {
            let message = format!("'{}' has other prices in 'models.optimizer'", model.0);
            let problem = FieldError::new(format!("{at}/prices"), "conflict", message);
            problems.push(problem.suggest("give the same model at the same endpoint the same prices"));
        }
        read
    }

    /// The prices that the request names.
    #[must_use]
    pub fn prices(&self) -> RunPrices {
        let mut prices = RunPrices::default();
        let choices = [&self.optimizer, &self.judge].into_iter().flatten();
        for ((model, base_url), price) in choices.filter_map(ModelChoice::own_price) {
            prices.add(model, base_url, price);
        }
        prices
    }

    /// The models as in the request; null for each that it does not name.
    pub(super) fn filled(&self) -> Value {
        let of = |choice: &Option<ModelChoice>| choice.as_ref().map(ModelChoice::filled);
        json!({"optimizer": of(&self.optimizer), "judge": of(&self.judge)})
    }
}

impl ModelChoice {
    fn read(mut fields: Fields<'_>, problems: &mut Vec<FieldError>) -> Option<Self> {
        fields.required("model", problems);
        let model = text(&mut fields, "model", ID, problems);
        let base_url = text(&mut fields, "base_url", LONGEST_URL, problems);
        let credential = text(&mut fields, "credential", ID, problems);
        let has_endpoint = base_url.is_some() || credential.is_some();
        let at = fields.at("model");
        problems.extend(model.as_deref().and_then(|model| model_problem(model, has_endpoint, at)));
        if base_url.as_deref().is_some_and(|url| !is_address(url)) {
            let problem = FieldError::new(
                fields.at("base_url"),
                "url",
                "must be an http or https address, without templates and secrets",
            );
            problems.push(problem.suggest(r#""base_url": "https://api.example.com/v1""#));
        }
        if credential.as_deref().is_some_and(|name| !is_credential_name(name)) {
            let message = "must be the name of a credential in the vault, without [[ and ]]";
            problems.push(FieldError::new(fields.at("credential"), "format", message));
        }
        let temperature = fields.number("temperature", 0.0..=2.0, problems);
        let prices = object(&mut fields, "prices", problems);
        let prices = prices.and_then(|fields| read_prices(fields, problems));
        fields.refuse_others(problems);
        Some(Self { model: model?, base_url, credential, temperature, prices })
    }

    /// The price from the request, if given, with the model and its endpoint.
    fn own_price(&self) -> Option<((&str, Option<&str>), Price)> {
        Some(((&self.model, self.base_url.as_deref()), self.prices?))
    }

    /// The model as node fields: `model`, `base_url`, `api_key`, `temperature`.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let fields = [
            ("model", Some(json!(self.model))),
            ("base_url", self.base_url.as_ref().map(|url| json!(url))),
            ("api_key", self.credential.as_ref().map(|name| json!(format!("[[{name}]]")))),
            ("temperature", self.temperature.map(number)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    fn filled(&self) -> Value {
        let prices = self.prices.map(|prices| {
            json!({"input": number(prices.input), "cached": prices.cached.map(number), "output": number(prices.output)})
        });
        json!({
            "model": self.model,
            "base_url": self.base_url,
            "credential": self.credential,
            "temperature": self.temperature.map(number),
            "prices": prices,
        })
    }
}

/// Reads `{input, cached?, output}`, in the units of the price table.
fn read_prices(mut fields: Fields<'_>, problems: &mut Vec<FieldError>) -> Option<Price> {
    let input = fields.required("input", problems).and_then(|_| fields.number("input", POSITIVE, problems));
    let cached = fields.number("cached", POSITIVE, problems);
    let output =
        fields.required("output", problems).and_then(|_| fields.number("output", POSITIVE, problems));
    fields.refuse_others(problems);
    Some(Price { input: input?, cached, output: output?, text_only: false })
}

/// Whether a text is literal: as a node field it contains no template and names no secret.
fn is_plain(text: &str) -> bool {
    !["{{", "{%", "{#", "[["].into_iter().any(|mark| text.contains(mark))
}

fn is_address(text: &str) -> bool {
    is_plain(text) && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// The error codes equal those for a node's `model`.
fn model_problem(model: &str, has_endpoint: bool, at: String) -> Option<FieldError> {
    let (code, message, suggestion) = match model.split_once('/').filter(|_| is_plain(model)) {
        Some((PRACTICE, _)) if has_endpoint => {
            let message = "practice/<skill> is built in and has no endpoint".to_owned();
            ("model", message, "remove 'base_url' and 'credential'".to_owned())
        }
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => {
            if PROVIDERS.contains(&provider) {
                return None;
            }
            let suggestion = match nearest(provider, PROVIDERS) {
                Some(near) => format!("did you mean '{near}/{name}'?"),
                None => format!("providers: {}", PROVIDERS.join(", ")),
            };
            ("unknown_provider", format!("unknown model provider '{provider}'"), suggestion)
        }
        _ => {
            let forms = "<provider>/<model>, for example openai/gpt-4.1-mini or practice/reflect";
            ("model", format!("'{model}' is not a valid model"), forms.to_owned())
        }
    };
    Some(FieldError::new(at, code, message).suggest(suggestion))
}
