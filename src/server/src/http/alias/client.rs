//! The embedded script with which pages call the service.

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::ServiceConfig;
use actix_web::{HttpResponse, guard, web};

use super::alias_paths::{self, CLIENT, CLIENT_TYPES};
use super::visitor::Visitor;

const SCRIPT: &str = include_str!("../../../pages/app/client.js");
const TYPES: &str = include_str!("../../../pages/app/client.d.ts");

pub(super) fn routes(config: &mut ServiceConfig) {
    let reads = || web::route().guard(guard::Any(guard::Get()).or(guard::Head()));
    let script = |_: Visitor| async { file("text/javascript; charset=utf-8", SCRIPT) };
    let types = |_: Visitor| async { file("text/plain; charset=utf-8", TYPES) };
    config.service(alias_paths::resource(CLIENT, "GET, HEAD").route(reads().to(script)));
    config.service(alias_paths::resource(CLIENT_TYPES, "GET, HEAD").route(reads().to(types)));
}

fn file(media_type: &'static str, content: &'static str) -> HttpResponse {
    HttpResponse::Ok().insert_header((CONTENT_TYPE, media_type)).body(content)
}
