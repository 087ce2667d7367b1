//! Members who are signed in to an app.

use actix_web::HttpRequest;
use uuid::Uuid;

use super::error::AliasResult;
use super::served::ServedApp;
use crate::http::App;

/// A member of the app's workspace who is signed in to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Member {
    /// Who.
    pub(in crate::http) user: Uuid,
}

/// The member who sends a request; `None` without a session.
///
/// # Errors
/// [`super::error::AliasError`] if the database does not answer.
#[expect(clippy::unused_async, reason = "sessions are rows")]
pub(super) async fn member(
    _app: &App,
    _request: &HttpRequest,
    _served: &ServedApp,
) -> AliasResult<Option<Member>> {
    Ok(None)
}
