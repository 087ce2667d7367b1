//! Identifies the signed-in person, for routes about them and not about their rights.

use actix_web::HttpRequest;
use auth::principal::Actor;
use store::StoredUser;
use uuid::Uuid;
use wire::ErrorCode;

use super::credential::{self, Credential};
use super::gate::{CredentialRefusal, Failed, Gate};
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// Returns the user and sign-in session of the presented access token; `None` without a header. Refuses a token that
/// does not belong to a user who signed in here.
pub(in crate::http) async fn person(
    app: &App,
    request: &HttpRequest,
) -> ApiResult<Option<(StoredUser, Uuid)>> {
    let token = match credential::read(request.headers()) {
        Credential::None => return Ok(None),
        Credential::OtherScheme => return Err(ApiError::new(ErrorCode::InvalidScheme)),
        Credential::Bearer(token) => token,
        Credential::Unreadable => return Err(ApiError::new(ErrorCode::InvalidToken)),
    };
    let (gate, address): (&Gate, _) = (app.gate(), app.client_address(request));
    gate.limiter().check_address(address).await?;
    match gate.person_of(&token).await {
        Ok(person) => Ok(Some(person)),
        Err(CredentialRefusal::Unjudged(error)) => Err(error),
        Err(CredentialRefusal::Failed(Failed { code, identity, .. })) => {
            // A separate key, so that a token that is valid on other routes is not locked out there.
            let identity = format!("person-{identity}");
            Err(gate.limiter().failed(code, address, &identity, Actor::ANONYMOUS).await)
        }
    }
}
