//! Sign-in by e-mail or by an OpenID provider, and who is signed in.

mod answer;
mod audit;
mod binding;
mod caller;
mod magic;
mod me;
mod oidc;
mod refresh;
mod start;
mod terminal;
mod verify;

use std::sync::Arc;

use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, ServiceConfig};
use auth::keyring::KeyRing;
use auth::sign_in::CodeKey;

use super::{get, resource};

/// The keys of a sign-in.
pub(crate) struct Keys {
    /// Of codes.
    pub(crate) codes: CodeKey,
    /// Seals letters.
    pub(crate) letters: Arc<KeyRing>,
}

pub(super) use binding::Browser;

pub(super) fn routes(config: &mut ServiceConfig) {
    // Nothing of this is kept anywhere on its way.
    let no_store = || DefaultHeaders::new().add(("Cache-Control", "no-store"));
    let start = resource("/api/auth/email/start", "POST").route(web::post().to(start::start));
    let verify = resource("/api/auth/email/verify", "POST").route(web::post().to(verify::verify));
    let magic = resource("/api/auth/magic/{token}", "GET, HEAD, POST")
        .route(get().to(magic::show))
        .route(web::post().to(magic::use_up));
    let leave = resource("/api/auth/oidc/start", "GET").route(web::get().to(oidc::start));
    let come_back = resource("/api/auth/oidc/callback", "GET").route(web::get().to(oidc::callback));
    let refresh = resource("/api/auth/refresh", "POST").route(web::post().to(refresh::refresh));
    let logout = resource("/api/auth/logout", "POST").route(web::post().to(me::log_out));
    let terminal = resource("/api/auth/terminal", "POST").route(web::post().to(terminal::code));
    let me = resource("/api/auth/me", "GET, HEAD").route(get().to(me::me));
    let sessions = resource("/api/auth/sessions", "DELETE").route(web::delete().to(me::end_sessions));
    let session = resource("/api/auth/sessions/{id}", "DELETE").route(web::delete().to(me::end_session));
    config
        .service(sessions.wrap(no_store()))
        .service(session.wrap(no_store()))
        .service(start.wrap(no_store()))
        .service(verify.wrap(no_store()))
        .service(magic.wrap(no_store()))
        .service(leave.wrap(no_store()))
        .service(come_back.wrap(no_store()))
        .service(refresh.wrap(no_store()))
        .service(logout.wrap(no_store()))
        .service(terminal.wrap(no_store()))
        .service(me.wrap(no_store()));
}
