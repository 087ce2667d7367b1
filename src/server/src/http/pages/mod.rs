//! Pages for people: a workflow's share page, its trainings, sign-in, the home page, and their files.
//!
//! Their sources are in `src/server/pages`: templates at the top level, plain ES modules and style sheets under
//! `assets`, all embedded in the binary. Pages load content only from our own origin, which their policy enforces.

mod assets;
mod authorize;
mod chat;
mod embed;
mod html;
mod landing;
mod openapi;
mod sign_in;
mod training;
mod widget_script;

use actix_web::web::ServiceConfig;

use wire::operations::pages as operations;

use super::routes::Routes;
pub(super) use authorize::{Consent, consent, not_authorized};
pub(super) use sign_in::{link, login_address, sign_in_failed};

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LANDING, landing::page)
        .on(&operations::EMBED, embed::page)
        .on(&operations::ELEMENT, embed::element)
        .on(&operations::CHAT, chat::page)
        .on(&operations::TRAINING, training::page)
        .on(&operations::LOGIN, sign_in::login)
        .on(&operations::ASSET, assets::file)
        .on(&operations::WIDGET_SCRIPT, widget_script::script)
        .on(&operations::OPENAPI, openapi::document)
        .register(config);
}
