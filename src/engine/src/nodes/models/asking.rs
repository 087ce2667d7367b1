//! Shared parts of nodes that call a model: fields, the call, an answer that must match a schema, and its cost.

use std::time::Duration;

use minijinja::Value as View;
use serde_json::{Value, json};
use wire::chat::NoticeLevel;
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::ImmediateEvent;
use crate::execute::{Call, Failure};
use crate::fenced;
use crate::graph::fields::Fields;
use crate::nodes::models::files::{self, Unseen};
use crate::nodes::models::target::{self, Chosen, ModelTarget};
use crate::redact::Masked;
use crate::schema::Schema;
use models::{Message, ModelAnswer, ModelRequest, NoPieces, Pieces, Role, Usage, cost, rounded};

/// Default time limit per attempt.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);
/// Default number of attempts.
pub(crate) const ATTEMPTS: u32 = 3;
/// Maximum tokens that may be requested.
const MAX_TOKENS: u32 = 1_000_000;
/// Maximum further calls to repair an answer.
const REPAIRS_MAX: u32 = 3;
/// Maximum problems that the model receives at once.
const TOLD: usize = 10;

/// Fields for the choice of a model and its settings.
#[derive(Clone)]
pub(crate) struct Asks {
    target: ModelTarget,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    seed: Option<u32>,
    repair: u32,
}

/// JSON Schema of these fields and the node's own.
pub(crate) fn schema(required: &[&str], own: Value) -> Value {
    let Value::Object(own) = own else { return own };
    let mut properties = target::properties();
    properties.extend(own);
    let shared = json!({
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
        "seed": {"type": "integer", "minimum": 0, "description": "Sent if the endpoint supports it."},
        "repair": {"type": "integer", "minimum": 0, "maximum": REPAIRS_MAX, "default": 1,
                   "description": "Number of retries if an answer does not match the schema; the model receives the \
                                   answer and the problem."}});
    properties.extend(shared.as_object().cloned().unwrap_or_default());
    json!({"type": "object", "required": required, "properties": properties})
}

impl Asks {
    pub(crate) fn read(fields: &mut Fields<'_>, check: &mut Check) -> Option<Self> {
        let target = ModelTarget::read(fields, check);
        let problems = &mut check.problems;
        let temperature = fields.number("temperature", 0.0..=2.0, problems);
        let max_tokens = fields.whole("max_tokens", 1..=MAX_TOKENS, problems);
        let seed = fields.whole("seed", 0..=u32::MAX, problems);
        let repair = fields.whole("repair", 0..=REPAIRS_MAX, problems).unwrap_or(1);
        Some(Self { target: target?, temperature, max_tokens, seed, repair })
    }

    /// Returns the node's input for the journal.
    pub(crate) fn input(&self, messages: Vec<Message>, scope: &View) -> Result<Value, NodeError> {
        let messages = serde_json::to_value(messages)
            .map_err(|error| NodeError::failed(format!("the messages cannot be sent: {error}")))?;
        let mut input = self.target.input(scope)?;
        input.insert("messages".to_owned(), messages);
        Ok(Value::Object(input))
    }

    /// Builds the request from an input.
    pub(crate) fn request(&self, input: Value, key: String) -> Result<(Chosen, ModelRequest), NodeError> {
        let chosen = Chosen::from_input(&input);
        let messages = input.get("messages").cloned().unwrap_or_default();
        let messages: Vec<Message> = serde_json::from_value(messages)
            .map_err(|error| NodeError::failed(format!("the messages cannot be sent: {error}")))?;
        let request = ModelRequest {
            model: String::new(),
            messages,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed.map(u64::from),
            response_schema: None,
            tools: Vec::new(),
            idempotency_key: Some(key),
        };
        Ok((chosen, request))
    }

    /// Requests an answer that matches `schema`, and returns it as JSON.
    pub(crate) async fn json(
        &self,
        input: Value,
        written: &Value,
        schema: &Schema,
        call: &Call<'_>,
    ) -> Result<ModelResult, Failure> {
        let (chosen, mut request) = self.request(input, call.idempotency_key())?;
        request.response_schema = Some(written.clone());
        self.asking(&chosen, Some(schema)).ask(request, call, false).await
    }

