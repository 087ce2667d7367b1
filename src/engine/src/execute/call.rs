//! The services that a working node may use.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::Clock;
use parking_lot::Mutex;
use sandbox::Sandbox;
use serde_json::Value;
use wire::chat::ItemBody;

use super::Failure;
use super::activity::{ActivityGuard, AskingStep, WaitGuard};
use super::attachments::Attachments;
use super::delivery::Delivery;
use super::ports::{
    Answer, Collections, Credentials, Databases, ImmediateEvent, ModelCall, Ports, SearchIndex,
    SentAnnotation, SentItem, StepKey, StepRecord, ThreadChange, Workflows,
};
use super::seen::SeenCall;
use super::spending::Spending;
use super::visit::Visit;
use crate::redact::Redactor;
use crate::{NodeError, RunError};
use models::{EmbedRequest, Embeddings, Model, ModelAnswer, ModelRequest, Models, Pieces};

/// The model of a call.
#[derive(Clone, Copy)]
pub(crate) struct AskedModel<'a> {
    pub(crate) name: &'a str,
    /// The endpoint that the graph names.
    pub(crate) endpoint: Option<&'a Value>,
    pub(crate) provider: &'a dyn Model,
}

/// The services that a working node may use.
pub(crate) struct Call<'a> {
    pub(super) visit: &'a Visit<'a>,
    pub(super) attempt: u32,
    /// First start of this attempt, kept across a restart.
    pub(crate) started_at: DateTime<Utc>,
    /// The note recorded with its start.
    pub(crate) note: Option<Value>,
    /// The request to send when the attempt is done.
    pub(super) delivery: Mutex<Option<Delivery>>,
    /// Tokens of the model answers so far, in the format of results.
    pub(super) usage: Mutex<Option<Value>>,
    /// Model usage by this attempt itself.
    pub(super) spending: Mutex<Spending>,
    /// Its model calls, in a rehearsal.
    pub(super) seen: Mutex<Vec<SeenCall>>,
    /// The warning from a workflow that it ran.
    pub(super) warning: Mutex<Option<RunError>>,
}

impl Visit<'_> {
    /// The services for the attempt with this record.
    pub(super) fn call(&self, record: &StepRecord) -> Call<'_> {
        Call {
            visit: self,
            attempt: record.attempt,
            started_at: record.started_at,
            note: record.note.clone(),
            delivery: Mutex::default(),
            usage: Mutex::default(),
            spending: Mutex::default(),
            seen: Mutex::default(),
            warning: Mutex::default(),
        }
    }
}

