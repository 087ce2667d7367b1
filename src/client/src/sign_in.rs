//! Sign-in by e-mail.

use kernel::Secret;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::json;
use wire::operation::Operation;
use wire::operations::sign_in;
use wire::{Me, Refresh, SignInStarted, SignedIn, StartSignIn, VerifyCode};

use crate::client::{Bearer, Client};
use crate::{Answer, ClientError};

/// Calls fail as [`Answer::ok`] does. No error repeats a token or a code. Only [`Client::me`] sends the client's own
/// token.
impl Client {
    /// `POST /api/auth/email/start`: requests a mail with a code; the response is the same for every address.
    ///
    /// # Errors
    /// See above.
    pub async fn start_sign_in(&self, start: &StartSignIn) -> Result<SignInStarted, ClientError> {
        self.sign(&sign_in::START, start).await?.ok_secret()
    }

    /// `POST /api/auth/email/verify`: exchanges the code for tokens.
    ///
    /// # Errors
    /// See above.
    pub async fn verify_code(&self, shown: &VerifyCode) -> Result<SignedIn, ClientError> {
        self.sign(&sign_in::VERIFY, shown).await?.ok_secret()
    }

    /// `POST /api/auth/refresh`: returns a new token pair. The previous refresh token becomes invalid; presenting it
    /// again ends the sign-in.
    ///
    /// # Errors
    /// See above.
    pub async fn refresh(&self, refresh_token: &Secret) -> Result<SignedIn, ClientError> {
        let refresh = Refresh { refresh_token: refresh_token.expose_secret().to_owned() };
        self.sign(&sign_in::REFRESH, &refresh).await?.ok_secret()
    }

    /// `POST /api/auth/logout`: ends the sign-in of a refresh token.
    ///
    /// # Errors
    /// See above.
    pub async fn log_out(&self, refresh_token: &Secret) -> Result<(), ClientError> {
        let body = json!({"refresh_token": refresh_token.expose_secret()});
        let answer = self.sign(&sign_in::LOG_OUT, &body).await?;
        if answer.is_success() { Ok(()) } else { Err(answer.error()) }
    }

    /// `DELETE /api/auth/sessions`: ends every sign-in of the refresh token's user. Uses the token up.
    ///
    /// # Errors
    /// See above.
    pub async fn log_out_everywhere(&self, refresh_token: &Secret) -> Result<(), ClientError> {
        let tokens = self.refresh(refresh_token).await?;
        let request =
            self.operation(&sign_in::END_SESSIONS, &[], Bearer::None)?.bearer_auth(tokens.access_token);
        let answer = self.answer(request).await?;
        if answer.is_success() { Ok(()) } else { Err(answer.error()) }
    }

    /// `GET /api/auth/me`: the user whose access token the client sends.
    ///
    /// # Errors
    /// See above.
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.read(&sign_in::ME, &[], &[]).await?.ok()
    }

    async fn sign(&self, operation: &Operation, body: &impl Serialize) -> Result<Answer, ClientError> {
        self.answer(self.operation(operation, &[], Bearer::None)?.json(body)).await
    }
}
