//! Responses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kernel::{Clock, timeout};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use url::Url;

use crate::{Limits, NetError, NetErrorKind};

/// A response head, and its body in chunks. Dropping it closes the connection.
pub struct Response {
    inner: reqwest::Response,
    url: Url,
    place: String,
    limits: Limits,
    clock: Arc<dyn Clock>,
    started: Duration,
    head_at: Duration,
    received: u64,
}

impl Response {
    pub(crate) fn new(
        inner: reqwest::Response,
        url: Url,
        place: String,
        limits: &Limits,
        started: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NetError> {
        let size: usize = inner.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > limits.head_bytes {
            let message = format!("{place}: the response's head is larger than {} bytes", limits.head_bytes);
            return Err(NetError::new(NetErrorKind::TooLarge, message));
        }
        let announced = inner.content_length();
        let response = Self {
            inner,
            url,
            place,
            limits: *limits,
            started,
            head_at: clock.monotonic(),
            clock,
            received: 0,
        };
        if announced.is_some_and(|length| length > limits.body_bytes) {
            return Err(response.too_large());
        }
        Ok(response)
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The response headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Host and port after redirects, safe to show in messages.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The URL after redirects.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the next body chunk; `None` at the end.
    ///
    /// # Errors
    /// [`NetErrorKind::TooLarge`], [`NetErrorKind::TimedOut`] or [`NetErrorKind::Broken`]; no more chunks follow.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        let passed = self.clock.monotonic().saturating_sub(self.started);
        let left = self.limits.total.map(|total| total.saturating_sub(passed));
        let limit = left.map_or(self.limits.idle, |left| left.min(self.limits.idle));
        let came = timeout(&*self.clock, limit, self.inner.chunk()).await;
        let came = came.ok_or_else(|| self.slow("the rest did not arrive in time"))?;
        let came = came.map_err(|error| NetError::from_reqwest(error, &self.place))?;
        if let Some(piece) = &came {
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.received = self.received.saturating_add(length);
            if self.received > self.limits.body_bytes {
                return Err(self.too_large());
            }
            self.keeps_rate()?;
        }
        Ok(came)
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// As for [`Response::chunk`].
    pub async fn bytes(mut self) -> Result<Bytes, NetError> {
        let mut body = Vec::new();
        while let Some(piece) = self.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }

    /// Returns at most `most` body bytes as text for a message; stops at the first error.
    pub async fn excerpt(mut self, most: usize) -> String {
        let mut body = Vec::new();
        while body.len() < most
            && let Ok(Some(piece)) = self.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(most);
        String::from_utf8_lossy(&body).into_owned()
    }

    fn keeps_rate(&self) -> Result<(), NetError> {
        let Some(rate) = self.limits.rate else { return Ok(()) };
        let taken = self.clock.monotonic().saturating_sub(self.head_at);
        let due = taken.saturating_sub(rate.grace).as_secs().saturating_mul(rate.bytes_per_second.into());
        if self.received < due { Err(self.slow("the response arrives too slowly")) } else { Ok(()) }
    }

    fn slow(&self, what: &str) -> NetError {
        NetError::new(NetErrorKind::TimedOut, format!("{}: {what}", self.place))
    }

    fn too_large(&self) -> NetError {
        let most = self.limits.body_bytes;
        NetError::new(
            NetErrorKind::TooLarge,
            format!("{}: the response is larger than {most} bytes", self.place),
        )
    }
}
