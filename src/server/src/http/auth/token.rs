//! Access tokens for our own pages, exchanged for the browser's cookie because the API accepts no cookies.

use actix_web::HttpRequest;
use actix_web::web::{Json, Payload};
use auth::sign_in::ACCESS_LIFE;
use serde_json::{Map, Value};
use wire::{ErrorCode, FieldError, PageToken, RequestPageToken};

use super::{answer, binding};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::{body, session};

/// Issues an access token that is tied to the browser's session. The page has no refresh token and requests another one
/// instead.
pub(super) async fn create(
    app: Anyone,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<PageToken>> {
    let missing = || ApiError::new(ErrorCode::MissingToken);
    let user = session::still_signed_in(&app, &request).await?.ok_or_else(missing)?;
    binding::check_own_page(&app, &request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let wanted = Params::from_request(&request).and(read(&body::object(&request, &bytes)?))?;
    if wanted.active {
        session::signed_in(&app, &request).await?.ok_or_else(missing)?;
    }
    let life = ACCESS_LIFE.min(user.ends_at - app.clock().now());
    Ok(Json(PageToken {
        access_token: answer::access_token(&app, user.user, user.session, life)?,
        token_type: "bearer".to_owned(),
        expires_in: life.num_seconds(),
        user: answer::record(user.record),
    }))
}

fn read(members: &Map<String, Value>) -> Result<RequestPageToken, Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("active");
    let active = fields.flag("active");
    match (active, fields.finish()) {
        (Some(active), problems) if problems.is_empty() => Ok(RequestPageToken { active }),
        (_, problems) => Err(problems),
    }
}
