//! rmcp's transport over the service's single client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use kernel::json::{Numbers, RoundedNumber, check_numbers};
use net::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use net::{Client, Limits, Method, NetError, NetErrorKind, Request, Response, StatusCode};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::{Sse, SseStream};
use wire::ErrorCode;

use crate::NodeError;
use crate::outbound::is_retryable;

/// A tool may be slow before and during its answer.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(300),
    total: None,
    idle: Duration::from_secs(120),
    rate: None,
    head_bytes: 64 * 1024,
    body_bytes: 16 * 1024 * 1024,
    redirects: 3,
    same_origin: true,
};
/// Maximum content type characters in an error.
const MOST_KIND: usize = 100;
const SESSION: &str = "mcp-session-id";
const ACCEPT: &str = "text/event-stream, application/json";

type Error = StreamableHttpError<NetError>;

/// Sends the protocol's requests. Keeps the failure, because rmcp returns it only as text.
#[derive(Clone)]
pub(super) struct Guarded {
    pub(super) client: Client,
    pub(super) fault: Arc<Mutex<Option<NodeError>>>,
    pub(super) rounded: Rounded,
    /// Sent as `Idempotency-Key`.
    pub(super) key: Option<String>,
}

/// The last number that rmcp rounds while it parses the structured content of a result.
#[derive(Clone, Default)]
pub(super) struct Rounded(Arc<Mutex<Option<RoundedNumber>>>);

/// The part of a message whose numbers a workflow receives.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    result: RawResult<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResult<'a> {
    #[serde(borrow)]
    structured_content: &'a RawValue,
}

impl Rounded {
    pub(super) fn take(&self) -> Option<RoundedNumber> {
        self.0.lock().take()
    }

    /// Checks a message before it is parsed. One without structured content has nothing to check.
    fn check(&self, message: &[u8]) {
        let Ok(message) = serde_json::from_slice::<RawMessage<'_>>(message) else { return };
        let content = message.result.structured_content.get();
        if let Err(number) = check_numbers(content.as_bytes(), Numbers::Values) {
            *self.0.lock() = Some(number);
        }
    }
}

impl Guarded {
    fn note(&self, fault: NetError) -> Error {
        *self.fault.lock() = Some(of_network(fault.clone()));
        StreamableHttpError::Client(fault)
    }

    /// Records an answer that violates the protocol.
    fn note_answer(&self, status: StatusCode, error: NodeError) -> Error {
        *self.fault.lock() = Some(error);
        HttpStatusError::new(status.as_u16(), None).into()
    }

    fn request(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Request, NetError> {
        let mut request = Request::new(method, uri).header("Accept", ACCEPT)?;
        if let Some(session) = session {
            request = request.header(SESSION, session)?;
        }
        if let Some(key) = &self.key {
            request = request.header("Idempotency-Key", key)?;
        }
        for (name, value) in headers {
            request = request.header(name.as_str(), value.to_str().unwrap_or_default())?;
        }
        Ok(request)
    }
}

impl StreamableHttpClient for Guarded {
    type Error = NetError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = serde_json::to_vec(&message)?;
        let request = self
            .request(Method::POST, &uri, session_id.as_deref(), custom_headers)
            .and_then(|request| request.header("Content-Type", "application/json"))
            .map_err(|fault| self.note(fault))?;
        let answer = self.client.send(request.body(body), &LIMITS).await.map_err(|fault| self.note(fault))?;
        let status = answer.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            let place = answer.place();
            *self.fault.lock() = Some(NodeError::retryable(
                ErrorCode::NodeFailed,
                format!("{place} no longer knows the session; do all its instances share sessions?"),
            ));
            return Err(StreamableHttpError::SessionExpired);
        }
        let text = |name: &HeaderName| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
        let kind = text(&CONTENT_TYPE).unwrap_or_default();
        let session = text(&HeaderName::from_static(SESSION));
        if kind.starts_with("text/event-stream") && status.is_success() {
            return Ok(StreamableHttpPostResponse::Sse(events(answer, self.rounded.clone()), session));
        }
        let place = answer.place().to_owned();
        if !kind.starts_with("application/json") {
            if !status.is_success() {
                return Err(self.note_answer(status, of_status(&place, status)));
            }
            let unread = !matches!(message, ClientJsonRpcMessage::Request(_));
            return if unread {
                Ok(StreamableHttpPostResponse::Accepted)
            } else {
                let kind: String = kind.chars().take(MOST_KIND).collect();
                let kind = if kind.is_empty() { "no content type" } else { kind.as_str() };
                Err(self.note_answer(status, not_mcp(&place, &format!("answered with {kind}"))))
            };
        }
        let body = answer.bytes().await.map_err(|fault| self.note(fault))?;
        self.rounded.check(&body);
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(_) if !status.is_success() => Err(self.note_answer(status, of_status(&place, status))),
            Err(_) => Err(self.note_answer(status, not_mcp(&place, "answered with other JSON"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &uri, Some(&session_id), custom_headers);
        let request = request.map_err(StreamableHttpError::Client)?;
        self.client.send(request, &LIMITS).await.map_err(StreamableHttpError::Client)?;
        Ok(())
    }

    /// Unsolicited server messages are ignored.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

fn of_network(NetError { kind, message }: NetError) -> NodeError {
    let code = kind.code();
    match kind {
        NetErrorKind::Unreachable | NetErrorKind::TimedOut | NetErrorKind::Broken => {
            NodeError::retryable(code, message)
        }
        NetErrorKind::Refused | NetErrorKind::TooLarge => NodeError::new(code, message),
    }
}

fn of_status(place: &str, status: StatusCode) -> NodeError {
    let status = status.as_u16();
    let why = match status {
        401 | 403 => "; check the credentials in 'headers'",
        404..=406 => "; is 'url' the address of its MCP endpoint, with streamable HTTP?",
        _ => "",
    };
    let retryable = is_retryable(status);
    NodeError { retryable, ..NodeError::failed(format!("{place} answered {status}{why}")) }
}

fn not_mcp(place: &str, answered: &str) -> NodeError {
    let why = "is 'url' the address of an MCP endpoint, with streamable HTTP?";
    NodeError::failed(format!("{place} {answered}, which is not MCP; {why}"))
}

/// The events of an answer, whose total size is bounded.
fn events(answer: Response, rounded: Rounded) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = unfold(Some(answer), |answer| async move {
        let mut answer = answer?;
        match answer.chunk().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(answer))),
            Ok(None) => None,
            Err(fault) => Some((Err(fault), None)),
        }
    });
    let events = SseStream::from_bytes_stream(Box::pin(pieces)).inspect(move |event| {
        if let Ok(Sse { data: Some(data), .. }) = event {
            rounded.check(data.as_bytes());
        }
    });
    events.boxed()
}
