//! The API for app pages: configuration, runs and their states.

mod configuration;
mod disclosure;
mod input;
mod limits;
mod read;
mod releases;
mod start;
mod states;

use actix_web::web::{self, ServiceConfig};
use actix_web::{Route, guard};

use super::alias_paths::{CONFIGURATION, resource};
use super::path::segment;
use super::{cookie, key};

pub(in crate::http) use releases::FrozenBindings;
pub(in crate::http) use states::OpenStates;

/// A binding's runs.
const RUNS: &str = "/__service/workflows/{binding}/runs";
/// A run.
const RUN: &str = "/__service/runs/{handle}";
/// A run's states.
const EVENTS: &str = "/__service/runs/{handle}/events";

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(resource(CONFIGURATION, "GET, HEAD").route(reads().to(configuration::show)))
        .service(resource(RUNS, "POST").route(web::post().to(start::start)))
        .service(resource(RUN, "GET, HEAD").route(reads().to(read::show)))
        .service(resource(EVENTS, "GET").route(web::get().to(states::states)));
}

fn reads() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}
