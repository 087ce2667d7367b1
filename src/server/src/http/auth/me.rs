//! Who is signed in, and no longer.

use actix_web::web::{Json, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::Token;
use wire::{ErrorCode, Me, WorkspaceRole};

use super::{answer, audit, binding, caller};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::{body, session};

pub(super) async fn me(app: Anyone, request: HttpRequest) -> ApiResult<Json<Me>> {
    let caller = caller::caller(&app, &request).await?;
    let (user, _) = caller.ok_or_else(|| ApiError::new(ErrorCode::MissingToken))?;
    ApiError::refuse(Params::of(&request).finish())?;
    let workspaces = app.store().memberships(user.id).await?;
    let role = |place: store::Membership| WorkspaceRole {
        id: place.workspace_id.to_string(),
        slug: place.slug,
        role: place.role,
    };
    let workspaces = workspaces.into_iter().map(role).collect();
    Ok(Json(Me { user: answer::record(user), workspaces }))
}

/// Ends the sign-in of the access token, the cookie, or the refresh token in the body. Whoever is not signed in is signed
/// out already.
pub(super) async fn log_out(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    binding::check_type(&request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let members = body::object_or_nothing(&request, &bytes)?;
    let mut fields = Fields::of(&members);
    let refresh = fields.text("refresh_token").map(Token::digest_of);
    let problems = fields.finish();
    Params::of(&request).and(if problems.is_empty() { Ok(()) } else { Err(problems) })?;
    let caller = caller::caller(&app, &request).await?;
    app.store()
        .change(async |changes| {
            let of_refresh = match &refresh {
                Some(refresh) => changes.session_of_refresh(refresh).await?,
                None => None,
            };
            let ours = caller.as_ref().map(|(_, session)| *session);
            for session in [ours, of_refresh].into_iter().flatten() {
                if let Some(user) = changes.revoke_session(session, "signed_out").await? {
                    let entry = audit::entry(&app, &request, "auth.signed_out", user, session);
                    changes.audit(&entry).await?;
                }
            }
            Ok(())
        })
        .await?;
    Ok(HttpResponse::NoContent().cookie(session::no_cookie()).finish())
}
