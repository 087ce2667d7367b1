//! Another pair of tokens in the place of the old one.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::Token;
use serde_json::{Map, Value};
use store::Refreshed;
use wire::{ErrorCode, FieldError};

use super::{answer, binding, caller};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::query::Params;
use crate::http::{App, body};

pub(super) async fn refresh(
    app: Data<App>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let shown = Params::of(&request).and(read(&body::object(&request, &bytes)?))?;
    let (shown, fresh) = (Token::digest_of(&shown), Token::fresh(app.random())?);
    let refreshed =
        app.store().change(async |changes| changes.refresh(&shown, &fresh.digest()).await).await?;
    match refreshed {
        Refreshed::Good { session, user } => {
            Ok(HttpResponse::Ok().json(answer::tokens(&app, session, user, &fresh, None)?))
        }
        Refreshed::Reused(revoked) => {
            let (session, user) = (revoked.session, revoked.user);
            tracing::warn!(%session, %user, "a refresh token came twice, so its sign-in has ended");
            Err(ApiError::new(ErrorCode::RefreshInvalid))
        }
        Refreshed::Unknown => {
            caller::failed(&app, &request, "").await?;
            Err(ApiError::new(ErrorCode::RefreshInvalid))
        }
    }
}

fn read(members: &Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let mut fields = Fields::of(members);
    fields.require("refresh_token");
    let token = fields.text("refresh_token").map(str::to_owned);
    match (token, fields.finish()) {
        (Some(token), problems) if problems.is_empty() => Ok(token),
        (_, problems) => Err(problems),
    }
}
