//! What pages of apps call: the configuration, runs and their states.

mod configuration;
pub(super) mod cookie;
mod disclosure;
mod input;
mod key;
mod limits;
mod read;
mod releases;
mod start;
mod states;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, Route, guard};
use wire::ErrorCode;

use super::alias_paths::{CONFIGURATION, resource};
use super::error::AliasResult;

pub(in crate::http) use releases::FrozenBindings;
pub(in crate::http) use states::OpenStates;

/// A run of a binding.
const RUNS: &str = "/__service/workflows/{binding}/runs";
/// A run.
const RUN: &str = "/__service/runs/{handle}";
/// Its states.
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

/// A part of the path. Names and handles have no character that a path encodes.
fn segment<'a>(request: &'a HttpRequest, name: &str) -> AliasResult<&'a str> {
    if is_decodable(request.uri().path()) {
        Ok(request.match_info().get(name).unwrap_or_default())
    } else {
        Err(ErrorCode::AppBadRequest.into())
    }
}

/// Whether the percent signs of a path are those of UTF-8.
fn is_decodable(path: &str) -> bool {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
            _ => return false,
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_decodable;

    #[test]
    fn a_path_decodes_to_utf_8() {
        for good in ["", "form", "%66orm", "a%2Fb", "%C3%A4"] {
            assert!(is_decodable(good), "{good}");
        }
        for bad in ["%", "%6", "%zz", "%FF", "a%C3"] {
            assert!(!is_decodable(bad), "{bad}");
        }
    }
}
