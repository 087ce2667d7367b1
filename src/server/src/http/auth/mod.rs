//! Sign-in by email or OpenID provider, and the signed-in user.

mod answer;
mod authorize;
mod binding;
mod caller;
mod magic;
mod me;
mod oidc;
mod refresh;
mod start;
mod terminal;
mod token;
mod verify;

use std::sync::Arc;

use actix_web::web::ServiceConfig;
use auth::keyring::KeyRing;
use auth::sign_in::CodeKey;

use wire::operations::sign_in as operations;

use super::routes::Routes;

/// The keys for sign-in.
pub(crate) struct Keys {
    /// Authenticates mail codes.
    pub(crate) codes: CodeKey,
    /// Seals emails.
    pub(crate) letters: Arc<KeyRing>,
    /// Seals PKCE verifiers for app sign-ins.
    pub(crate) apps: Arc<KeyRing>,
}

pub(super) use binding::Browser;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::START, start::start)
        .on(&operations::VERIFY, verify::verify)
        .on(&operations::SHOW_LINK, magic::show)
        .on(&operations::USE_LINK, magic::use_up)
        .on(&operations::START_OIDC, oidc::start)
        .on(&operations::FINISH_OIDC, oidc::callback)
        .on(&operations::REFRESH, refresh::refresh)
        .on(&operations::LOG_OUT, me::log_out)
        .on(&operations::TERMINAL, terminal::code)
        .on(&operations::PAGE_TOKEN, token::create)
        .on(&operations::ME, me::me)
        .on(&operations::END_SESSIONS, me::end_sessions)
        .on(&operations::END_SESSION, me::end_session)
        .on(&operations::AUTHORIZE, authorize::show)
        .on(&operations::APPROVE, authorize::approve)
        // Caches must not store any of these responses.
        .register_with_headers(config, &[("Cache-Control", "no-store")]);
}
