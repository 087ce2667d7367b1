//! The sender of a request, for whom the bytes of its body are counted.

use actix_web::{HttpMessage, HttpRequest};

use crate::body_budget::Sender;
use crate::http::App;

/// Records who sends a request, once the caller is authenticated.
pub(in crate::http) fn note_sender(request: &HttpRequest, name: String) {
    request.extensions_mut().insert(Sender::Known(name));
}

/// The recorded sender of a request; a stranger if none is recorded.
pub(in crate::http) fn sender(app: &App, request: &HttpRequest) -> Sender {
    let known = request.extensions().get::<Sender>().cloned();
    known.unwrap_or_else(|| Sender::Stranger(auth::peer::network(app.client_address(request))))
}
