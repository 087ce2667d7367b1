//! Service tokens and the audit trail.

mod audit;
mod reach;
mod records;
mod requests;
mod tokens;

use actix_web::web::{self, ServiceConfig};

use super::{get, resource};

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/api/admin/service-tokens", "GET, HEAD, POST")
                .route(get().to(tokens::list))
                .route(web::post().to(tokens::create)),
        )
        .service(
            resource("/api/admin/service-tokens/{id}", "DELETE, GET, HEAD")
                .route(get().to(tokens::show))
                .route(web::delete().to(tokens::delete)),
        )
        .service(
            resource("/api/admin/service-tokens/{id}/revoke", "POST").route(web::post().to(tokens::revoke)),
        )
        .service(
            resource("/api/admin/service-tokens/{id}/rotate", "POST").route(web::post().to(tokens::rotate)),
        )
        .service(resource("/api/admin/audit", "GET, HEAD").route(get().to(audit::list)));
}
