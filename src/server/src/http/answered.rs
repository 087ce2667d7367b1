//! Signals the end of a response, until which the connection holds back the next request.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceRequest;
use actix_web::web::Bytes;

/// Signals to a connection that the HTTP library has consumed the whole response to the current request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answered(Rc<Cell<bool>>);

impl Answered {
    /// Whether a response has ended since the last call.
    pub(crate) fn take(&self) -> bool {
        self.0.take()
    }
}

/// Signals the end of a response on drop: the library drops a body after encoding all of it.
pub(super) struct ResponseEnd(Option<Answered>);

impl ResponseEnd {
    /// Creates the signal for a request's response.
    pub(super) fn new(request: &ServiceRequest) -> Self {
        Self(request.conn_data::<Answered>().cloned())
    }

    /// Wraps the body so that its end is signalled.
    pub(super) fn follows(self, body: BoxBody) -> ReportedBody {
        ReportedBody { body, _end: self }
    }
}

impl Drop for ResponseEnd {
    fn drop(&mut self) {
        if let Some(answered) = &self.0 {
            answered.0.set(true);
        }
    }
}

/// A body that signals its end.
pub(super) struct ReportedBody {
    body: BoxBody,
    _end: ResponseEnd,
}

impl MessageBody for ReportedBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
