//! What begins runs of a workflow by itself: its schedule and its webhook.

mod call;
mod cron;
mod once;
mod requests;
mod secrets;
mod webhook;

use actix_web::web::{self, ServiceConfig};

use super::{get, resource};

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/api/workflows/{ref}/triggers/cron", "DELETE, GET, HEAD, PUT")
                .route(get().to(cron::show))
                .route(web::put().to(cron::set))
                .route(web::delete().to(cron::remove)),
        )
        .service(
            resource("/api/workflows/{ref}/triggers/webhook/config", "DELETE, GET, HEAD, PUT")
                .route(get().to(webhook::show))
                .route(web::put().to(webhook::set))
                .route(web::delete().to(webhook::remove)),
        )
        .service(
            resource("/api/workflows/{ref}/triggers/webhook", "DELETE, GET, HEAD, PATCH, POST, PUT")
                .route(web::route().to(call::call)),
        );
}
