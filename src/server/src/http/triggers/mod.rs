//! Cron and webhook triggers for workflow runs.

mod call;
mod cron;
mod once;
mod requests;
mod secrets;
mod webhook;

use actix_web::web::ServiceConfig;

use wire::operations::triggers as operations;

use super::routes::Routes;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::READ_CRON, cron::show)
        .on(&operations::SET_CRON, cron::set)
        .on(&operations::DELETE_CRON, cron::remove)
        .on(&operations::READ_WEBHOOK, webhook::show)
        .on(&operations::SET_WEBHOOK, webhook::set)
        .on(&operations::DELETE_WEBHOOK, webhook::remove)
        // The trigger's configuration decides which methods it accepts.
        .on_every_method(&operations::CALL, call::call)
        .register(config);
}
