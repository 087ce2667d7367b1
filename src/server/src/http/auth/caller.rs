//! Authenticates a user by an access token or by a browser's cookie.

use actix_web::HttpRequest;
use auth::principal::Actor;
use auth::sign_in::Token;
use store::StoredUser;
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Credential;
use crate::http::{App, guard, session};

/// Returns the user and their session. If an access token is present, it alone decides: an invalid token is not
/// replaced by the cookie.
pub(super) async fn caller(app: &App, request: &HttpRequest) -> ApiResult<Option<(StoredUser, Uuid)>> {
    if let Some(person) = guard::person(app, request).await? {
        return Ok(Some(person));
    }
    let found = session::signed_in(app, request).await?;
    Ok(found.map(|found| (found.record, found.session)))
}

/// Whether the request presents a token, so that cookies are ignored.
pub(super) fn shows_token(request: &HttpRequest) -> bool {
    guard::credential(request.headers()) != Credential::None
}

/// A presented secret that may be wrong. Its failures count towards the common limits.
pub(super) struct PresentedCredential {
    identity: String,
}

impl PresentedCredential {
    /// Checks the failure limits for the presented email address or token. Only its digest is kept.
    ///
    /// # Errors
    /// 429 after too many failures.
    pub(super) async fn for_request(
        app: &App,
        request: &HttpRequest,
        kind: &str,
        whose: &str,
    ) -> ApiResult<Self> {
        let identity = format!("{kind}:{}", hex::encode(Token::digest_of(whose)));
        let limiter = app.gate().limiter();
        limiter.check_address(app.client_address(request)).await?;
        limiter.check_identity(&identity)?;
        Ok(Self { identity })
    }

    /// Counts the failure of a wrong secret.
    pub(super) async fn failed(self, app: &App, request: &HttpRequest, code: ErrorCode) -> ApiError {
        let address = app.client_address(request);
        app.gate().limiter().failed(code, address, &self.identity, Actor::ANONYMOUS).await
    }
}
