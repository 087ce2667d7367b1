//! The body for a file response. A slow client holds one part in memory and no database connection.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use wire::ErrorCode;

use super::parts::{Blob, PART, PartCache};
use crate::http::error::{ApiError, ApiResult};

/// Bytes passed to the connection at once; the connection copies them.
const PIECE: usize = 64 << 10;

/// A read of the next part.
type PendingRead = Pin<Box<dyn Future<Output = ApiResult<Bytes>>>>;

/// A byte range within a content.
pub(super) struct AssetBody {
    parts: PartCache,
    blob: Blob,
    /// The part after the current one.
    next: u32,
    current: Bytes,
    reading: Option<PendingRead>,
    size: u64,
    /// Unsent bytes, including the rest of the current part.
    left: u64,
}

impl AssetBody {
    /// Reads the first part.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(super) async fn open(parts: &PartCache, blob: Blob, range: Range<u64>) -> ApiResult<Self> {
        let part = u64::try_from(PART).unwrap_or(u64::MAX);
        let size = range.end.saturating_sub(range.start);
        let number = u32::try_from(range.start / part).unwrap_or(u32::MAX);
        let mut current = parts.read(&blob, number).await?;
        let skipped = usize::try_from(range.start % part).unwrap_or(usize::MAX).min(current.len());
        let _ = current.split_to(skipped);
        Ok(Self {
            parts: parts.clone(),
            blob,
            next: number.saturating_add(1),
            current,
            reading: None,
            size,
            left: size,
        })
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<ApiResult<()>> {
        let reading = self.reading.get_or_insert_with(|| {
            let (parts, blob, number) = (self.parts.clone(), self.blob, self.next);
            Box::pin(async move { parts.read(&blob, number).await })
        });
        let read = ready!(reading.as_mut().poll(context));
        self.reading = None;
        self.current = read?;
        self.next = self.next.saturating_add(1);
        if self.current.is_empty() {
            return Poll::Ready(Err(ApiError::new(ErrorCode::Internal).with_cause("a file ends early")));
        }
        Poll::Ready(Ok(()))
    }
}

impl MessageBody for AssetBody {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.size)
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.current.is_empty() {
            // The status is already sent, so an error ends the connection.
            if let Err(error) = ready!(self.poll_part(context)) {
                tracing::warn!(cause = error.reason(), "failed to read the rest of a file");
                return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
            }
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = PIECE.min(self.current.len()).min(left);
        let piece = self.current.split_to(length);
        self.left = self.left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
        Poll::Ready(Some(Ok(piece)))
    }
}

/// The body for a HEAD response: only its size.
pub(super) struct Unsent(pub(super) u64);

impl MessageBody for Unsent {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}
