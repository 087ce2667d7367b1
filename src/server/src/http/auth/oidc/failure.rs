//! The page for a failed OpenID sign-in, because a user sees it in a browser.

use actix_web::HttpResponse;
use store::StoreError;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::pages;

/// The reason for a failure, in fixed words.
pub(super) struct SignInFailure {
    pub(super) error: ApiError,
    /// The page's text, if it differs from the code's own.
    pub(super) text: Option<&'static str>,
    /// The page that the user wanted to open.
    pub(super) return_to: Option<String>,
}

impl From<ApiError> for SignInFailure {
    fn from(error: ApiError) -> Self {
        Self { error, text: None, return_to: None }
    }
}

impl From<StoreError> for SignInFailure {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<kernel::RandomError> for SignInFailure {
    fn from(error: kernel::RandomError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<ErrorCode> for SignInFailure {
    fn from(code: ErrorCode) -> Self {
        ApiError::new(code).into()
    }
}

impl SignInFailure {
    /// Renders the page, with a link to start again.
    pub(super) fn page(self) -> ApiResult<HttpResponse> {
        let text = self.text.unwrap_or_else(|| text(self.error.code()));
        pages::sign_in_failed(&self.error, text, self.return_to.as_deref())
    }
}

fn text(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::OidcOff => "Sign-in with a provider is not enabled.",
        ErrorCode::TlsRequired => {
            "Your browser cannot keep you signed in over plain http. Ask the operator of this service for its https \
             address."
        }
        ErrorCode::OidcUnavailable => "The provider does not respond right now. Try again in a moment.",
        ErrorCode::OidcUnverified => {
            "The provider has not verified your email address. Verify it there, then start again."
        }
        ErrorCode::OidcRefused => {
            "The provider knows you, but this account may not sign in here. Ask the operator of this service for an \
             invitation."
        }
        ErrorCode::AuthRateLimited => "Too many attempts. Wait a minute and start again.",
        ErrorCode::OidcFailed => {
            "You returned from the provider too late, a second time, or with unexpected parameters. Start again."
        }
        _ => "The service is not available. Try again in a moment.",
    }
}
