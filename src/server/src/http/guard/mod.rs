//! Authentication and authorization: the only access to the application state.
//!
//! Handlers cannot extract the shared state as application data, because [`AppData`] is private to this module. A
//! handler names its required scope with [`Caller`], or uses [`Anyone`] if its route has its own access rules. A
//! handler without either has no [`App`] and does not compile.

mod anyone;
mod caller;
mod credential;
mod denial;
mod gate;
mod handshake;
mod limiter;
mod page_caller;
mod person;
mod scopes;
mod sender;
mod socket;
mod watcher;
mod workspace;

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use actix_web::web::Data;

pub(super) use anyone::Anyone;
pub(super) use caller::{Caller, peer};
pub(super) use control::place;
pub(super) use credential::{Credential, read as credential};
pub(super) use gate::token_key;
pub(crate) use gate::{Gate, GateParts};
pub(super) use handshake::offered_protocols;
pub(super) use page_caller::PageCaller;
pub(super) use person::person;
pub(super) use scopes::{
    AppsPublish, AppsRead, AppsWrite, ChatSession, MembersRemove, RouteScope, TokensRead, TokensWrite,
    VaultRead, VaultWrite, WorkflowsExecute, WorkflowsRead, WorkflowsReadExecute, WorkflowsWrite,
    WorkspacesRead, WorkspacesWrite,
};
pub(super) use sender::{note_sender, sender};
pub(super) use socket::SocketCaller;
pub(super) use watcher::Watcher;
use wire::ErrorCode;

use super::App;
use super::error::ApiError;

/// The application data.
#[derive(Clone)]
struct AppData(App);

/// Wraps the application for `actix_web::App::app_data`.
pub(super) fn shared(app: App) -> Data<impl Clone> {
    Data::new(AppData(app))
}

/// Returns the application for middleware, which authenticates no caller.
pub(super) fn of_service(request: &ServiceRequest) -> Option<&App> {
    request.app_data::<Data<AppData>>().map(|shared| &shared.0)
}

/// Returns the application.
///
/// # Errors
/// [`ApiError`] if the request has none.
pub(super) fn app_of(request: &HttpRequest) -> Result<&App, ApiError> {
    let shared = request.app_data::<Data<AppData>>();
    let missing = || ApiError::new(ErrorCode::Internal).with_cause("no application data");
    shared.map(|shared| &shared.0).ok_or_else(missing)
}
