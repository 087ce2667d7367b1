//! Outgoing calls: their request, and its maximum usage.

use std::time::Duration;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{ModelCall, Spending};
use models::{EmbedRequest, ModelError, ModelErrorKind, ModelRequest, NoPieces, Price, Usage};
use wire::ErrorCode;

use super::journal::{RecordedCall, Reply, UnansweredCall};
use super::key::CallKey;
use super::usage::{Amount, Role, dollars, nanodollars};

/// Sends one kind of request.
#[async_trait]
pub(super) trait Sending: Sync {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError>;
}

#[async_trait]
impl Sending for ModelRequest {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError> {
        let request = Self { idempotency_key: Some(key), ..self.clone() };
        // A request may be repeated, so text is handed over only when complete.
        call.provider.call(&request, &NoPieces).await.map(Reply::Answer)
    }
}

#[async_trait]
impl Sending for EmbedRequest {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError> {
        let request = Self { idempotency_key: Some(key), ..self.clone() };
        call.provider.embed(&request).await.map(Reply::Embeddings)
    }
}

/// An outgoing call.
pub(super) struct OutgoingCall<'a> {
    pub(super) call: ModelCall<'a>,
    pub(super) key: CallKey,
    pub(super) role: Role,
    /// `None` if unknown.
    pub(super) price: Option<Price>,
    pub(super) expected: Amount,
    /// The usage if the call is given up.
    pub(super) input: Amount,
    pub(super) sending: &'a dyn Sending,
}

impl<'a> OutgoingCall<'a> {
    pub(super) fn new(
        call: ModelCall<'a>,
        key: CallKey,
        role: Role,
        price: Option<Price>,
        expected: Spending,
        sending: &'a dyn Sending,
    ) -> Self {
        let input = amount(&Spending { output_tokens: 0, ..expected }, None, price);
        Self { call, key, role, price, expected: amount(&expected, None, price), input, sending }
    }

    /// An answered request's usage, and whether it is estimated.
    pub(super) fn used(&self, reply: &Reply) -> (Amount, bool) {
        let expected = spending(&self.expected);
        match reply {
            Reply::Answer(answer) => {
                let used = Spending::answered(self.call.model, answer, &expected);
                (amount(&used, answer.usage, self.price), answer.usage.is_none())
            }
            Reply::Embeddings(made) => {
                let used = Spending::used(self.call.model, made.usage, &expected, 0);
                (amount(&used, made.usage, self.price), made.usage.is_none())
            }
        }
    }

    pub(super) fn unanswered(
        &self,
        used: Amount,
        estimated: bool,
        attempts: u32,
        duration: Duration,
    ) -> UnansweredCall {
        let (key, role, model) = (self.key, self.role, self.call.model.to_owned());
        UnansweredCall { key, role, model, used, estimated, attempts, duration }
    }

    pub(super) fn recorded(
        &self,
        reply: Reply,
        used: Amount,
        estimated: bool,
        attempts: u32,
        duration: Duration,
    ) -> RecordedCall {
        let (key, role, model) = (self.key, self.role, self.call.model.to_owned());
        RecordedCall { key, role, model, reply, used, estimated, attempts, duration }
    }
}

/// Prices a usage. `usage`: as counted by the endpoint, which separates cheaper tokens.
fn amount(spending: &Spending, usage: Option<Usage>, price: Option<Price>) -> Amount {
    let Spending { calls, input_tokens, output_tokens, .. } = *spending;
    let usage = usage.unwrap_or(Usage { input_tokens, output_tokens, ..Usage::default() });
    let dollars = price.map_or(0.0, |price| price.cost(usage));
    Amount { calls, input_tokens, output_tokens, nanodollars: nanodollars(dollars) }
}

pub(super) fn spending(amount: &Amount) -> Spending {
    Spending {
        calls: amount.calls,
        input_tokens: amount.input_tokens,
        output_tokens: amount.output_tokens,
        dollars: dollars(amount.nanodollars),
    }
}

/// The error for a recorded answer that does not fit its request.
pub(super) fn of_another_kind() -> NodeError {
    NodeError::new(ErrorCode::Internal, "the recorded answer is of another kind")
}

/// Whether the endpoint refuses because it gets too many requests.
pub(super) fn is_refusal(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::RateLimited | ModelErrorKind::Overloaded => true,
        // The endpoint names the time when it will be available again.
        ModelErrorKind::Unavailable => error.retry_after.is_some(),
        _ => false,
    }
}
