//! Redirects a browser to the central host for sign-in.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse};
use auth::app_sign_in::{CALLBACK, SIGN_IN_LIFE, SignInStart, return_to};
use auth::sign_in::{Token, client_key};
use store::NewAppSignIn;
use wire::ErrorCode;

use super::{binding, failure};
use crate::http::alias::error::{AliasError, AliasResult};
use crate::http::alias::visitor::{Visitor, is_within_page};
use crate::http::error::ApiError;
use crate::http::query::Params;

pub(super) async fn start(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    match leave(&visitor, &request).await {
        Err(AliasError::Api(error)) if failure::wants_page(&request) => Ok(failure::page(&error)),
        answer => answer,
    }
}

async fn leave(visitor: &Visitor, request: &HttpRequest) -> AliasResult<HttpResponse> {
    // A page could otherwise exhaust the sign-in limit of its visitor's network.
    if is_within_page(request) {
        return Err(ErrorCode::AppOriginMismatch.into());
    }
    let base = super::central_base(visitor, request)?;
    let given = Params::from_request(request).text("return_to");
    let start = SignInStart::fresh(visitor.random()).map_err(ApiError::from)?;
    let secret = Token::fresh(visitor.random()).map_err(ApiError::from)?;
    let sealed = start.seal(&visitor.sign_in().apps, visitor.random());
    let sealed = sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let (state, binding) = (start.state.digest(), secret.digest());
    let client = client_key(visitor.client_address(request));
    let new = NewAppSignIn {
        state_digest: &state,
        app: visitor.served.id,
        binding_digest: &binding,
        sealed: &sealed,
        return_to: return_to(given.as_deref()),
        client: &client,
    };
    let stored = visitor.store().change(async |changes| changes.start_app_sign_in(new).await).await?;
    if !stored {
        tracing::info!(client, "app sign-in rejected: rate limit reached");
        let limited = ApiError::new(ErrorCode::AppRateLimited);
        return Err(limited.retry_after(SIGN_IN_LIFE.num_seconds()).into());
    }
    let redirect_uri = format!("{}{CALLBACK}", visitor.origin);
    let address = start.address(base, &visitor.served.alias, &redirect_uri);
    let mut answer = HttpResponse::SeeOther();
    answer.insert_header((LOCATION, address));
    for cookie in binding::new_cookies(&state, secret.expose()).into_iter().chain(binding::make_room(request))
    {
        answer.cookie(cookie);
    }
    Ok(answer.finish())
}
