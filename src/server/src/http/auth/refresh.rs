//! Exchanges a refresh token for a new pair of tokens.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::Token;
use control::sign_in;
use serde_json::{Map, Value};
use store::{Refreshed, Revoked};
use wire::{ErrorCode, FieldError};

use super::caller::PresentedCredential;
use super::{answer, binding};
use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;

pub(super) async fn refresh(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let shown = Params::from_request(&request).and(read(&body::object(&request, &bytes)?))?;
    let showing = PresentedCredential::for_request(&app, &request, "refresh", &shown).await?;
    let (shown, fresh) = (Token::digest_of(&shown), Token::fresh(app.random())?);
    let client = answer::client(&app, &request);
    let refreshed = app
        .store()
        .change(async |changes| sign_in::refresh(changes, &client, &shown, &fresh.digest()).await)
        .await?;
    match refreshed {
        Refreshed::Good { session, user } => {
            Ok(HttpResponse::Ok().json(answer::tokens(&app, session, user, &fresh, None)?))
        }
        Refreshed::Reused(revoked) => {
            let (session, user) = (revoked.session, revoked.user);
            tracing::warn!(%session, %user, "refresh token reused; sign-in ended");
            Err(ApiError::new(ErrorCode::RefreshInvalid))
        }
        Refreshed::TooOften(Revoked { session, user }) => {
            tracing::warn!(%session, %user, "sign-in refreshed too often; ended");
            Err(ApiError::new(ErrorCode::RefreshInvalid))
        }
        Refreshed::Unknown => Err(showing.failed(&app, &request, ErrorCode::RefreshInvalid).await),
    }
}

fn read(members: &Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("refresh_token");
    let token = fields.text("refresh_token").map(str::to_owned);
    match (token, fields.finish()) {
        (Some(token), problems) if problems.is_empty() => Ok(token),
        (_, problems) => Err(problems),
    }
}
