//! Signs in a terminal from a browser, which is the only way for users of an OpenID provider.

use actix_web::HttpRequest;
use actix_web::web::{Json, Payload};
use auth::sign_in::{CHALLENGE_LIFE, Token};
use control::sign_in;
use wire::{ErrorCode, TerminalCode};

use super::{answer, binding};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::{body, session};

/// Issues a code for a terminal: the first refresh token of a separate session, valid once and briefly. Our own page
/// requests it with the browser's cookie.
pub(super) async fn code(
    app: Anyone,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<TerminalCode>> {
    binding::check_own_origin(&app, &request)?;
    binding::check_type(&request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    Params::from_request(&request).and(fields::nothing(&body::object_or_nothing(&request, &bytes)?))?;
    let user = session::signed_in(&app, &request).await?;
    let user = user.ok_or_else(|| ApiError::new(ErrorCode::MissingToken))?;
    binding::check_own_page(&app, &request)?;
    let code = Token::fresh(app.random())?;
    let client = answer::client(&app, &request);
    app.store()
        .change(async |changes| sign_in::open_terminal(changes, &client, user.user, code.digest()).await)
        .await?;
    Ok(Json(TerminalCode { code: code.expose().to_owned(), expires_in: CHALLENGE_LIFE.num_seconds() }))
}
