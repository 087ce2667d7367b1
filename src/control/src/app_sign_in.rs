//! Sign-ins to hosted apps: issues codes to users.

use auth::app_sign_in::{CodeRequest, SIGN_IN_LIFE};
use auth::sign_in::Token;
use kernel::Random;
use store::{Changes, NewAppCode, StoredApp};
use uuid::Uuid;
use wire::ErrorCode;

use crate::{Decision, Refusal};

/// A user who is signed in on the central host.
#[derive(Debug, Clone, Copy)]
pub struct SignedInUser {
    /// The user.
    pub user: Uuid,
    /// The sign-in. The sessions that the app opens end with it.
    pub session: Uuid,
}

/// The result of a code request.
pub enum Authorized {
    /// The code, for the user's browser.
    Code(Token),
    /// The user has not agreed yet that this app learns who they are.
    AsksConsent,
}

/// Checks that an app can sign users in, and that a request names the app's address.
///
/// # Errors
/// [`ErrorCode::AppBadRequest`].
pub fn check_request(app: Option<StoredApp>, origin: &str, request: &CodeRequest) -> Decision<StoredApp> {
    let published = app.filter(|app| app.alias == request.alias && app.active_release.is_some());
    let app = published.ok_or_else(|| refused("There is no app with this `client_id`."))?;
    if request.redirect_uri != format!("{origin}{}", auth::app_sign_in::CALLBACK) {
        return Err(refused("`redirect_uri` is not the address of this app."));
    }
    Ok(app)
}

fn refused(message: &str) -> Refusal {
    Refusal::new(ErrorCode::AppBadRequest).with_message(message)
}

/// Issues a code to a member who has agreed before or agrees now.
///
/// # Errors
/// [`ErrorCode::NotAMember`]; [`ErrorCode::AuthRateLimited`] if the user has already received the maximum number of
/// codes.
pub async fn authorize(
    changes: &mut Changes,
    by: SignedInUser,
    app: &StoredApp,
    request: &CodeRequest,
    agrees: bool,
    random: &dyn Random,
) -> Decision<Authorized> {
    if !changes.is_active_member(app.workspace_id, by.user).await? {
        return Err(Refusal::new(ErrorCode::NotAMember));
    }
    if agrees {
        changes.add_app_consent(app.id, by.user).await?;
    } else if !changes.has_app_consent(app.id, by.user).await? {
        return Ok(Authorized::AsksConsent);
    }
    let code = Token::fresh(random)
        .map_err(|error| Refusal { cause: Some(error.to_string()), ..Refusal::new(ErrorCode::Internal) })?;
    let new = NewAppCode {
        digest: &code.digest(),
        app: app.id,
        redirect_uri: &request.redirect_uri,
        challenge: &request.challenge,
        user: by.user,
        central_session: by.session,
    };
    if !changes.issue_app_code(new).await? {
        return Err(Refusal::new(ErrorCode::AuthRateLimited).retry_after(SIGN_IN_LIFE.num_seconds()));
    }
    Ok(Authorized::Code(code))
}
