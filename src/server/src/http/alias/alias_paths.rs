//! The service's paths on app hosts. Every other path is an app file.

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, Resource};
use auth::app_sign_in::CALLBACK;
use wire::ErrorCode;

use super::error::{AliasError, AliasResult};
use super::visitor::served;
use crate::http::error::ApiError;
use crate::http::guard;

/// The prefix for all service paths.
pub(in crate::http) const PREFIX: &str = "/__service";
/// The app's configuration.
pub(in crate::http) const CONFIGURATION: &str = "/__service/config";
/// The script with which pages call the service.
pub(in crate::http) const CLIENT: &str = "/__service/client.js";
/// The script's type declarations.
pub(in crate::http) const CLIENT_TYPES: &str = "/__service/client.d.ts";
/// Sign-in paths.
pub(in crate::http) const AUTH: &str = "/__service/auth/";
/// Starts a sign-in.
pub(super) const LOG_IN: &str = "/__service/auth/login";
/// The target to which the central host returns browsers.
pub(super) const SIGNED_IN: &str = CALLBACK;
/// Ends the session.
pub(super) const LOG_OUT: &str = "/__service/auth/logout";
/// Reports whether a member is signed in.
pub(super) const SESSION: &str = "/__service/auth/session";
/// Files by content digest.
pub(super) const ASSETS: &str = "/__service/assets/";

/// Whether the response names the active release, so it must not come from an old copy.
pub(super) fn is_configuration(path: &str) -> bool {
    path == CONFIGURATION
}

/// Whether a members-only app serves this path without a session.
pub(super) fn is_open(path: &str) -> bool {
    path == CLIENT || path.starts_with(AUTH)
}

/// A path that answers other methods with 405. `allowed` lists its methods, such as `GET, HEAD`.
pub(in crate::http) fn resource(path: &'static str, allowed: &'static str) -> Resource {
    web::resource(path).default_service(web::to(move |request: HttpRequest| async move {
        AliasResult::<&str>::Err(refused(&request, allowed).await)
    }))
}

/// The error for a method that a path does not support. Unknown hosts have no paths.
async fn refused(request: &HttpRequest, allowed: &'static str) -> AliasError {
    match known(request).await {
        Ok(()) => ApiError::new(ErrorCode::AppMethodNotAllowed).with_header("Allow", allowed).into(),
        Err(error) => error,
    }
}

/// Registers all other paths below [`PREFIX`].
pub(super) fn unknown(config: &mut ServiceConfig) {
    let not_found = |request: HttpRequest| async move {
        known(&request).await?;
        AliasResult::<&str>::Err(ErrorCode::AppPathNotFound.into())
    };
    config.service(web::resource(PREFIX).to(not_found));
    config.service(web::resource("/__service/{tail:.*}").to(not_found));
}

/// Checks that the host has an app.
async fn known(request: &HttpRequest) -> AliasResult<()> {
    let app = guard::app_of(request)?;
    served(app, request, false).await.map(drop)
}
