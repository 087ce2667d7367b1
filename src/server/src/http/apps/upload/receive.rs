//! Streams a request body to a file, either raw or from the `bundle` part of a form.

use std::cell::Cell;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::Stream;
use ring::digest;
use wire::{ErrorCode, FieldError};

use super::folder::UploadFile;
use super::pace::UploadPace;
use crate::body_budget::{PER_SENDER, Reservation};
use crate::http::body::{self, ArrivingBody};
use crate::http::error::{ApiError, ApiResult};

/// The form part with the archive.
const PART: &str = "bundle";
/// Maximum bytes of a form besides the archive.
const AROUND: u64 = 64 << 10;
/// Bytes per write.
const WRITTEN_AT_ONCE: usize = 1 << 20;
/// Maximum bytes charged for one archive, so that a caller's concurrent uploads fit into the budget per sender.
const MAX_COUNTED: usize = PER_SENDER / super::PER_CALLER;

/// The encoding of the archive in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The body itself.
    Raw,
    /// A part of a form.
    Multipart,
}

impl Form {
    /// Reads the content headers.
    ///
    /// # Errors
    /// 415 for a compressed body and for other content types.
    pub(super) fn from_request(request: &HttpRequest) -> ApiResult<Self> {
        let refuse =
            |message: &str| Err(ApiError::new(ErrorCode::UnsupportedMediaType).with_message(message));
        if request.headers().contains_key(header::CONTENT_ENCODING) {
            return refuse("The request body must not be compressed: omit the header Content-Encoding.");
        }
        if body::is_of_type(request, "application/zip") {
            Ok(Self::Raw)
        } else if body::is_of_type(request, "multipart/form-data") {
            Ok(Self::Multipart)
        } else {
            refuse(
                "Send the archive as application/zip, or as the part `bundle` of a multipart/form-data form.",
            )
        }
    }

    /// Maximum body bytes for an archive of at most this size.
    fn largest(self, archive: u64) -> u64 {
        match self {
            Self::Raw => archive,
            Self::Multipart => archive.saturating_add(AROUND),
        }
    }

    /// Rejects a body whose declared length exceeds the limit.
    ///
    /// # Errors
    /// 413.
    pub(super) fn check_length(self, request: &HttpRequest, limit: u64) -> ApiResult<()> {
        let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let declared: Option<u64> = declared.and_then(|length| length.parse().ok());
        if declared.is_some_and(|length| length > self.largest(limit)) {
            Err(too_large(limit))
        } else {
            Ok(())
        }
    }
}

/// Waits for the first bytes of a body, so that a client that only announces an archive occupies no resources.
///
/// # Errors
/// 408.
pub(super) async fn arriving(mut body: Payload, pace: &mut UploadPace<'_>) -> ApiResult<ArrivingBody> {
    let first = pace.next(&mut body, of_bytes).await?;
    Ok(body::rejoined(first, body))
}

/// Writes the archive in a body to its file.
///
/// # Errors
/// 408, 413, 422, 503, and 507 if the disk is full.
pub(super) async fn receive(
    request: &HttpRequest,
    form: Form,
    mut body: ArrivingBody,
    archive: &mut Archive,
    pace: &mut UploadPace<'_>,
) -> ApiResult<()> {
    match form {
        Form::Raw => {
            while let Some(bytes) = pace.next(&mut body, of_bytes).await? {
                archive.take(&bytes.map_err(broken_off)?).await?;
            }
            Ok(())
        }
        Form::Multipart => {
            let (excess, limit) = (Rc::new(Cell::new(false)), archive.limit);
            let limited = Limited { body, left: form.largest(limit), excess: Rc::clone(&excess) };
            let part = of_form(Multipart::new(request.headers(), limited), archive, pace).await;
            part.map_err(|error| if excess.get() { too_large(limit) } else { error })
        }
    }
}

