//! Pages for people: the share page of a workflow, its trainings, sign-in, what runs here, and the files they are made of.
//!
//! They stand in `src/server/pages`: templates at its top, plain ES modules and style sheets under `assets`, all of it
//! embedded in the binary. A page works from our own origin alone, and its policy says so to the browser.

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
