//! Streams a file from a raw body or from the form part `file`, at a minimum rate.

use std::time::Duration;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::Bytes;
use control::uploads::Upload;
use futures_util::{Stream, StreamExt};
use kernel::Clock;
use wire::{ErrorCode, FieldError};

use super::intake::Intake;
use crate::http::body::ArrivingBody;
use crate::http::error::{ApiError, ApiResult};

/// The form part with the file.
const FILE: &str = "file";
/// Maximum bytes of all other parts together; they are ignored.
const OTHER_PARTS: usize = 64 << 10;
/// Maximum time for a whole upload.
const MAX_UPLOAD_TIME: Duration = Duration::from_secs(600);
/// Minimum bytes received per window of waiting for the client.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_BYTES: usize = 32 << 10;

/// Rejects a compressed body.
pub(super) fn check_encoding(request: &HttpRequest) -> ApiResult<()> {
    let encoding = request.headers().get(header::CONTENT_ENCODING).map(|name| name.as_bytes());
    if encoding.is_some_and(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")) {
        let message = "The request body must not be compressed: omit the header Content-Encoding.";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType).with_message(message));
    }
    Ok(())
}

/// Whether the body is a form.
pub(super) fn is_form(request: &HttpRequest) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    kind.as_deref() == Some("multipart/form-data")
}

/// The declared body length in bytes.
pub(in crate::http::chat) fn declared(request: &HttpRequest) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Measures a client's rate. Only time spent waiting for the client counts.
pub(in crate::http) struct Pace<'a> {
    clock: &'a dyn Clock,
    end: Duration,
    waited: Duration,
    received: usize,
}

impl<'a> Pace<'a> {
    pub(in crate::http) fn new(clock: &'a dyn Clock) -> Self {
        Self {
            clock,
            end: clock.monotonic().saturating_add(MAX_UPLOAD_TIME),
            waited: Duration::ZERO,
            received: 0,
        }
    }

    /// Returns the next item of the stream; fails if the client is too slow.
    pub(in crate::http) async fn next<T: Weigh>(
        &mut self,
        stream: &mut (impl Stream<Item = T> + Unpin),
    ) -> ApiResult<Option<T>> {
        let late = || ApiError::new(ErrorCode::RequestTimeout);
        loop {
            let begun = self.clock.monotonic();
            let left = self.end.checked_sub(begun).filter(|left| !left.is_zero()).ok_or_else(late)?;
            let window = WINDOW.saturating_sub(self.waited);
            let next = kernel::timeout(self.clock, window.min(left), stream.next()).await;
            self.waited = self.waited.saturating_add(self.clock.monotonic().saturating_sub(begun));
            if let Some(next) = &next {
                self.received = self.received.saturating_add(next.as_ref().map_or(0, Weigh::bytes));
            }
            if self.waited >= WINDOW {
                if self.received < WINDOW_BYTES && !matches!(next, Some(None)) {
                    return Err(late());
                }
                (self.waited, self.received) = (Duration::ZERO, 0);
            }
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }
}

/// The size of an item in bytes.
pub(in crate::http) trait Weigh {
    fn bytes(&self) -> usize;
}

impl<E> Weigh for Result<Bytes, E> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, Bytes::len)
    }
}

impl<E> Weigh for Result<Field, E> {
    fn bytes(&self) -> usize {
        0
    }
}

/// Writes a raw body to the upload.
pub(super) async fn raw(
    mut body: ArrivingBody,
    upload: &mut Upload,
    intake: &mut Intake<'_>,
    pace: &mut Pace<'_>,
) -> ApiResult<()> {
    while let Some(bytes) = pace.next(&mut body).await? {
        intake.store(upload, &bytes.map_err(broken_off)?).await?;
    }
    Ok(())
}

/// The form part `file`.
pub(super) struct FilePart {
    form: Multipart,
    field: Field,
    others: usize,
}

impl FilePart {
    /// Finds the part.
    pub(super) async fn find(
        request: &HttpRequest,
        body: ArrivingBody,
        pace: &mut Pace<'_>,
    ) -> ApiResult<Self> {
        if !is_form(request) {
            let message =
                "Send the file as the part `file` of a form, with Content-Type multipart/form-data.";
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType).with_message(message));
        }
        let mut form = Multipart::new(request.headers(), body);
        let mut others = OTHER_PARTS;
        while let Some(field) = pace.next(&mut form).await? {
            let mut field = field.map_err(unreadable)?;
            if field.name() == Some(FILE) {
                return Ok(Self { form, field, others });
            }
            skip(&mut field, &mut others, pace).await?;
        }
        Err(wrong_form("required", "is required: the form has no part `file`"))
    }

    /// The client's name for the file.
    pub(super) fn name(&self) -> String {
        let disposition = self.field.content_disposition();
        let extended = disposition.and_then(|given| given.get_filename_ext());
        let extended = extended.map(|name| String::from_utf8_lossy(&name.value).into_owned());
        let plain = || disposition.and_then(|given| given.get_filename()).map(str::to_owned);
        extended.or_else(plain).unwrap_or_default()
    }

    /// Writes the file to the upload, then reads the rest of the form.
    pub(super) async fn receive(
        self,
        upload: &mut Upload,
        intake: &mut Intake<'_>,
        pace: &mut Pace<'_>,
    ) -> ApiResult<()> {
        let Self { mut form, mut field, mut others } = self;
        while let Some(bytes) = pace.next(&mut field).await? {
            intake.store(upload, &bytes.map_err(unreadable)?).await?;
        }
        drop(field);
        while let Some(field) = pace.next(&mut form).await? {
            let mut field = field.map_err(unreadable)?;
            if field.name() == Some(FILE) {
                return Err(wrong_form("repeated", "may be given only once"));
            }
            skip(&mut field, &mut others, pace).await?;
        }
        Ok(())
    }
}

async fn skip(field: &mut Field, left: &mut usize, pace: &mut Pace<'_>) -> ApiResult<()> {
    while let Some(bytes) = pace.next(field).await? {
        let bytes = bytes.map_err(unreadable)?;
        let too_large = || wrong_form("length", "must be the only large part of the form");
        *left = left.checked_sub(bytes.len()).ok_or_else(too_large)?;
    }
    Ok(())
}

fn wrong_form(code: &str, message: &str) -> ApiError {
    ApiError::problems(ErrorCode::ChatInvalidRequest, vec![FieldError::new("/file", code, message)])
}

fn unreadable(error: MultipartError) -> ApiError {
    let problem = FieldError::new("", "format", "must be a valid multipart form");
    ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]).with_cause(error)
}

fn broken_off(error: PayloadError) -> ApiError {
    let problem = FieldError::new("", "format", "ended early");
    ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]).with_cause(error)
}