    pub(crate) fn asking<'a>(&self, chosen: &'a Chosen, schema: Option<&'a Schema>) -> PreparedCall<'a> {
        PreparedCall { chosen, schema, repair: self.repair }
    }
}

/// A conversation with instructions and a single user message.
pub(crate) fn messages(system: String, user: String) -> Vec<Message> {
    vec![Message::text(Role::System, system), Message::text(Role::User, user)]
}

/// A call that is about to be made.
pub(crate) struct PreparedCall<'a> {
    chosen: &'a Chosen,
    /// The schema for the answer, unless it calls tools.
    schema: Option<&'a Schema>,
    repair: u32,
}

/// The result of a call.
pub(crate) struct ModelResult {
    pub(crate) answer: ModelAnswer,
    /// The answer as JSON, if a schema is set.
    pub(crate) json: Value,
    pub(crate) spent: Spent,
    /// Files that the model did not see.
    pub(crate) unseen: Vec<Unseen>,
}

impl PreparedCall<'_> {
    /// Calls the model. Sends an invalid answer back with its problems, up to the repair limit.
    pub(crate) async fn ask(
        &self,
        mut request: ModelRequest,
        call: &Call<'_>,
        stream: bool,
    ) -> Result<ModelResult, Failure> {
        let (provider, model) = self.chosen.find(call).await?;
        model.clone_into(&mut request.model);
        let files = files::load(&mut request, &self.chosen.name, call).await?;
        let mut spent = Spent::new();
        let mut left = self.repair;
        loop {
            // An endpoint may repeat the key that it received.
            let masked = stream.then(|| Masked::new(call, call.redactor()));
            let pieces: &dyn Pieces = masked.as_ref().map_or(&NoPieces, |masked| masked);
            let answered = call.ask_model(self.chosen.asked(&*provider), &request, pieces).await;
            // Also needed for an answer that breaks off.
            if let Some(masked) = masked {
                masked.finish().await;
            }
            let answer = answered?;
            spent.add(&self.chosen.name, answer.usage);
            call.note_usage(spent.written());
            match missing_reason(&answer) {
                Some(reason) if stream => notify(reason, call).await,
                // With a schema, a missing answer is repaired or an error.
                Some(reason) if self.schema.is_none() => call.keep_missing_answer(reason),
                _ => {}
            }
            let Some(schema) = self.schema.filter(|_| answer.tool_calls.is_empty()) else {
                return Ok(ModelResult { answer, json: Value::Null, spent, unseen: files.unseen });
            };
            let wrong = match fitting(&answer.text, schema) {
                Ok(json) => return Ok(ModelResult { answer, json, spent, unseen: files.unseen }),
                Err(wrong) => wrong,
            };
            // A truncated or filtered answer would be truncated or filtered again.
            let ended = answer.finish_reason.as_deref().unwrap_or("stop");
            if left == 0 || matches!(ended, "length" | "content_filter") {
                let why = wrong.into_iter().next().unwrap_or_default();
                let why =
                    if ended == "length" { format!("{why}; it was truncated at max_tokens") } else { why };
                return Err(NodeError::retryable(ErrorCode::ModelBadAnswer, why).into());
            }
            left = left.saturating_sub(1);
            if stream {
                call.take_back().await;
            }
            let said = Message { carry: answer.carry, ..Message::text(Role::Assistant, answer.text) };
            request.messages.push(said);
            request.messages.push(Message::text(Role::User, complaint(&wrong)));
            let key = call.idempotency_key();
            request.idempotency_key = Some(format!("{key}-repair-{}", self.repair.saturating_sub(left)));
        }
    }
}

/// The reason that an answer is missing or incomplete, for the chat's readers.
fn missing_reason(answer: &ModelAnswer) -> Option<&'static str> {
    if answer.finish_reason.as_deref() == Some("content_filter") {
        return Some("The model declined to answer.");
    }
    let is_empty = answer.text.trim().is_empty() && answer.tool_calls.is_empty();
    is_empty.then_some("The model returned an empty answer.")
}

/// Notifies the chat's readers of a reply that shows nothing, if a model's answer is missing.
pub(crate) async fn notify_of_missing_answer(call: &Call<'_>) {
    if let Some(reason) = call.missing_answer() {
        notify(reason, call).await;
    }
}

