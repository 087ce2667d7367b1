//! Handles unreadable requests. The connection substitutes a request of our making, so their responses look like all
//! others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::TRANSFER_ENCODING;
use wire::ErrorCode;

use super::error::{ApiError, ApiResult};

/// The method of [`Refusal::REQUEST`].
const METHOD: &str = "REFUSED";

/// The reason why a request cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The head is not valid HTTP/1.1.
    Malformed,
    /// The head is too large.
    TooLarge,
    /// The head did not arrive in time.
    Late,
}

/// Signals the last request's problem from the connection to the application.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusal(Arc<AtomicU8>);

impl Refusal {
    /// The substitute for an unreadable request. It need not be secret: a client that sends it itself is answered as
    /// for any unknown method. The response closes the connection ([`is_last`]), not this request: the library would
    /// say so in an earlier response.
    pub(crate) const REQUEST: &str = "REFUSED / HTTP/1.1\r\nHost: refused\r\n\r\n";
    const MALFORMED: u8 = 1;
    const TOO_LARGE: u8 = 2;
    const LATE: u8 = 3;
    const BROKEN: u8 = 4;

    /// Marks the last request as [`Self::REQUEST`], the substitute for an unreadable one.
    pub(crate) fn set(&self, why: Unreadable) {
        let why = match why {
            Unreadable::Malformed => Self::MALFORMED,
            Unreadable::TooLarge => Self::TOO_LARGE,
            Unreadable::Late => Self::LATE,
        };
        self.0.store(why, Ordering::Relaxed);
    }

    /// Marks the last request's body as broken, so nothing after it is read.
    pub(crate) fn break_body(&self) {
        self.0.store(Self::BROKEN, Ordering::Relaxed);
    }

    fn is_of_body(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::BROKEN
    }

    fn get(&self) -> Option<Unreadable> {
        match self.0.load(Ordering::Relaxed) {
            Self::MALFORMED => Some(Unreadable::Malformed),
            Self::TOO_LARGE => Some(Unreadable::TooLarge),
            Self::LATE => Some(Unreadable::Late),
            _ => None,
        }
    }
}

/// Checks that the client sent this request, and that it is not [`Refusal::REQUEST`].
///
/// # Errors
/// 400, 408 and 431 `bad_request`: the host is unknown, and app visitors receive no other code.
pub(super) fn check(request: &ServiceRequest) -> ApiResult<()> {
    let Some(why) = why(request.request()) else { return Ok(()) };
    tracing::debug!(?why, "unreadable request rejected");
    let (status, message) = match why {
        Unreadable::Malformed => (
            StatusCode::BAD_REQUEST,
            "The head of the request is not valid, or does not have one Host header.",
        ),
        Unreadable::TooLarge => (
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "The head of the request is larger than 128 KiB, or has more than 96 headers.",
        ),
        Unreadable::Late => {
            (StatusCode::REQUEST_TIMEOUT, "The head of the request did not arrive within 5 seconds.")
        }
    };
    Err(ApiError::new(ErrorCode::AppBadRequest).with_status(status).with_message(message))
}

fn why(request: &HttpRequest) -> Option<Unreadable> {
    let refusal = request.conn_data::<Refusal>().filter(|_| request.method().as_str() == METHOD);
    refusal.and_then(Refusal::get)
}

/// Whether the connection closes after the response because the request or its body cannot be read.
pub(super) fn is_last(request: &HttpRequest) -> bool {
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_broken = is_chunked && request.conn_data::<Refusal>().is_some_and(Refusal::is_of_body);
    is_broken || why(request).is_some()
}
