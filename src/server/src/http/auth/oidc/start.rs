//! Redirects a browser to the provider.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse};
use auth::oidc::{ASKED_LIFE, Asked};
use auth::sign_in::{Token, client_key, is_local};
use store::NewOidcSignIn;
use wire::ErrorCode;

use super::failure::SignInFailure;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;

pub(in crate::http::auth) async fn start(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    match leave(&app, &request).await {
        Ok(answer) => Ok(answer),
        Err(failure) => failure.page(),
    }
}

async fn leave(app: &App, request: &HttpRequest) -> Result<HttpResponse, SignInFailure> {
    let provider = super::provider(app)?;
    if !app.keeps_cookies(request) {
        return Err(ErrorCode::TlsRequired.into());
    }
    let redirect_uri = super::redirect_uri(app, request)?;
    // Targets other than local paths are dropped.
    let return_to = Params::from_request(request).text("return_to").filter(|path| is_local(path));
    let known = provider.known().await.ok_or(ErrorCode::OidcUnavailable)?;
    let asked = Asked::fresh(app.random())?;
    // Two pages in one browser may be signing in at once.
    let secret = match super::read_binding(request).filter(|secret| Token::has_form(secret)) {
        Some(secret) => secret,
        None => Token::fresh(app.random())?.expose().to_owned(),
    };
    let state_digest = asked.state.digest();
    let sealed = asked.kept.seal(provider.ring(), &state_digest, app.random());
    let client = client_key(app.client_address(request));
    let new = NewOidcSignIn {
        state_digest,
        binding_digest: Token::digest_of(&secret),
        sealed: sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?,
        return_to: return_to.as_deref(),
        client: &client,
    };
    if !app.store().change(async |changes| changes.start_oidc(new).await).await? {
        tracing::info!(client, "sign-in not redirected to the provider: rate limit reached");
        return Err(ApiError::new(ErrorCode::AuthRateLimited).retry_after(ASKED_LIFE.num_seconds()).into());
    }
    let address = asked.address(&known.metadata, provider.client_id(), &redirect_uri);
    Ok(HttpResponse::SeeOther()
        .insert_header((LOCATION, address.as_str()))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .cookie(super::binding_cookie(&secret))
        .finish())
}