async fn of_form(mut form: Multipart, archive: &mut Archive, pace: &mut UploadPace<'_>) -> ApiResult<()> {
    let wrong = |detail: &str| {
        let message = format!("{} {detail}", ErrorCode::BundlePartInvalid.message());
        ApiError::new(ErrorCode::BundlePartInvalid).with_message(message)
    };
    let unreadable = |error: MultipartError| match error {
        MultipartError::Payload(error) => broken_off(error),
        error => wrong("The form cannot be read.").with_cause(error),
    };
    let mut parts = 0;
    while let Some(field) = pace.next(&mut form, |_| 0).await? {
        let mut field: Field = field.map_err(unreadable)?;
        parts += 1;
        if parts > 1 || field.name() != Some(PART) {
            return Err(wrong("It has another part."));
        }
        while let Some(bytes) = pace.next(&mut field, of_bytes).await? {
            archive.take(&bytes.map_err(unreadable)?).await?;
        }
    }
    if parts == 0 { Err(wrong("It has none.")) } else { Ok(()) }
}

fn of_bytes<E>(item: &Result<Bytes, E>) -> usize {
    item.as_ref().map_or(0, Bytes::len)
}

/// An archive being written to its file.
pub(super) struct Archive {
    file: File,
    limit: u64,
    size: u64,
    digest: digest::Context,
    waiting: BytesMut,
    reservation: Reservation,
}

impl Archive {
    /// Creates an empty archive of at most `limit` bytes.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub(super) fn new(file: &UploadFile, limit: u64, reservation: Reservation) -> ApiResult<Self> {
        let file = file.handle().map_err(unwritten)?;
        let digest = digest::Context::new(&digest::SHA256);
        Ok(Self { file, limit, size: 0, digest, waiting: BytesMut::new(), reservation })
    }

    async fn take(&mut self, bytes: &[u8]) -> ApiResult<()> {
        self.size = self.size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.size > self.limit {
            return Err(too_large(self.limit));
        }
        let counted = usize::try_from(self.size).unwrap_or(MAX_COUNTED).min(MAX_COUNTED);
        self.reservation.grow(counted).map_err(|full| super::busy().with_cause(full))?;
        self.digest.update(bytes);
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= WRITTEN_AT_ONCE { self.write().await } else { Ok(()) }
    }

    async fn write(&mut self) -> ApiResult<()> {
        let mut file = self.file.try_clone().map_err(unwritten)?;
        let bytes = std::mem::take(&mut self.waiting).freeze();
        let written = tokio::task::spawn_blocking(move || file.write_all(&bytes)).await;
        written.map_err(std::io::Error::other).flatten().map_err(unwritten)
    }

    /// Writes the remaining bytes. Returns the archive's SHA-256.
    ///
    /// # Errors
    /// 507 if the disk is full.
    pub(super) async fn finish(mut self) -> ApiResult<[u8; 32]> {
        self.write().await?;
        self.file.seek(SeekFrom::Start(0)).map_err(unwritten)?;
        let mut digest = [0; 32];
        digest.copy_from_slice(self.digest.finish().as_ref());
        Ok(digest)
    }
}

/// A body that fails after a number of bytes.
struct Limited {
    body: ArrivingBody,
    left: u64,
    excess: Rc<Cell<bool>>,
}

impl Stream for Limited {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.body.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            match self.left.checked_sub(bytes) {
                Some(left) => self.left = left,
                None => {
                    self.excess.set(true);
                    return Poll::Ready(Some(Err(PayloadError::Overflow)));
                }
            }
        }
        next
    }
}

/// The 413 error with its finding.
fn too_large(limit: u64) -> ApiError {
    let detail = format!("The archive has more than {limit} bytes.");
    ApiError::found(vec![super::finding(ErrorCode::BundleTooLarge, detail)])
}

fn unwritten(error: std::io::Error) -> ApiError {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorCode::StorageFull,
        _ => ErrorCode::Internal,
    };
    ApiError::new(code).with_cause(error)
}

fn broken_off(error: PayloadError) -> ApiError {
    let problem = FieldError::new("", "format", "ended early");
    ApiError::problems(ErrorCode::InvalidRequest, vec![problem]).with_cause(error)
}
