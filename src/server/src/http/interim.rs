//! `100 Continue`, which is sent only if something waits for the body: a refused request is answered before its body is sent (RFC 9110,
//! 10.1.1). The HTTP library would send it before the application sees the request, so the connection renames the header.

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

/// What `Expect` is renamed to. A client that sends it itself receives a `100 Continue` that it does not need.
const AWAITS: &str = "awaits";

/// Tells a connection that the body of its request is waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interim(Arc<AtomicBool>);

impl Interim {
    /// As long as the name that it takes the place of.
    pub(crate) const HEADER: &[u8; 6] = b"Awaits";
    /// What is sent.
    pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

    /// Whether it is to be sent now; once.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A body that the client does not send before it is asked.
struct Awaited {
    body: Payload,
    interim: Interim,
    asking: Rc<Cell<Asking>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// Nothing has waited for the body.
    No,
    /// Something waits for it.
    Yes,
    /// It has begun to arrive, or the request was answered.
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
            // Also if it comes without being asked for.
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

/// What may still be asked for a request.
pub(super) struct Expectation(Option<(Interim, Rc<Cell<Asking>>)>);

impl Expectation {
    /// Asks for the body of the request as soon as something waits for it, if the client expects that.
    pub(super) fn of(request: &mut ServiceRequest) -> Self {
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

    /// The answer is ready: nothing may precede it any more.
    pub(super) fn end(self) {
        if let Some((interim, asking)) = self.0 {
            end(&asking, &interim);
        }
    }
}
