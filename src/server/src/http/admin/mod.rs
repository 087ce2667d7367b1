//! Service tokens and the audit trail.

mod audit;
mod records;
mod requests;
mod tokens;

use actix_web::web::ServiceConfig;

use wire::operations::tokens as operations;

use super::routes::Routes;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, tokens::list)
        .on(&operations::CREATE, tokens::create)
        .on(&operations::READ, tokens::show)
        .on(&operations::DELETE, tokens::delete)
        .on(&operations::REVOKE, tokens::revoke)
        .on(&operations::ROTATE, tokens::rotate)
        .on(&operations::AUDIT, audit::list)
        .register(config);
}
