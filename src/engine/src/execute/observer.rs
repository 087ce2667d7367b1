//! The single interface through which a run calls models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use models::{EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelRequest, Pieces};
use parking_lot::Mutex;

use super::spending::{ModelBudget, Spending};
use crate::NodeError;

/// A model call that a node is about to make.
#[derive(Clone, Copy)]
pub struct ModelCall<'a> {
    /// The node, as in [`StepRecord::node`](super::ports::StepRecord::node).
    pub node: &'a str,
    /// The visit, from 1.
    pub visit: u32,
    /// Number of earlier calls in the visit, across all its attempts.
    pub ordinal: u32,
    /// `<provider>/<model>`.
    pub model: &'a str,
    /// The endpoint that the graph names, as JSON without secrets; `None`: the operator's.
    pub endpoint: Option<&'a serde_json::Value>,
    /// The provider.
    pub provider: &'a dyn Model,
    /// The attempt's usage so far.
    pub(super) sum: &'a Mutex<Spending>,
}

impl ModelCall<'_> {
    /// Adds to the attempt's usage.
    pub fn spend(&self, used: &Spending) {
        let mut sum = self.sum.lock();
        *sum = sum.plus(used);
    }
}

/// Receives every model call: sends it, or answers it otherwise.
#[async_trait]
pub trait ModelObserver: Send + Sync {
    /// Makes a call; the text of the answer goes to `pieces` as it arrives. Dropping the future ends the call.
    ///
    /// # Errors
    /// [`NodeError`] if the endpoint fails, or a limit forbids the call. Some pieces may have been delivered before.
    async fn call(
        &self,
        call: ModelCall<'_>,
        request: &ModelRequest,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, NodeError>;

    /// Time that calls have waited to be sent. It does not count as node time.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Embeds texts as vectors.
    ///
    /// # Errors
    /// As [`Self::call`].
    async fn embed(&self, call: ModelCall<'_>, request: &EmbedRequest) -> Result<Embeddings, NodeError>;
}

/// Sends every call that its budget allows.
pub struct WithinBudget<B>(pub B);

#[async_trait]
impl<B: ModelBudget> ModelObserver for WithinBudget<B> {
    async fn call(
        &self,
        call: ModelCall<'_>,
        request: &ModelRequest,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, NodeError> {
        let expected = Spending::expected(call.model, request);
        let reservation = Reservation::new(&self.0, call, expected).await?;
        let counted = Counted { pieces, bytes: AtomicUsize::new(0) };
        match call.provider.call(request, &counted).await {
            Ok(answer) => {
                reservation.used(|model, expected| Spending::answered(model, &answer, expected));
                Ok(answer)
            }
            Err(error) => Err(match counted.bytes.into_inner() {
                0 => reservation.failed(error),
                // A partial answer was paid for.
                streamed => {
                    reservation.used(|model, expected| Spending::used(model, None, expected, streamed));
                    error.into()
                }
            }),
        }
    }

    async fn embed(&self, call: ModelCall<'_>, request: &EmbedRequest) -> Result<Embeddings, NodeError> {
        let expected = Spending::expected_of_texts(call.model, &request.texts);
        let reservation = Reservation::new(&self.0, call, expected).await?;
        match call.provider.embed(request).await {
            Ok(made) => {
                reservation.used(|model, expected| Spending::used(model, made.usage, expected, 0));
                Ok(made)
            }
            Err(error) => Err(reservation.failed(error)),
        }
    }
}

/// A call's reservation, released on drop.
struct Reservation<'a> {
    budget: &'a dyn ModelBudget,
    call: ModelCall<'a>,
    expected: Spending,
    /// Usage before the endpoint has answered: charged if the call is abandoned.
    used: Spending,
}

impl<'a> Reservation<'a> {
    async fn new(
        budget: &'a dyn ModelBudget,
        call: ModelCall<'a>,
        expected: Spending,
    ) -> Result<Self, NodeError> {
        budget.reserve(&expected).await?;
        let used = Spending::for_call(call.model, expected.input_tokens, 0);
        Ok(Self { budget, call, expected, used })
    }

    /// Records usage after the endpoint has answered.
    fn used(mut self, used: impl FnOnce(&str, &Spending) -> Spending) {
        self.used = used(self.call.model, &self.expected);
    }

    /// Records no usage, because the endpoint has not answered.
    fn failed(mut self, error: ModelError) -> NodeError {
        self.used = Spending::default();
        error.into()
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.release(&self.expected, &self.used);
        self.call.spend(&self.used);
    }
}

/// Counts an answer's text bytes as they arrive.
struct Counted<'a> {
    pieces: &'a dyn Pieces,
    bytes: AtomicUsize,
}

#[async_trait]
impl Pieces for Counted<'_> {
    async fn piece(&self, text: &str) {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.pieces.piece(text).await;
    }
}
