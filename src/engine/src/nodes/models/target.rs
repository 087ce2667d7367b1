//! The model and its endpoint: the operator's, or one that the graph names with a key from the vault.

use std::sync::Arc;

use minijinja::Value as View;
use models::{EndpointSettings, Model, PRACTICE};
use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::{AskedModel, Call};
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::outbound;
use crate::template::{as_text, fill, has_holes};

/// Maximum response bytes from an endpoint that a graph names.
const MOST_BODY: u64 = 32 * 1024 * 1024;

/// The fields that may name secrets.
pub(crate) const SECRETS: &[&str] = &["base_url", "api_key"];

/// The fields `model`, `base_url` and `api_key`.
#[derive(Clone)]
pub(crate) struct ModelTarget {
    model: Value,
    base_url: Option<Value>,
    api_key: Option<Value>,
}

/// JSON Schema of these fields.
pub(crate) fn properties() -> Map<String, Value> {
    let fields = json!({
        "model": {"type": "string", "description": "`<provider>/<model>`; a template."},
        "base_url": {"type": "string", "description":
            "Endpoint to use instead of the operator's; a template. The operator's key is never sent there."},
        "api_key": {"type": "string", "description":
            "A key from the vault, such as `[[openai key]]`, instead of the operator's; without `base_url` it is sent \
             to the provider's own address."}});
    fields.as_object().cloned().unwrap_or_default()
}

impl ModelTarget {
    pub(crate) fn read(fields: &mut Fields<'_>, check: &mut Check) -> Option<Self> {
        let model = text_field(fields, "model", check);
        let base_url = outbound::optional_url(fields, "base_url", check);
        let api_key = outbound::optional_secret(fields, "api_key", "openai key", check);
        if let Some(Value::String(name)) = &model
            && !has_holes(name)
        {
            check_name(name, base_url.is_some() || api_key.is_some(), fields, check);
        }
        Some(Self { model: model?, base_url, api_key })
    }

    /// Returns the part that goes into the journal with the node's input.
    pub(crate) fn input(&self, scope: &View) -> Result<Map<String, Value>, NodeError> {
        let mut input = Map::new();
        input.insert("model".to_owned(), Value::String(as_text(&fill(&self.model, scope)?)));
        if self.base_url.is_some() || self.api_key.is_some() {
            let fields = [("base_url", self.base_url.as_ref()), ("api_key", self.api_key.as_ref())];
            input.insert("endpoint".to_owned(), outbound::texts(fill_fields(fields, scope)?)?);
        }
        Ok(input)
    }
}

fn check_name(name: &str, has_endpoint: bool, fields: &Fields<'_>, check: &mut Check) {
    match name.split_once('/') {
        Some((PRACTICE, _)) if has_endpoint => {
            let message = "practice/<skill> is built in and has no endpoint";
            let problem = FieldError::new(fields.at("model"), "model", message);
            check.note(problem.suggest("remove 'base_url' and 'api_key'"));
        }
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {}
        _ => {
            let problem =
                FieldError::new(fields.at("model"), "model", format!("'{name}' is not a valid model"));
            let forms = "<provider>/<model>, for example openai/gpt-4.1-mini or practice/reply";
            check.note(problem.suggest(forms));
        }
    }
}

/// The model chosen in an input. Secrets appear only as names.
#[derive(Clone)]
pub(crate) struct Chosen {
    /// `<provider>/<model>`.
    pub(crate) name: String,
    endpoint: Option<Value>,
}

impl Chosen {
    /// Reads the output of [`ModelTarget::input`].
    pub(crate) fn from_input(input: &Value) -> Self {
        let name = input.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { name, endpoint: input.get("endpoint").cloned() }
    }

    /// Returns the same choice as a part of another input.
    pub(crate) fn input(&self) -> Map<String, Value> {
        let mut input = Map::from_iter([("model".to_owned(), json!(self.name))]);
        input.extend(self.endpoint.clone().map(|endpoint| ("endpoint".to_owned(), endpoint)));
        input
    }

    /// Combines it with its provider, as a call needs it.
    pub(crate) fn asked<'a>(&'a self, provider: &'a dyn Model) -> AskedModel<'a> {
        AskedModel { name: &self.name, endpoint: self.endpoint.as_ref(), provider }
    }

    /// Finds the provider and its model. Reads the vault each time, so that a rotated key takes effect immediately.
    pub(crate) async fn find(&self, call: &Call<'_>) -> Result<(Arc<dyn Model>, &str), NodeError> {
        let Some(endpoint) = &self.endpoint else {
            let (model, name) = call.models().find(&self.name)?;
            return Ok((Arc::clone(model), name));
        };
        let fields = outbound::reveal(endpoint.clone(), call).await?;
        let text = |name: &str| fields.text(name).map(str::to_owned);
        let settings = EndpointSettings {
            base_url: text("base_url"),
            api_key: text("api_key").map(Into::into),
            most_bytes: Some(MOST_BODY),
        };
        Ok(call.models().find_at(&self.name, settings)?)
    }
}
