//! Requests that cannot be read. The connection hands the application a request of our own in their place, so that their answers are like
//! every other.

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

/// Why a request cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Its head is not HTTP/1.1.
    Malformed,
    /// Its head is too large.
    TooLarge,
    /// Its head has not arrived.
    Late,
}

/// What a connection tells the application about its last request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusal(Arc<AtomicU8>);

impl Refusal {
    /// What takes the place of the request. A client that sends it itself is answered as it is with any other method, so it need not be
    /// secret. It does not close the connection, its answer does ([`is_last`]): the library would say so in an answer before.
    pub(crate) const REQUEST: &str = "REFUSED / HTTP/1.1\r\nHost: refused\r\n\r\n";
    const MALFORMED: u8 = 1;
    const TOO_LARGE: u8 = 2;
    const LATE: u8 = 3;
    const BROKEN: u8 = 4;

    /// The last request is [`Self::REQUEST`], in place of one that cannot be read.
    pub(crate) fn set(&self, why: Unreadable) {
        let why = match why {
            Unreadable::Malformed => Self::MALFORMED,
            Unreadable::TooLarge => Self::TOO_LARGE,
            Unreadable::Late => Self::LATE,
        };
        self.0.store(why, Ordering::Relaxed);
    }

    /// The body of the last request is broken, so nothing after it is read.
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

/// Checks that a request is one that the client sent, rather than [`Refusal::REQUEST`].
///
/// # Errors
/// 400, 408 and 431 `bad_request`: which host was asked is unknown, and visitors of apps receive no other code.
pub(super) fn check(request: &ServiceRequest) -> ApiResult<()> {
    let Some(why) = why(request.request()) else { return Ok(()) };
    tracing::debug!(?why, "a request cannot be read");
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

/// Whether the connection ends with the answer, because the request or its body cannot be read.
pub(super) fn is_last(request: &HttpRequest) -> bool {
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_broken = is_chunked && request.conn_data::<Refusal>().is_some_and(Refusal::is_of_body);
    is_broken || why(request).is_some()
}
