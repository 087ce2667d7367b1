//! The workflow WebSocket: authentication and messages.

mod closings;
mod conversation;
mod handshake;
mod messages;
mod requests;
mod subscriptions;

use actix_web::web::{Path, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use tracing::Instrument;
use wire::ErrorCode;
use wire::operations::socket as operations;

use super::edge::STATEMENT_LIMIT;
use super::error::{ApiError, ApiResult};
use super::guard::{self, SocketCaller};
use super::query::Params;
use super::request_id;
use super::routes::Routes;
use crate::ws::MessageIntake;
use conversation::Conversation;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::OPEN, connect)
        // The URL may contain a token: caches must not store it, and pages must not pass it on.
        .register_with_headers(config, &[("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]);
}

/// Opens the socket. All errors are returned here as HTTP responses. Once the socket is open, the conversation runs
/// independently.
async fn connect(request: HttpRequest, name: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    if let Err(problem) = handshake::check(&request) {
        return Ok(handshake::refusal(problem));
    }
    let caller = SocketCaller::at_handshake(&request).await?;
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::from_request(&request);
    // The handshake has already read them.
    query.pass_over(&["token", "access_token"]);
    ApiError::refuse(query.finish())?;
    let app = caller.app();
    if app.streams_closing().is_cancelled() {
        return Err(ApiError::new(ErrorCode::Draining));
    }
    let limit = app.config().http.ws_max_message_bytes;
    let not_one = |_| ApiError::new(ErrorCode::SocketUpgradeRequired);
    let intake = MessageIntake::new(app.body_budget().clone(), guard::sender(app, &request), limit);
    let opened = crate::ws::open(&request, payload, intake, app.clock());
    let (mut response, socket) = opened.map_err(not_one)?;
    handshake::choose_protocol(&request, &mut response);
    let conversation = Conversation::new(caller, workflow, socket);
    let conversing = store::with_statement_limit(STATEMENT_LIMIT, conversation.run());
    actix_rt::spawn(request_id::kept(conversing).in_current_span());
    Ok(response)
}
