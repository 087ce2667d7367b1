//! The paths of the service on hosts of apps. Everything else there is a file of the app.

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, Resource};
use auth::app_sign_in::CALLBACK;
use wire::ErrorCode;

use super::error::{AliasError, AliasResult};
use super::visitor::served;
use crate::http::error::ApiError;
use crate::http::guard;

/// All paths of the service begin with it.
pub(in crate::http) const PREFIX: &str = "/__service";
/// What the app is and offers.
pub(in crate::http) const CONFIGURATION: &str = "/__service/config";
/// The script by which pages call the service.
pub(in crate::http) const CLIENT: &str = "/__service/client.js";
/// Its types.
pub(in crate::http) const CLIENT_TYPES: &str = "/__service/client.d.ts";
/// Sign-in.
pub(in crate::http) const AUTH: &str = "/__service/auth/";
/// Begins a sign-in.
pub(super) const LOG_IN: &str = "/__service/auth/login";
/// Where the central host sends browsers back to.
pub(super) const SIGNED_IN: &str = CALLBACK;
/// Ends the session.
pub(super) const LOG_OUT: &str = "/__service/auth/logout";
/// Whether a member is signed in.
pub(super) const SESSION: &str = "/__service/auth/session";
/// Files under the digest of their content.
pub(super) const ASSETS: &str = "/__service/assets/";

/// Whether the answer says which release is active, and so must not be of an old copy.
pub(super) fn is_configuration(path: &str) -> bool {
    path == CONFIGURATION
}

/// Whether an app for members has this path without a session too.
pub(super) fn is_open(path: &str) -> bool {
    path == CLIENT || path.starts_with(AUTH)
}

/// A path whose other methods are answered with 405. `allowed`: its methods, such as `GET, HEAD`.
pub(in crate::http) fn resource(path: &'static str, allowed: &'static str) -> Resource {
    web::resource(path).default_service(web::to(move |request: HttpRequest| async move {
        AliasResult::<&str>::Err(refused(&request, allowed).await)
    }))
}

/// The answer to a method that a path does not have; an unknown host has no paths.
async fn refused(request: &HttpRequest, allowed: &'static str) -> AliasError {
    match known(request).await {
        Ok(()) => ApiError::new(ErrorCode::AppMethodNotAllowed).with_header("Allow", allowed).into(),
        Err(error) => error,
    }
}

/// Every other path below [`PREFIX`].
pub(super) fn unknown(config: &mut ServiceConfig) {
    let not_found = |request: HttpRequest| async move {
        known(&request).await?;
        AliasResult::<&str>::Err(ErrorCode::AppPathNotFound.into())
    };
    config.service(web::resource(PREFIX).to(not_found));
    config.service(web::resource("/__service/{tail:.*}").to(not_found));
}

/// The host has an app.
async fn known(request: &HttpRequest) -> AliasResult<()> {
    let app = guard::app_of(request)?;
    served(app, request, false).await.map(drop)
}