impl Call<'_> {
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.visit.env.ports.clock
    }

    pub(crate) fn models(&self) -> &Models {
        self.visit.env.ports.models
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        self.visit.env.ports.sandbox
    }

    pub(crate) fn workflows(&self) -> &dyn Workflows {
        self.visit.env.ports.workflows
    }

    /// Client for addresses that the graph names.
    pub(crate) fn outbound(&self) -> &net::Client {
        self.visit.env.ports.outbound
    }

    pub(crate) fn credentials(&self) -> &dyn Credentials {
        self.visit.env.ports.credentials
    }

    pub(crate) fn search(&self) -> &dyn SearchIndex {
        self.visit.env.ports.search
    }

    /// Collections of the run's app.
    pub(crate) fn collections(&self) -> &dyn Collections {
        self.visit.env.ports.collections
    }

    /// Files in the run's thread.
    pub(crate) fn attachments(&self) -> &dyn Attachments {
        self.visit.env.ports.attachments
    }

    /// Records a notice by its subject, such as an attachment. Returns `true` if it is the first one.
    pub(crate) fn record_notice(&self, subject: &str) -> bool {
        self.visit.env.noticed.lock().insert(subject.to_owned())
    }

    /// Keeps the reason for a missing answer, for a reply that has nothing to show.
    pub(crate) fn keep_missing_answer(&self, reason: &'static str) {
        *self.visit.env.missing_answer.lock() = Some(reason);
    }

    /// The reason for the run's last missing answer, if it was not streamed.
    pub(crate) fn missing_answer(&self) -> Option<&'static str> {
        *self.visit.env.missing_answer.lock()
    }

    pub(crate) fn databases(&self) -> &dyn Databases {
        self.visit.env.ports.databases
    }

    /// The redactor; secrets that it learns are removed from the run's output.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.visit.env.redactor
    }

    /// Schedules a request, sent once this attempt's row is durable.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        *self.delivery.lock() = Some(delivery);
    }

    /// Records the tokens of the model answers so far: they count even if the attempt fails.
    pub(crate) fn note_usage(&self, usage: Value) {
        *self.usage.lock() = Some(usage);
    }

    /// Calls a model; the text of its answer goes to `pieces` as it arrives.
    ///
    /// # Errors
    /// As [`ModelObserver::call`](super::ports::ModelObserver::call).
    pub(crate) async fn ask_model(
        &self,
        asked: AskedModel<'_>,
        request: &ModelRequest,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, NodeError> {
        let answer = self.visit.env.ports.observer.call(self.model_call(asked), request, pieces).await?;
        self.note_call(asked.name, request, &answer);
        Ok(answer)
    }

    /// As [`Self::ask_model`], for text embeddings.
    ///
    /// # Errors
    /// As [`Self::ask_model`].
    pub(crate) async fn embed_texts(
        &self,
        asked: AskedModel<'_>,
        request: &EmbedRequest,
    ) -> Result<Embeddings, NodeError> {
        self.visit.env.ports.observer.embed(self.model_call(asked), request).await
    }

    fn model_call<'b>(&'b self, asked: AskedModel<'b>) -> ModelCall<'b> {
        ModelCall {
            node: &self.visit.path,
            visit: self.visit.number,
            ordinal: self.visit.model_calls.fetch_add(1, Ordering::Relaxed),
            model: asked.name,
            endpoint: asked.endpoint,
            provider: asked.provider,
            sum: &self.spending,
        }
    }

    /// The node's name in the journal.
    pub(crate) fn path(&self) -> &str {
        &self.visit.path
    }

    fn key(&self) -> StepKey<'_> {
        StepKey { node: self.path(), visit: self.visit.number, attempt: self.attempt }
    }

    /// Identical for every attempt of this visit, and unique to the visit.
    pub(crate) fn idempotency_key(&self) -> String {
        let run = self.visit.frame.input.run_of(self.visit.step).unwrap_or(&self.visit.frame.input.run.id);
        format!("{run}-{}-{}", self.visit.path, self.visit.number)
    }

    /// Held while the node itself works although it has lent its place to nested work.
    pub(crate) fn at_work(&self) -> ActivityGuard<'_> {
        self.visit.env.ports.activity.busy()
    }

    /// Whether waits are skipped, see [`Rehearsal`](super::ports::Rehearsal).
    pub(crate) fn rehearses(&self) -> bool {
        self.visit.env.ports.rehearsal.is_some()
    }

    /// Waits until this time. The run may be dropped meanwhile and resume later.
    pub(crate) async fn wait_until(&self, until: DateTime<Utc>) {
        let ports = self.visit.env.ports;
        let _waits = ports.activity.waits(Some(until));
        let left = (until - ports.clock.now()).to_std().unwrap_or_default();
        ports.clock.sleep(left).await;
    }

    /// Waits for a person's answer to the question recorded with this attempt's start; `None` without an answer in
    /// time. The run may be dropped meanwhile, as in [`Self::wait_until`].
    pub(crate) async fn answer(&self, until: Option<DateTime<Utc>>) -> Result<Option<Answer>, Failure> {
        let waits = || self.visit.env.ports.activity.waits_for_person(until);
        self.wait_for_answer(waits, until).await
    }

    /// Returns the answer, if stored. The run counts as working until the read ends: otherwise a slow database would
    /// make it idle.
    async fn stored_answer(&self) -> Result<Option<Answer>, Failure> {
        let stored = self.visit.env.ports.answers.stored(self.key()).await;
        stored.map_err(|error| Failure::Lost(error.to_string()))
    }

    /// As [`Self::answer`], for a chat item's question. In a thread, the turn ends with the item, however soon the
    /// question expires; elsewhere the run waits.
    pub(crate) async fn answer_to_item(
        &self,
        until: Option<DateTime<Utc>>,
    ) -> Result<Option<Answer>, Failure> {
        // Later text belongs to another message, even if the answer is already stored.
        self.new_message().await;
        let activity = self.visit.env.ports.activity;
        let asks = || {
            let StepKey { node, visit, attempt } = self.key();
            activity.asks(AskingStep { node: node.to_owned(), visit, attempt })
        };
        if self.is_in_thread() {
            self.wait_for_answer(asks, until).await
        } else {
            self.wait_for_answer(|| activity.waits_for_person(until), until).await
        }
    }

    /// `waits`: the run is idle while this guard is held, but not while the answer is read from the database.
    async fn wait_for_answer<'a>(
        &'a self,
        waits: impl FnOnce() -> WaitGuard<'a>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Option<Answer>, Failure> {
        let ports = self.visit.env.ports;
        if let Some(answer) = self.stored_answer().await? {
            return Ok(Some(answer));
        }
        if until.is_some_and(|until| until <= ports.clock.now()) {
            return Ok(None);
        }
        let waits = waits();
        let answer = ask(ports, self.key(), until).await?;
        drop(waits);
        match answer {
            Some(answer) => Ok(Some(answer)),
            // An answer that arrived in time counts, however late the run resumes.
            None => self.stored_answer().await,
        }
    }

    /// Appends to the turn's message.
    pub(crate) async fn say(&self, piece: &str) {
        self.visit.output.text(self.visit.slot, self.path(), piece).await;
    }

    /// Annotates this attempt's text in the current message.
    ///
    /// # Errors
    /// `node.result_too_large` for more than 1,000 annotations or 1 MiB of annotations per run.
    pub(crate) async fn annotate(&self, annotations: Vec<SentAnnotation>) -> Result<(), Failure> {
        self.visit.env.budget.annotations(&annotations)?;
        self.visit.output.annotate(self.visit.slot, annotations).await;
        Ok(())
    }

    /// Withdraws this attempt's text from the current message.
    pub(crate) async fn take_back(&self) {
        self.visit.output.restart(self.visit.slot, self.path()).await;
    }

    /// Starts a new message for the node's next text.
    pub(crate) async fn new_message(&self) {
        self.visit.output.new_message(self.visit.slot).await;
    }

    /// Sends an item to a chat's readers; elsewhere it is only the node's result.
    ///
    /// # Errors
    /// `node.result_too_large` for an item over 1 MiB, or more than 1,000 items or 64 MiB of items per run.
    pub(crate) async fn send(&self, item: SentItem) -> Result<(), Failure> {
        if let Some(key) = item.key.as_ref().filter(|_| self.is_in_thread()) {
            self.visit.output.look_up(key).await;
        }
        self.send_new(item).await
    }

    /// As [`Self::send`], for an item whose key is new.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) async fn send_new(&self, item: SentItem) -> Result<(), Failure> {
        if self.is_in_thread() {
            self.visit.env.budget.item(item.body.as_ref())?;
            self.visit.output.item(self.visit.slot, item).await;
        }
        Ok(())
    }

    /// Counts a text message that the node begins.
    ///
    /// # Errors
    /// `node.result_too_large` for more than 1,000 items per run.
    pub(crate) fn count_message(&self) -> Result<(), Failure> {
        if self.is_in_thread() { Ok(self.visit.env.budget.message()?) } else { Ok(()) }
    }

    /// Counts an item that is sent at the end of the turn.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn count_item(&self, body: &ItemBody) -> Result<(), Failure> {
        if self.is_in_thread() { Ok(self.visit.env.budget.item(Some(body))?) } else { Ok(()) }
    }

    fn is_in_thread(&self) -> bool {
        self.visit.frame.input.run.thread_id.is_some()
    }

    /// Whether a chat shows the node's items.
    pub(crate) fn shows_items(&self) -> bool {
        self.is_in_thread() && self.visit.slot != usize::MAX
    }

    /// Counts bytes that the node stores in addition to its result.
    ///
    /// # Errors
    /// `run.bytes_limit`, which ends the run.
    pub(crate) fn count_stored(&self, bytes: usize) -> Result<(), Failure> {
        self.visit.env.budget.store(self.path(), bytes)
    }

    /// Sends an event to the readers immediately.
    pub(crate) async fn immediate(&self, event: ImmediateEvent) {
        self.visit.output.immediate(event).await;
    }

    /// Changes a chat's thread; elsewhere the change is only the node's result.
    pub(crate) async fn change_thread(&self, change: ThreadChange) {
        if self.is_in_thread() {
            self.visit.output.change_thread(change).await;
        }
    }

    /// The journal name for work inside this attempt: unique for each attempt.
    pub(super) fn inside(&self) -> String {
        self.inside_of(self.attempt)
    }

    pub(super) fn inside_of(&self, attempt: u32) -> String {
        let mut path = self.visit.path.clone();
        if self.visit.number > 1 {
            path.push_str(&format!("#{}", self.visit.number));
        }
        if attempt > 1 {
            path.push_str(&format!("~{attempt}"));
        }
        path
    }
}

/// Waits for the answer to a recorded question; `None` if it does not arrive in time.
pub(super) async fn ask(
    ports: Ports<'_>,
    step: StepKey<'_>,
    until: Option<DateTime<Utc>>,
) -> Result<Option<Answer>, Failure> {
    let expired = async {
        match until {
            Some(until) => {
                let left = (until - ports.clock.now()).to_std().unwrap_or_default();
                ports.clock.sleep(left).await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answer = ports.answers.answer(step) => match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => Err(Failure::Lost(error.to_string())),
        },
        () = expired => Ok(None),
    }
}

/// A model's pieces become the node's text.
#[async_trait]
impl Pieces for Call<'_> {
    async fn piece(&self, text: &str) {
        self.say(text).await;
    }
}
