//! The only `ResponseError`: maps errors from all parts to the one wire shape.
//!
//! A 5xx response never contains internal text. It contains the request id, under which the log has the cause.

use std::borrow::Cow;
use std::fmt;
use std::num::{NonZeroI64, NonZeroU16, NonZeroU32};

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use actors::kinds::turn::chat::RunStartError;
use actors::kinds::workflow::WorkspaceFull;
use actors::lanes::WriteError;
use actors::plans::PlanError;
use store::StoreError;
use uuid::Uuid;
use wire::{BundleFinding, ErrorBody, ErrorCode, FieldError, MOST_PROBLEMS};

/// Default `Retry-After` in seconds for 503 and 429.
const RETRY_AFTER: u32 = 1;

/// A response header.
type ResponseHeader = (&'static str, Cow<'static, str>);

/// An error on its way to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: Option<String>,
    errors: Vec<FieldError>,
    findings: Box<[BundleFinding]>,
    header: Option<Box<ResponseHeader>>,
    status: Option<NonZeroU16>,
    retry_after: Option<NonZeroU32>,
    stream: Option<Box<Uuid>>,
    current_version: Option<NonZeroI64>,
    cause: Option<String>,
}

/// Maximum names read to find a suggestion.
pub(crate) const MAX_CANDIDATES: i64 = 1_000;

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
            errors: Vec::new(),
            findings: Box::default(),
            header: None,
            status: None,
            retry_after: None,
            stream: None,
            current_version: None,
            cause: None,
        }
    }

    /// Reports all problems of an invalid request, truncated to the first ones if there are too many.
    pub(crate) fn problems(code: ErrorCode, mut errors: Vec<FieldError>) -> Self {
        let mut error = Self::new(code);
        if errors.len() > MOST_PROBLEMS {
            errors.truncate(MOST_PROBLEMS);
            let message = code.message();
            error =
                error.with_message(format!("{message} Only the first {MOST_PROBLEMS} problems are listed."));
        }
        Self { errors, ..error }
    }

    /// The same error with more problems.
    pub(crate) fn with_more(self, problems: Vec<FieldError>) -> Self {
        if problems.is_empty() { self } else { Self::problems(self.code, [self.errors, problems].concat()) }
    }

    /// Reports a bundle's findings, highest precedence first.
    pub(crate) fn found(findings: Vec<BundleFinding>) -> Self {
        let code = findings.first().and_then(|first| ErrorCode::from_code(&first.code));
        Self { findings: findings.into(), ..Self::new(code.unwrap_or(ErrorCode::Internal)) }
    }

    /// Whether this error refuses a bundle.
    pub(crate) fn is_of_bundle(&self) -> bool {
        !self.findings.is_empty() || self.code == ErrorCode::BundlePartInvalid
    }

    /// Fails if there are any problems.
    pub(crate) fn refuse(problems: Vec<FieldError>) -> ApiResult<()> {
        if problems.is_empty() { Ok(()) } else { Err(Self::problems(ErrorCode::InvalidRequest, problems)) }
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// The code and the cause, if known, for the log.
    pub(crate) fn reason(&self) -> String {
        let code = self.code.as_str();
        self.cause.as_ref().map_or_else(|| code.to_owned(), |cause| format!("{code}: {cause}"))
    }

    /// Sets a public message in place of the table's.
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Suggests the most similar known name, if any. `kind` names the thing, such as "workflow".
    pub(crate) fn suggest<'a>(
        self,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match wire::nearest(name, known) {
            Some(near) => {
                self.with_message(format!("The {kind} '{name}' was not found; did you mean '{near}'?"))
            }
            None => self,
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.header = Some(Box::new((name, value.into())));
        self
    }

    /// Sets a status other than the table's, for routes that need their own.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = NonZeroU16::new(status.as_u16());
        self
    }

    /// Sets the seconds after which the same request may succeed.
    pub(crate) fn retry_after(mut self, seconds: i64) -> Self {
        self.retry_after = u32::try_from(seconds).ok().and_then(NonZeroU32::new);
        self
    }

    /// Sets the stream with the content that the request missed.
    pub(crate) fn with_stream(mut self, stream: Option<Uuid>) -> Self {
        self.stream = stream.map(Box::new);
        self
    }

    /// Sets the record's current version.
    pub(crate) fn with_current_version(mut self, version: i64) -> Self {
        self.current_version = NonZeroI64::new(version);
        self
    }

    /// The response body; details of a server error go only to the log.
    pub(crate) fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code);
        body.detail.errors.clone_from(&self.errors);
        body.detail.findings = self.findings.to_vec();
        body.detail.stream_id = self.stream.as_ref().map(ToString::to_string);
        body.detail.current_version = self.current_version.map(NonZeroI64::get);
        if let Some(message) = &self.message {
            body.detail.message.clone_from(message);
        }
        if self.status_code().is_server_error() {
            body.detail.request_id = super::request_id::current();
            let (code, cause) = (self.code.as_str(), self.cause.as_deref().unwrap_or("none given"));
            // Any visitor of such a workflow can cause these, so they are not the service's own failures.
            match self.code {
                ErrorCode::WorkspaceFull | ErrorCode::AppStorageFull | ErrorCode::CollectionFull => {
                    tracing::info!(code, cause, "write rejected: storage limit reached")
                }
                ErrorCode::ChatActionFailed
                | ErrorCode::ChatActionTimeout
                | ErrorCode::ChatTranscriptionFailed => {
                    tracing::info!(code, cause, "action or transcription failed")
                }
                _ => kernel::warn_once_a_minute!(code, cause, "request failed with a server error"),
            }
        }
        body
    }

    /// Sets the cause for the log; never sent.
    pub(crate) fn with_cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        let status = self.status.map_or(self.code.status(), NonZeroU16::get);
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let body = self.body();
        let mut response = HttpResponse::build(status);
        if let Some((name, value)) = self.header.as_deref() {
            response.insert_header((*name, &**value));
        }
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.insert_header((
                "Retry-After",
                self.retry_after.map_or(RETRY_AFTER, NonZeroU32::get).to_string(),
            ));
        }
        if let Some(challenge) = challenge(self.code, status) {
            response.insert_header(("WWW-Authenticate", challenge));
        }
        response.json(body)
    }
}

