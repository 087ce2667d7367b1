//! Who asks: by an access token, or by a browser's cookie.

use actix_web::HttpRequest;
use auth::principal::Actor;
use auth::sign_in::Token;
use store::StoredUser;
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Credential;
use crate::http::{App, guard, session};

/// The caller, and by which sign-in. An access token is judged alone: with a bad one, the cookie beside it counts for
/// nothing.
pub(super) async fn caller(app: &App, request: &HttpRequest) -> ApiResult<Option<(StoredUser, Uuid)>> {
    if let Some(person) = guard::person(app, request).await? {
        return Ok(Some(person));
    }
    let found = session::signed_in(app, request).await?;
    Ok(found.map(|found| (found.record, found.session)))
}

/// Whether a token says who asks, so that no cookie does.
pub(super) fn shows_token(request: &HttpRequest) -> bool {
    guard::credential(request.headers()) != Credential::None
}

/// A caller who presents a secret that may be wrong: their failures are counted with all the others.
pub(super) struct Showing {
    identity: String,
}

impl Showing {
    /// A caller who presents this mail address, or this token, as theirs. Only a digest of it is kept.
    ///
    /// # Errors
    /// 429 when there were too many failures.
    pub(super) async fn of(app: &App, request: &HttpRequest, kind: &str, whose: &str) -> ApiResult<Self> {
        let identity = format!("{kind}:{}", hex::encode(Token::digest_of(whose)));
        let limiter = app.gate().limiter();
        limiter.check_address(app.client_address(request)).await?;
        limiter.check_identity(&identity)?;
        Ok(Self { identity })
    }

    /// It was wrong.
    pub(super) async fn failed(self, app: &App, request: &HttpRequest, code: ErrorCode) -> ApiError {
        let address = app.client_address(request);
        app.gate().limiter().failed(code, address, &self.identity, Actor::ANONYMOUS).await
    }
}
