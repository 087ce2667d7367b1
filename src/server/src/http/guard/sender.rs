//! The sender of a request, to whom its body bytes are charged.

use actix_web::{HttpMessage, HttpRequest};

use crate::body_budget::Sender;
use crate::http::App;

/// Records the sender of a request, once the caller is authenticated.
pub(in crate::http) fn note_sender(request: &HttpRequest, name: String) {
    request.extensions_mut().insert(Sender::Known(name));
}

/// Returns the recorded sender, or a stranger if none is recorded.
pub(in crate::http) fn sender(app: &App, request: &HttpRequest) -> Sender {
    let known = request.extensions().get::<Sender>().cloned();
    known.unwrap_or_else(|| Sender::Stranger(auth::peer::network(app.client_address(request))))
}
