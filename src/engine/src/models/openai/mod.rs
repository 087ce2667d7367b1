//! `openai/<model>`, and whatever speaks the same protocol: `POST <base>/chat/completions`.
//!
//! The answer is asked for as a stream of events and handed on piece by piece. An endpoint that answers with one JSON
//! document instead is understood too. Source: `docs/adr/0006-models.md`.

mod answer;
mod body;
mod events;
pub(crate) mod refusal;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::{Client, Limits, Method, NetError, NetErrorKind, Request, Response, Url};

use self::answer::Assembly;
use self::events::Item;
use super::{Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Pieces};

/// A model writes while it sends: no least rate, no time in all (that is the node's), but an end of patience.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(600),
    total: None,
    idle: Duration::from_secs(120),
    rate: None,
    head_bytes: 64 * 1024,
    body_bytes: 64 * 1024 * 1024,
    redirects: 0,
};

/// One endpoint.
pub struct OpenAi {
    client: Client,
    url: Url,
    place: String,
    key: Option<Secret>,
    clock: Arc<dyn Clock>,
    limits: Limits,
}

impl OpenAi {
    /// The endpoint at `base_url`, which ends in `/v1` as OpenAI's clients have it. Without a key no `Authorization`
    /// is sent.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] when `base_url` is no http or https address.
    pub fn new(
        client: Client,
        base_url: &str,
        key: Option<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        let wrong =
            |why: &str| error(ModelErrorKind::NotConfigured, format!("the model's base address {why}"));
        let mut url = Url::parse(base_url).map_err(|why| wrong(&format!("is none: {why}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(["chat", "completions"]),
            Err(()) => return Err(wrong("has no path")),
        };
        let host = url.host_str().unwrap_or_default();
        let place = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { client, url, place, key, clock, limits: LIMITS })
    }

    /// Other limits: until the head, and between two pieces.
    #[must_use]
    pub fn patience(mut self, head: Duration, idle: Duration) -> Self {
        self.limits.head = head;
        self.limits.idle = idle;
        self
    }

    async fn send(&self, request: &ModelRequest) -> Result<Response, ModelError> {
        let unsendable = |_: NetError| {
            error(
                ModelErrorKind::NotConfigured,
                format!("{}: a header of the request is not valid", self.place),
            )
        };
        let mut sending = Request::new(Method::POST, self.url.as_str())
            .header("Content-Type", "application/json")
            .and_then(|sending| sending.header("Accept", "text/event-stream, application/json"))
            .map_err(unsendable)?;
        if let Some(key) = &request.idempotency_key {
            sending = sending.header("Idempotency-Key", key).map_err(unsendable)?;
        }
        if let Some(key) = &self.key {
            sending = sending.bearer(key).map_err(unsendable)?;
        }
        let body = body::write(request).to_string();
        let answer = self.client.send(sending.body(body), &self.limits).await;
        let answer = answer.map_err(|error| self.fault(&error))?;
        if answer.status().is_success() { Ok(answer) } else { Err(self.refusal(answer).await) }
    }

    async fn refusal(&self, answer: Response) -> ModelError {
        let status = answer.status().as_u16();
        let retry_after = refusal::retry_after(answer.headers(), self.clock.now());
        let said = refusal::said(&answer.excerpt(refusal::MOST_READ).await);
        let message = if said.is_empty() { String::new() } else { format!(": {said}") };
        ModelError {
            kind: refusal::kind(status),
            message: self.hide(format!("{} answered {status}{message}", self.place)),
            retry_after,
        }
    }

    fn fault(&self, fault: &NetError) -> ModelError {
        let kind = match fault.kind {
            NetErrorKind::Refused => ModelErrorKind::EgressRefused,
            NetErrorKind::TooLarge => ModelErrorKind::BadAnswer,
            NetErrorKind::Unreachable | NetErrorKind::TimedOut | NetErrorKind::Broken => {
                ModelErrorKind::Unavailable
            }
        };
        error(kind, self.hide(fault.message.clone()))
    }

    /// Takes the key out of a text: endpoints like to repeat it.
    fn hide(&self, text: String) -> String {
        refusal::hide(text, self.key.as_ref())
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let answer = self.send(request).await?;
        let mut items = events::Items::read(answer).await.map_err(|fault| self.fault(&fault))?;
        let mut assembly = Assembly::default();
        let bad =
            |what: String| error(ModelErrorKind::BadAnswer, self.hide(format!("{}: {what}", self.place)));
        loop {
            let data = match items.next().await {
                Item::Data(data) => data,
                Item::Done => break,
                Item::End if assembly.is_complete() => break,
                Item::End if assembly.is_empty() => {
                    return Err(bad("the answer is neither a stream of events nor JSON".to_owned()));
                }
                Item::End => {
                    let message = format!("{}: the answer broke off", self.place);
                    return Err(error(ModelErrorKind::Unavailable, message));
                }
                Item::Fault(fault) => return Err(self.fault(&fault)),
                Item::Garbage(what) => return Err(bad(what.to_owned())),
            };
            let text = assembly.take(&data).map_err(|why| match why {
                answer::Wrong::Garbage(what) => bad(what),
                answer::Wrong::Error(kind, said) => error(kind, self.hide(format!("{}: {said}", self.place))),
            })?;
            if !text.is_empty() {
                pieces.piece(&text).await;
            }
        }
        assembly.finish().map_err(bad)
    }
}

fn error(kind: ModelErrorKind, message: String) -> ModelError {
    ModelError { kind, message, retry_after: None }
}
