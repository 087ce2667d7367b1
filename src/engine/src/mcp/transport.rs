//! rmcp's transport over the one client of the service.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use net::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use net::{Client, Limits, Method, NetError, Request, Response, StatusCode};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// A tool may think before it answers, and while it does.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(300),
    total: None,
    idle: Duration::from_secs(120),
    rate: None,
    head_bytes: 64 * 1024,
    body_bytes: 16 * 1024 * 1024,
    redirects: 0,
};
const SESSION: &str = "mcp-session-id";
const ACCEPT: &str = "text/event-stream, application/json";

type Error = StreamableHttpError<NetError>;

/// Sends what the protocol wants sent; keeps what went wrong on the way, for rmcp tells it as a text alone.
#[derive(Clone)]
pub(super) struct Guarded {
    pub(super) client: Client,
    pub(super) fault: Arc<Mutex<Option<NetError>>>,
    /// Sent as `Idempotency-Key`.
    pub(super) key: Option<String>,
}

impl Guarded {
    fn note(&self, fault: NetError) -> Error {
        *self.fault.lock() = Some(fault.clone());
        StreamableHttpError::Client(fault)
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
            return Err(StreamableHttpError::SessionExpired);
        }
        let text = |name: &HeaderName| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
        let kind = text(&CONTENT_TYPE).unwrap_or_default();
        let session = text(&HeaderName::from_static(SESSION));
        if kind.starts_with("text/event-stream") && status.is_success() {
            return Ok(StreamableHttpPostResponse::Sse(events(answer), session));
        }
        if !kind.starts_with("application/json") {
            if !status.is_success() {
                return Err(HttpStatusError::new(status.as_u16(), None).into());
            }
            let unread = !matches!(message, ClientJsonRpcMessage::Request(_));
            return if unread {
                Ok(StreamableHttpPostResponse::Accepted)
            } else {
                Err(StreamableHttpError::UnexpectedContentType(Some(kind)))
            };
        }
        let body = answer.bytes().await.map_err(|fault| self.note(fault))?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(_) if !status.is_success() => Err(HttpStatusError::new(status.as_u16(), None).into()),
            Err(why) => {
                let why = format!("the answer cannot be read: {why}");
                Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why)))
            }
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

    /// What a server says unasked is not listened to.
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

/// The events of an answer; all of it together is bounded.
fn events(answer: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = unfold(Some(answer), |answer| async move {
        let mut answer = answer?;
        match answer.chunk().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(answer))),
            Ok(None) => None,
            Err(fault) => Some((Err(fault), None)),
        }
    });
    SseStream::from_bytes_stream(Box::pin(pieces)).boxed()
}
