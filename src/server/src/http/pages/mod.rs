//! Pages for people: the share page of a workflow, sign-in, what runs here, and the files they are made of.
//!
//! They stand in `src/server/pages`: templates at its top, plain ES modules and style sheets under `assets`, all of it
//! embedded in the binary. A page works from our own origin alone, and its policy says so to the browser.

mod assets;
mod chat;
mod html;
mod landing;
mod sign_in;

use actix_web::web::ServiceConfig;

use super::{get, resource};
pub(super) use sign_in::{link, sign_in_failed};

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(resource("/", "GET, HEAD").route(get().to(landing::page)))
        .service(resource("/chat/{id}", "GET, HEAD").route(get().to(chat::page)))
        .service(resource("/login", "GET, HEAD").route(get().to(sign_in::login)))
        .service(resource("/assets/{path:.*}", "GET, HEAD").route(get().to(assets::file)));
}
