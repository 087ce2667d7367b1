//! Handles a browser's return from the central host. The code is redeemed locally, without a network call.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse};
use auth::app_sign_in::{CALLBACK, open_verifier};
use auth::pkce::challenge;
use auth::sign_in::Token;
use secrecy::ExposeSecret;
use store::{RedeemedCode, ShownAppCode, StrayAppCode, UsedAppSignIn};
use wire::ErrorCode;

use super::{binding, failure};
use crate::http::alias::error::{AliasError, AliasResult};
use crate::http::alias::session;
use crate::http::alias::visitor::Visitor;
use crate::http::error::ApiError;
use crate::http::query::Params;

pub(super) async fn callback(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    match come_back(&visitor, &request).await {
        Err(AliasError::Api(error)) => Ok(failure::page(&error)),
        answer => answer,
    }
}

/// The return parameters. The central host sends none twice.
struct CallbackParameters {
    state: String,
    code: String,
    issuer: String,
}

impl CallbackParameters {
    fn read(request: &HttpRequest) -> Option<Self> {
        let mut params = Params::from_request(request);
        let (state, code, issuer) = (params.text("state"), params.text("code"), params.text("iss"));
        params.finish_leniently().is_empty().then_some(())?;
        Some(Self { state: state?, code: code?, issuer: issuer? })
    }
}

async fn come_back(visitor: &Visitor, request: &HttpRequest) -> AliasResult<HttpResponse> {
    let base = super::central_base(visitor, request)?;
    let failed = |why: &'static str| {
        tracing::info!(why, "app sign-in rejected");
        AliasError::from(ErrorCode::LoginFailed)
    };
    let given =
        CallbackParameters::read(request).ok_or_else(|| failed("a parameter is missing or repeated"))?;
    let (state, code) = (Token::digest_of(&given.state), Token::digest_of(&given.code));
    let app = visitor.served.id;
    let used = use_state(visitor, request, &state, &code).await?;
    let used =
        used.ok_or_else(|| failed("the state belongs to another browser, was already used, or is too old"))?;
    // Codes from another issuer are not presented (RFC 9207).
    if given.issuer != base {
        return Err(failed("the response is from another issuer"));
    }
    let verifier = open_verifier(&visitor.sign_in().apps, &state, &used.sealed);
    let verifier = verifier.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let cookie = Token::fresh(visitor.random()).map_err(ApiError::from)?;
    let shown = ShownAppCode {
        digest: &code,
        app,
        workspace: visitor.served.workspace,
        redirect_uri: &format!("{}{CALLBACK}", visitor.origin),
        challenge: &challenge(verifier.expose_secret()),
        cookie_digest: &cookie.digest(),
    };
    match visitor.store().redeem_app_code(&shown, session::digest(request).as_deref()).await? {
        RedeemedCode::Opened(_) => {}
        RedeemedCode::Replayed => return Err(replayed(visitor)),
        RedeemedCode::Refused => return Err(failed("the code is not valid")),
    }
    let mut answer = HttpResponse::SeeOther();
    answer.insert_header((LOCATION, used.return_to));
    answer.cookie(session::cookie(&cookie));
    for cookie in binding::no_cookies_of(&state) {
        answer.cookie(cookie);
    }
    Ok(answer.finish())
}

/// Uses up the state of the browser's sign-in. Without one, nothing is redeemed; a code that was already redeemed ends
/// its session.
async fn use_state(
    visitor: &Visitor,
    request: &HttpRequest,
    state: &[u8],
    code: &[u8],
) -> AliasResult<Option<UsedAppSignIn>> {
    let (store, app) = (visitor.store(), visitor.served.id);
    let binding = binding::secret(request, state).map(|secret| Token::digest_of(&secret));
    if let Some(binding) = &binding
        && let Some(used) = store.use_app_sign_in(app, state, binding).await?
    {
        return Ok(Some(used));
    }
    let binding_digest = binding.as_ref().map(AsRef::as_ref);
    let stray = StrayAppCode { digest: code, app, state_digest: state, binding_digest };
    if store.end_stray_app_code(&stray).await? { Err(replayed(visitor)) } else { Ok(None) }
}

/// The error for a reused code. Another party may have read it from the URL.
///
/// Source: RFC 6749, section 4.1.2, and RFC 9700.
fn replayed(visitor: &Visitor) -> AliasError {
    tracing::warn!(alias = visitor.served.alias, "authorization code reused; session ended");
    ErrorCode::LoginFailed.into()
}
