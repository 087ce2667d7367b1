//! The common transport: sends requests, reads documents and classifies errors.

mod assembly;
mod events;
mod form;
mod refusal;

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Secret};
use net::{Client, Limits, Method, NetError, NetErrorKind, Request, Response, Url};
use serde_json::Value;

pub(super) use self::assembly::{Assembly, Call, DocumentError, MOST_CALLS, read_part};
use self::events::{BodyItem, Items};
pub(super) use self::form::{Form, FormFile};
use super::{ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Part, Pieces};

/// A model writes while it sends, so there is only an idle limit: the rate is unlimited, and the node limits the total
/// time.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(600),
    total: None,
    idle: Duration::from_secs(120),
    rate: None,
    head_bytes: 64 * 1024,
    body_bytes: 64 * 1024 * 1024,
    redirects: 0,
    same_origin: true,
};

/// The header that carries the key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyAs {
    /// `Authorization: Bearer`.
    Bearer,
    /// A custom header.
    Header(&'static str),
}

/// The destination of requests, and the key sent with them.
pub(super) struct Endpoint {
    client: Client,
    base: Url,
    place: String,
    key: Option<Secret>,
    key_as: KeyAs,
    clock: Arc<dyn Clock>,
    limits: Limits,
}

/// A request body.
pub(super) enum Body {
    Json(Value),
    /// Already serialised JSON.
    Written(String),
    Form(Form),
}

/// Writes a call's body. A body with images has megabytes, so a blocking thread writes it.
pub(super) async fn body_of<T: Send + 'static>(
    request: &ModelRequest,
    write: fn(&ModelRequest) -> (Value, T),
) -> Result<(Body, T), ModelError> {
    let has_images = request.messages.iter().flat_map(|message| &message.parts).any(Part::is_image);
    if !has_images {
        let (body, rest) = write(request);
        return Ok((Body::Json(body), rest));
    }
    let request = request.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let (body, rest) = write(&request);
        (Body::Written(body.to_string()), rest)
    });
    let failed = |_| error(ModelErrorKind::Unavailable, "the request could not be written".to_owned());
    writing.await.map_err(failed)
}

/// A request.
pub(super) struct Sending<'a> {
    /// The path below the base URL.
    pub(super) path: &'a [&'a str],
    pub(super) query: Option<&'a str>,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: Body,
    /// Sent as `Idempotency-Key`.
    pub(super) idempotency_key: Option<&'a str>,
}

