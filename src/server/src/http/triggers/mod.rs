//! What begins runs of a workflow by itself: its schedule.

mod cron;
mod requests;

use actix_web::web::{self, ServiceConfig};

use super::{get, resource};

pub(super) fn routes(config: &mut ServiceConfig) {
    config.service(
        resource("/api/workflows/{ref}/triggers/cron", "DELETE, GET, HEAD, PUT")
            .route(get().to(cron::show))
            .route(web::put().to(cron::set))
            .route(web::delete().to(cron::remove)),
    );
}
