//! Handles the user's return from the provider.

use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse};
use auth::oidc::{Identity, Kept, known_error};
use auth::sign_in::Token;
use control::sign_in;
use store::{NewIdentity, OidcReturn};
use wire::ErrorCode;

use super::failure::SignInFailure;
use crate::http::App;
use crate::http::auth::answer::SigningIn;
use crate::http::auth::caller::PresentedCredential;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::oidc::{NotKnown, Provider, ReadyProvider};

const OTHER_BROWSER: &str = "This is not the browser that started the sign-in, or it does not store cookies. Start again in the browser in \
     which you want to sign in.";
const SAID_NO: &str =
    "The provider rejected the sign-in, or you cancelled it there. Nothing has changed here.";

/// The parameters of the return. They are never echoed.
struct ReturnParameters {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl ReturnParameters {
    /// Returns `None` for duplicate parameters, which the provider never sends.
    fn read(request: &HttpRequest) -> Option<Self> {
        let mut params = Params::from_request(request);
        let (state, code) = (params.text("state"), params.text("code"));
        let (error, issuer) = (params.text("error"), params.text("iss"));
        params.finish_leniently().is_empty().then_some(Self { state, code, error, issuer })
    }
}

/// The reason why the sign-in was refused.
enum ReturnError {
    /// The provider rejected the sign-in, or the user cancelled there.
    SaidNo(&'static str),
    NotKnown(NotKnown),
}

impl From<NotKnown> for ReturnError {
    fn from(error: NotKnown) -> Self {
        Self::NotKnown(error)
    }
}

pub(in crate::http::auth) async fn callback(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    match come_back(&app, &request).await {
        Ok(answer) => Ok(answer),
        Err(failure) => failure.page(),
    }
}

async fn come_back(app: &App, request: &HttpRequest) -> Result<HttpResponse, SignInFailure> {
    let provider = super::provider(app)?;
    let brought = ReturnParameters::read(request);
    let state = brought.as_ref().and_then(|brought| brought.state.as_deref()).unwrap_or_default();
    let showing = PresentedCredential::for_request(app, request, "oidc", state).await?;
    let state = Token::digest_of(state);
    let binding = super::binding_digest(request);
    let used = app.store().use_oidc(&state, binding.as_deref()).await?;
    let (sealed, return_to, brought) = match (used, brought) {
        (OidcReturn::Good { sealed, return_to }, Some(brought)) => (sealed, return_to, brought),
        (OidcReturn::OtherBrowser, _) => {
            let text = Some(OTHER_BROWSER);
            return Err(SignInFailure { text, ..ErrorCode::OidcFailed.into() });
        }
        // Any page can send its visitors here. The state cannot be guessed, so failures count only with a sign-in
        // cookie.
        (OidcReturn::Over, _) if binding.is_none() => return Err(ErrorCode::OidcFailed.into()),
        (OidcReturn::Good { .. } | OidcReturn::Over, _) => {
            return Err(showing.failed(app, request, ErrorCode::OidcFailed).await.into());
        }
    };
    let kept = Kept::open(provider.ring(), &state, &sealed);
    let kept = kept.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    // The state is used up. No database connection is held during the request to the provider.
    let redirect_uri = super::redirect_uri(app, request)?;
    let identity = match identify(provider, &brought, &kept, &redirect_uri).await {
        Ok(identity) => identity,
        Err(why) => return Err(refuse(app, request, showing, why, return_to).await),
    };
    let signing_in = SigningIn::in_browser(app, request)?;
    let who = NewIdentity { issuer: provider.issuer(), subject: &identity.subject };
    let email = identity.email.as_str();
    let opened = app
        .store()
        .change(async |changes| sign_in::open(changes, signing_in.opening(), email, Some(who)).await)
        .await?;
    if opened.is_none() {
        let error = showing.failed(app, request, ErrorCode::OidcRefused).await;
        return Err(SignInFailure { error, text: None, return_to });
    }
    // The cookie is kept: another page in this browser may be signing in, and the cookie grants nothing by itself.
    // The target is relative to `/api/auth/oidc/`, so that it works below any base path.
    let to = format!("../../..{}", return_to.as_deref().unwrap_or("/"));
    let mut response = HttpResponse::SeeOther();
    response.insert_header((LOCATION, to)).insert_header(("Referrer-Policy", "no-referrer"));
    Ok(signing_in.keep(response).finish())
}

/// Asks the provider for the user's identity.
async fn identify(
    provider: &Provider,
    brought: &ReturnParameters,
    kept: &Kept,
    redirect_uri: &str,
) -> Result<Identity, ReturnError> {
    let unknown = || NotKnown::Unavailable("its metadata cannot be fetched".to_owned());
    let known: &ReadyProvider = &*provider.known().await.ok_or_else(unknown)?;
    // A response from another issuer is rejected regardless of its content (RFC 9207).
    let is_ours = match brought.issuer.as_deref() {
        Some(issuer) => issuer == provider.issuer(),
        None => !known.metadata.sends_issuer,
    };
    if !is_ours {
        let why = "the response is from another issuer, or has no issuer";
        return Err(NotKnown::Failed(why.to_owned()).into());
    }
    if let Some(error) = &brought.error {
        return Err(ReturnError::SaidNo(known_error(error)));
    }
    let code = brought.code.as_deref().filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| NotKnown::Failed("the response has no code".to_owned()))?;
    Ok(provider.identity(known, code, kept, redirect_uri).await?)
}

/// Counts a refusal that may be abuse, and logs the reason.
async fn refuse(
    app: &App,
    request: &HttpRequest,
    showing: PresentedCredential,
    why: ReturnError,
    return_to: Option<String>,
) -> SignInFailure {
    let (code, text) = match why {
        ReturnError::NotKnown(NotKnown::Unavailable(why)) => {
            kernel::warn_once_a_minute!("oidc.unavailable", why, "OpenID sign-in unavailable");
            return SignInFailure { return_to, ..ErrorCode::OidcUnavailable.into() };
        }
        ReturnError::SaidNo(error) => {
            tracing::info!(error, "sign-in rejected by the OpenID provider");
            (ErrorCode::OidcFailed, Some(SAID_NO))
        }
        ReturnError::NotKnown(why) => {
            let unverified = matches!(why, NotKnown::Unverified(_));
            let code = if unverified { ErrorCode::OidcUnverified } else { ErrorCode::OidcFailed };
            kernel::warn_once_a_minute!(code.as_str(), %why, "OpenID sign-in rejected");
            (code, None)
        }
    };
    let error = showing.failed(app, request, code).await;
    let text = text.filter(|_| error.code() == code);
    SignInFailure { error, text, return_to }
}