impl Endpoint {
    /// Creates an endpoint at `base_url`. The key is optional.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] if `base_url` is not an http or https URL.
    pub(super) fn new(
        client: Client,
        base_url: &str,
        key: Option<Secret>,
        key_as: KeyAs,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        let wrong =
            |why: &str| error(ModelErrorKind::NotConfigured, format!("the model's base address {why}"));
        let base = Url::parse(base_url).map_err(|why| wrong(&format!("is not an address: {why}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if base.cannot_be_a_base() {
            return Err(wrong("has no path"));
        }
        let host = base.host_str().unwrap_or_default();
        let place = base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { client, base, place, key, key_as, clock, limits: LIMITS })
    }

    /// Appends `version` to the base URL unless the URL already ends in a version.
    pub(super) fn versioned(mut self, version: &str) -> Self {
        let is_version = |part: &str| {
            part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let stands = self
            .base
            .path_segments()
            .is_some_and(|mut parts| parts.rfind(|part| !part.is_empty()).is_some_and(is_version));
        if !stands && let Ok(mut path) = self.base.path_segments_mut() {
            path.pop_if_empty().push(version);
        }
        self
    }

    /// Sets the maximum answer bytes.
    pub(super) fn bounded(mut self, most: Option<u64>) -> Self {
        self.limits.body_bytes = most.unwrap_or(self.limits.body_bytes);
        self
    }

    /// Sets the timeouts: until the head, and between two chunks.
    pub(super) fn patience(&mut self, head: Duration, idle: Duration) {
        self.limits.head = head;
        self.limits.idle = idle;
    }

    /// Sends a request and assembles the answer; its text is sent to `pieces` meanwhile.
    pub(super) async fn converse(
        &self,
        sending: Sending<'_>,
        mut assembly: impl Assembly,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, ModelError> {
        let answer = self.send(sending, "text/event-stream, application/json").await?;
        let mut items = Items::read(answer).await.map_err(|fault| self.fault(&fault))?;
        let bad =
            |what: String| error(ModelErrorKind::BadAnswer, self.hide(format!("{}: {what}", self.place)));
        while !assembly.is_over() {
            let data = match items.next().await {
                BodyItem::Data(data) => data,
                BodyItem::Done => break,
                BodyItem::End if assembly.is_complete() => break,
                BodyItem::End if assembly.is_empty() => {
                    return Err(bad("the answer is neither an event stream nor JSON".to_owned()));
                }
                BodyItem::End => {
                    let message = format!("{}: the answer was cut short", self.place);
                    return Err(error(ModelErrorKind::Unavailable, message));
                }
                BodyItem::Fault(fault) => return Err(self.fault(&fault)),
                BodyItem::Garbage(what) => return Err(bad(what.to_owned())),
            };
            let text = assembly.take(&data).map_err(|why| match why {
                DocumentError::Garbage(what) => bad(what),
                DocumentError::Error(kind, said) => error(kind, self.hide(format!("{}: {said}", self.place))),
            })?;
            if !text.is_empty() {
                pieces.piece(&text).await;
            }
        }
        items.let_go();
        assembly.finish().map_err(bad)
    }

    /// Requests one JSON document.
    pub(super) async fn document(&self, sending: Sending<'_>) -> Result<Value, ModelError> {
        let answer = self.send(sending, "application/json").await?;
        let body = answer.bytes().await.map_err(|fault| self.fault(&fault))?;
        let read = serde_json::from_slice(&body);
        read.map_err(|why| self.bad(&format!("the answer cannot be read: {why}")))
    }

    /// The error for an answer that is not valid.
    pub(super) fn bad(&self, what: &str) -> ModelError {
        error(ModelErrorKind::BadAnswer, self.hide(format!("{}: {what}", self.place)))
    }

    async fn send(&self, sending: Sending<'_>, accept: &str) -> Result<Response, ModelError> {
        let answer = self.client.send(self.request(sending, accept)?, &self.limits).await;
        let answer = answer.map_err(|error| self.fault(&error))?;
        if answer.status().is_success() { Ok(answer) } else { Err(self.refusal(answer).await) }
    }

    fn request(&self, sending: Sending<'_>, accept: &str) -> Result<Request, ModelError> {
        let unsendable = |_: NetError| {
            error(
                ModelErrorKind::NotConfigured,
                format!("{}: a header of the request is not valid", self.place),
            )
        };
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(sending.path);
        }
        if sending.query.is_some() {
            url.set_query(sending.query);
        }
        let content_type = match &sending.body {
            Body::Json(_) | Body::Written(_) => "application/json",
            Body::Form(form) => &form.content_type,
        };
        let mut request = Request::new(Method::POST, url.as_str())
            .header("Content-Type", content_type)
            .and_then(|request| request.header("Accept", accept))
            .map_err(unsendable)?;
        for (name, value) in sending.headers {
            request = request.header(name, value).map_err(unsendable)?;
        }
        if let Some(key) = sending.idempotency_key {
            request = request.header("Idempotency-Key", key).map_err(unsendable)?;
        }
        if let Some(key) = &self.key {
            let keyed = match self.key_as {
                KeyAs::Bearer => request.bearer(key),
                KeyAs::Header(name) => request.secret(name, key),
            };
            request = keyed.map_err(unsendable)?;
        }
        Ok(match sending.body {
            Body::Json(body) => request.body(body.to_string()),
            Body::Written(body) => request.body(body),
            Body::Form(form) => request.body(form.bytes),
        })
    }

    async fn refusal(&self, answer: Response) -> ModelError {
        let status = answer.status().as_u16();
        let retry_after = net::retry_after(answer.headers(), self.clock.now());
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

    /// Removes the key from a text, because endpoints tend to repeat it.
    fn hide(&self, text: String) -> String {
        refusal::hide(text, self.key.as_ref())
    }
}

fn error(kind: ModelErrorKind, message: String) -> ModelError {
    ModelError { kind, message, retry_after: None }
}