/// Notifies the chat's readers, once per turn.
async fn notify(message: &str, call: &Call<'_>) {
    if call.record_notice(message) {
        let message = message.to_owned();
        call.immediate(ImmediateEvent::Notice { level: NoticeLevel::Warning, message, title: None }).await;
    }
}

/// Parses an answer as JSON, or returns all its problems.
fn fitting(text: &str, schema: &Schema) -> Result<Value, Vec<String>> {
    let json = fenced::json(text).map_err(|error| vec![format!("the answer is not JSON: {error}")])?;
    let problems = schema.problems(&json, "");
    if problems.is_empty() {
        return Ok(json);
    }
    let told = |problem: FieldError| {
        format!("the answer does not match the schema: {} {}", problem.pointer, problem.message)
    };
    Err(problems.into_iter().take(TOLD).map(told).collect())
}

fn complaint(wrong: &[String]) -> String {
    let wrong: Vec<String> = wrong.iter().map(|problem| format!("- {problem}")).collect();
    format!(
        "That cannot be used:\n{}\n\nGive the whole answer again, as JSON that fits the schema, and nothing else.",
        wrong.join("\n")
    )
}

/// The cost of calls. A sum is unknown if one of its parts is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spent {
    calls: u64,
    usage: Option<Usage>,
    dollars: Option<f64>,
}

impl Spent {
    pub(crate) fn new() -> Self {
        Self { calls: 0, usage: Some(Usage::default()), dollars: Some(0.0) }
    }

    /// Adds a call to this model.
    pub(crate) fn add(&mut self, model: &str, usage: Option<Usage>) {
        self.calls = self.calls.saturating_add(1);
        let dollars = usage.and_then(|usage| cost(model, usage));
        self.add_sums(usage, dollars);
    }

    /// Adds the usage recorded in an earlier result.
    pub(crate) fn add_written(&mut self, written: &Value) {
        self.calls = self.calls.saturating_add(written.get("calls").and_then(Value::as_u64).unwrap_or(1));
        let usage = serde_json::from_value(written.clone()).ok();
        self.add_sums(usage, written.get("cost_usd").and_then(Value::as_f64));
    }

    fn add_sums(&mut self, usage: Option<Usage>, dollars: Option<f64>) {
        self.dollars = self.dollars.zip(dollars).map(|(sum, more)| rounded(sum + more));
        self.usage = self.usage.zip(usage).map(|(mut sum, more)| {
            sum += more;
            sum
        });
    }

    /// The usage in results: `{calls, input_tokens, output_tokens, cached_tokens?, cost_usd}`; unknown values are
    /// null.
    pub(crate) fn written(&self) -> Value {
        let counts = self
            .usage
            .map_or_else(|| json!({"input_tokens": null, "output_tokens": null}), |usage| json!(usage));
        let mut written = counts;
        if let Some(members) = written.as_object_mut() {
            members.insert("calls".to_owned(), json!(self.calls));
            members.insert("cost_usd".to_owned(), json!(self.dollars));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_cost_is_known_while_every_price_is_known() {
        let used = |input_tokens| Some(Usage { input_tokens, ..Usage::default() });
        let mut spent = Spent::new();
        let nothing = json!({"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0});
        assert_eq!(spent.written(), nothing);
        spent.add("openai/gpt-4.1-mini", used(10));
        let once = spent.written();
        assert_eq!(once, json!({"calls": 1, "input_tokens": 10, "output_tokens": 0, "cost_usd": 0.000_004}));
        spent.add_written(&once);
        assert_eq!(spent.written()["cost_usd"], 0.000_008);
        spent.add("openai/other", used(1));
        assert_eq!(
            spent.written(),
            json!({"calls": 3, "input_tokens": 21, "output_tokens": 0, "cost_usd": null})
        );
        spent.add("openai/other", None);
        let unknown = json!({"calls": 4, "input_tokens": null, "output_tokens": null, "cost_usd": null});
        assert_eq!(spent.written(), unknown);
        spent.add_written(&once);
        assert_eq!(
            spent.written(),
            json!({"calls": 5, "input_tokens": null, "output_tokens": null, "cost_usd": null})
        );
    }
}
