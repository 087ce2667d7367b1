//! Sends `100 Continue` only when something reads the body, so a request can be refused before its body is sent (RFC
//! 9110, 10.1.1). The HTTP library would send it before the application sees the request, so the connection renames the
//! header.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::EXPECT;
use actix_web::web::Bytes;
use futures_util::Stream;

/// The name that `Expect` is renamed to. A client that sends this header itself gets a `100 Continue` that it does not
/// need.
const AWAITS: &str = "awaits";

/// Signals to a connection that something is waiting for the request body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interim(Arc<AtomicBool>);

impl Interim {
    /// The replacement name, which has the length of `Expect`.
    pub(crate) const HEADER: &[u8; 6] = b"Awaits";
    /// The interim response.
    pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

    /// Whether to send the interim response now. Returns true once.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A body that the client sends only after `100 Continue`.
struct Awaited {
    body: Payload,
    interim: Interim,
    asking: Rc<Cell<Asking>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// Nothing has waited for the body yet.
    No,
    /// Something is waiting for it.
    Yes,
    /// It has begun to arrive, or the response is ready.
    Over,
}

impl Stream for Awaited {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = Pin::new(&mut this.body).poll_next(context);
        match this.asking.get() {
            Asking::No if next.is_pending() => {
                this.asking.set(Asking::Yes);
                this.interim.0.store(true, Ordering::Relaxed);
            }
            // Also ends if the body arrives without `100 Continue`.
            Asking::No | Asking::Yes if next.is_ready() => end(&this.asking, &this.interim),
            Asking::No | Asking::Yes | Asking::Over => {}
        }
        next
    }
}

fn end(asking: &Cell<Asking>, interim: &Interim) {
    if asking.replace(Asking::Over) == Asking::Yes {
        interim.take();
    }
}

/// The pending `Expect` of a request.
pub(super) struct Expectation(Option<(Interim, Rc<Cell<Asking>>)>);

impl Expectation {
    /// Sends `100 Continue` as soon as something waits for the body, if the client expects it.
    pub(super) fn for_request(request: &mut ServiceRequest) -> Self {
        let Some(expected) = request.headers().get(AWAITS).cloned() else { return Self(None) };
        let Some(interim) = request.conn_data::<Interim>().cloned() else { return Self(None) };
        request.headers_mut().remove(AWAITS);
        request.headers_mut().insert(EXPECT, expected);
        let asking = Rc::new(Cell::new(Asking::No));
        let body = request.take_payload();
        let awaited = Awaited { body, interim: interim.clone(), asking: Rc::clone(&asking) };
        request.set_payload(Payload::Stream { payload: Box::pin(awaited) });
        Self(Some((interim, asking)))
    }

    /// Suppresses `100 Continue` because the response is ready and nothing may precede it.
    pub(super) fn end(self) {
        if let Some((interim, asking)) = self.0 {
            end(&asking, &interim);
        }
    }
}
