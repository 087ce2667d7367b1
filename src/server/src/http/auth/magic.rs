//! The link in a sign-in mail. Opening it changes nothing, since mail scanners open links; the user confirms by a
//! click.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::Token;
use control::sign_in;
use store::LinkUse;
use wire::ErrorCode;

use super::answer::SigningIn;
use super::binding;
use super::caller::PresentedCredential;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::{body, pages};

pub(super) async fn show(app: Anyone, token: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    if binding::check_mail(&app).is_err() {
        return pages::link(&LinkUse::Over);
    }
    let kept = binding::of_navigation(&request).map(|cookie| Token::digest_of(&cookie));
    let link_use = app.store().look_at_link(&Token::digest_of(&token), kept.as_deref()).await?;
    pages::link(&link_use)
}

/// Signs in only the browser that requested the link.
pub(super) async fn use_up(
    app: Anyone,
    token: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    binding::check_own_origin(&app, &request)?;
    binding::check_mail(&app)?;
    let _ = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let showing = PresentedCredential::for_request(&app, &request, "link", &token).await?;
    let kept = binding::read(&app, &request).map(|cookie| Token::digest_of(&cookie));
    let signing_in = SigningIn::for_request(&app, &request, kept.as_deref().unwrap_or_default())?;
    let (link_use, opened) = app
        .store()
        .change(async |changes| {
            let link = Token::digest_of(&token);
            sign_in::by_link(changes, &link, kept.as_deref(), signing_in.opening()).await
        })
        .await?;
    match (link_use, opened) {
        (LinkUse::Good(proven), Some(opened)) => signing_in.answer(opened, proven.return_to),
        (LinkUse::OtherBrowser, _) => Err(ApiError::new(ErrorCode::CodeInvalid).with_message(OTHER_BROWSER)),
        (LinkUse::Good(_) | LinkUse::Over, _) => {
            Err(showing.failed(&app, &request, ErrorCode::CodeInvalid).await)
        }
    }
}

const OTHER_BROWSER: &str =
    "Open the link in the browser that requested it, or enter the code from the email there.";
