//! The provider's token endpoint, and who we are there.

use std::sync::Arc;

use auth::keyring::KeyRing;
use auth::oidc::{
    ClientAuth, IdTokenRules, Identity, Kept, NoIdentity, basic_credentials, error_of, id_token_of,
};
use config::Oidc;
use kernel::{Clock, Secret};
use net::{Client, ClientError, Method, NetError, Request, StatusCode};
use secrecy::ExposeSecret;
use url::form_urlencoded;

use super::discovery::{Discovery, Known};
use super::limits;

/// No identity token for a code. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenRefused {
    #[error("the token endpoint does not answer: {0}")]
    Unavailable(String),
    #[error("the token endpoint refuses: {0}")]
    Refused(&'static str),
    #[error("the token endpoint's answer holds no identity token")]
    NoToken,
}

impl From<NetError> for TokenRefused {
    fn from(error: NetError) -> Self {
        Self::Unavailable(error.message)
    }
}

/// Who people may sign in by.
pub(crate) struct Provider {
    rules: IdTokenRules,
    client_secret: Secret,
    host: String,
    ring: KeyRing,
    discovery: Discovery,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl Provider {
    /// The one that the configuration names; `ring` seals what is kept until somebody comes back.
    pub(crate) fn new(config: &Oidc, ring: KeyRing, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let client = Client::operator(Arc::clone(&clock))?;
        Ok(Self {
            rules: IdTokenRules { issuer: config.issuer.clone(), client_id: config.client_id.clone() },
            client_secret: config.client_secret.clone(),
            host: config.issuer_url.host_str().unwrap_or_default().to_owned(),
            ring,
            discovery: Discovery::new(config, client.clone(), Arc::clone(&clock)),
            client,
            clock,
        })
    }

    /// What people know it by.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.rules.issuer
    }

    pub(crate) fn client_id(&self) -> &str {
        &self.rules.client_id
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// What it says of itself; `None` when that cannot be had, which the log tells.
    pub(crate) async fn known(&self) -> Option<Arc<Known>> {
        self.discovery.known().await
    }

    /// The identity token that a code stands for.
    pub(crate) async fn exchange(
        &self,
        known: &Known,
        code: &str,
        kept: &Kept,
        redirect_uri: &str,
    ) -> Result<Secret, TokenRefused> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", kept.verifier());
        let mut request = Request::new(Method::POST, known.metadata.token_endpoint.as_str())
            .header("content-type", "application/x-www-form-urlencoded")?
            .header("accept", "application/json")?;
        match known.metadata.client_auth {
            ClientAuth::Basic => {
                request = request.basic(&basic_credentials(self.client_id(), &self.client_secret))?;
            }
            ClientAuth::Post => {
                form.append_pair("client_id", self.client_id())
                    .append_pair("client_secret", self.client_secret.expose_secret());
            }
        }
        let answer = self.client.send(request.body(form.finish()), &limits()).await?;
        let status = answer.status();
        match status {
            StatusCode::OK => id_token_of(&answer.bytes().await?).map_err(|_| TokenRefused::NoToken),
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(TokenRefused::Refused(error_of(&answer.bytes().await?)))
            }
            _ => Err(TokenRefused::Unavailable(format!("the answer is {status}"))),
        }
    }

    /// Who an identity token is about.
    pub(crate) async fn identity(
        &self,
        known: &Known,
        token: &Secret,
        kept: &Kept,
    ) -> Result<Identity, NoIdentity> {
        self.rules.judge(token.expose_secret(), kept, &known.keys, self.clock.now()).await
    }
}