/// `WWW-Authenticate`. Source: RFC 6750, section 3.
fn challenge(code: ErrorCode, status: StatusCode) -> Option<&'static str> {
    match code {
        ErrorCode::MissingScope => Some(r#"Bearer error="insufficient_scope""#),
        ErrorCode::InvalidToken
        | ErrorCode::TokenExpired
        | ErrorCode::UnsupportedAlgorithm
        | ErrorCode::InvalidAudience
        | ErrorCode::InvalidIssuer => Some(r#"Bearer error="invalid_token""#),
        // Members sign in with a browser.
        ErrorCode::LoginRequired => None,
        _ => (status == StatusCode::UNAUTHORIZED).then_some("Bearer"),
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::new(error.code()).with_cause(error)
    }
}

impl From<control::Refusal> for ApiError {
    fn from(refused: control::Refusal) -> Self {
        let control::Refusal { code, message, retry_after, cause } = refused;
        let mut error = Self { message, cause, ..Self::new(code) };
        if let Some(seconds) = retry_after {
            error = error.retry_after(seconds);
        }
        error
    }
}

impl From<PlanError> for ApiError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Store(error) => error.into(),
            other => Self::new(ErrorCode::Internal).with_cause(other),
        }
    }
}

impl From<kernel::RandomError> for ApiError {
    fn from(error: kernel::RandomError) -> Self {
        Self::new(ErrorCode::Internal).with_cause(error)
    }
}

impl From<WorkspaceFull> for ApiError {
    fn from(full: WorkspaceFull) -> Self {
        // A chat visitor receives no figures.
        Self::new(ErrorCode::WorkspaceFull).with_cause(full)
    }
}

impl From<RunStartError> for ApiError {
    fn from(error: RunStartError) -> Self {
        let code = match error {
            RunStartError::ThreadBusy => ErrorCode::ChatThreadBusy,
            RunStartError::TurnRunning => ErrorCode::ChatTurnRunning,
            RunStartError::MessageGone => ErrorCode::ItemNotFound,
            RunStartError::AttachmentInUse => ErrorCode::AttachmentInUse,
            RunStartError::AttachmentDeleted => ErrorCode::AttachmentNotFound,
            RunStartError::Overloaded | RunStartError::Write(WriteError::Full) => ErrorCode::Overloaded,
            RunStartError::Draining | RunStartError::Write(WriteError::Closed | WriteError::Fenced) => {
                ErrorCode::Draining
            }
            RunStartError::KeyReused => ErrorCode::IdempotencyKeyReused,
            RunStartError::Unacknowledged => ErrorCode::DatabaseUnavailable,
            RunStartError::Write(WriteError::Poisoned(_)) | RunStartError::Random(_) => ErrorCode::Internal,
            RunStartError::Full(full) => return full.into(),
            RunStartError::Store(error) => return error.into(),
        };
        Self::new(code).with_cause(error)
    }
}
