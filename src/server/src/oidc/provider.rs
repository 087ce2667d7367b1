//! User identities from the OpenID provider, and the service's authentication there.

use std::sync::Arc;

use auth::keyring::KeyRing;
use auth::oidc::{ClientAuth, IdTokenRules, Identity, Kept, NoIdentity, Tokens, basic_credentials, error_of};
use bytes::Bytes;
use config::Oidc;
use kernel::{Clock, Secret};
use net::{Client, ClientError, Method, NetError, Request, StatusCode, Url};
use secrecy::ExposeSecret;
use url::form_urlencoded;

use super::discovery::{Discovery, ReadyProvider};
use super::limits;

/// The reason why an identity is not confirmed. The texts are for the log and contain nothing written by the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotKnown {
    /// A failure at the provider or in the connection to it.
    #[error("{0}")]
    Unavailable(String),
    /// The provider has not verified the email address.
    #[error("{0}")]
    Unverified(NoIdentity),
    /// The code, or the token exchanged for it, does not belong to this sign-in.
    #[error("{0}")]
    Failed(String),
}

impl From<NetError> for NotKnown {
    fn from(error: NetError) -> Self {
        Self::Unavailable(error.message)
    }
}

impl From<NoIdentity> for NotKnown {
    fn from(error: NoIdentity) -> Self {
        match error {
            NoIdentity::KeysUnavailable => Self::Unavailable(error.to_string()),
            NoIdentity::Unverified => Self::Unverified(error),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The identity provider for sign-in.
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
    /// Creates the configured provider. `ring` seals the state that is kept until the user returns.
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

    /// The host name by which people know the provider.
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

    /// Returns the provider's metadata and keys; `None` if they cannot be fetched, which is logged.
    pub(crate) async fn known(&self) -> Option<Arc<ReadyProvider>> {
        self.discovery.known().await
    }

    /// Exchanges a code for the user's identity.
    pub(crate) async fn identity(
        &self,
        known: &ReadyProvider,
        code: &str,
        kept: &Kept,
        redirect_uri: &str,
    ) -> Result<Identity, NotKnown> {
        let tokens = self.exchange(known, code, kept, redirect_uri).await?;
        let token = tokens.identity.expose_secret();
        let judged = self.rules.judge(token, kept, &known.keys, self.clock.now()).await?;
        match (&known.metadata.userinfo_endpoint, &tokens.access) {
            (Some(endpoint), Some(access)) if !judged.says_all() => {
                Ok(judged.identity_by(&self.userinfo(endpoint, access).await?)?)
            }
            _ => Ok(judged.identity()?),
        }
    }

    async fn exchange(
        &self,
        known: &ReadyProvider,
        code: &str,
        kept: &Kept,
        redirect_uri: &str,
    ) -> Result<Tokens, NotKnown> {
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
            StatusCode::OK => {
                let tokens = Tokens::parse(&answer.bytes().await?);
                tokens.map_err(|error| NotKnown::Failed(error.to_string()))
            }
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let error = error_of(&answer.bytes().await?);
                Err(NotKnown::Failed(format!("the token endpoint rejects the request: {error}")))
            }
            _ => Err(NotKnown::Unavailable(format!("the token endpoint returned {status}"))),
        }
    }

    async fn userinfo(&self, endpoint: &Url, access: &Secret) -> Result<Bytes, NotKnown> {
        let request = Request::new(Method::GET, endpoint.as_str()).bearer(access)?;
        let answer = self.client.send(request.header("accept", "application/json")?, &limits()).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer.bytes().await?),
            status => Err(NotKnown::Unavailable(format!("the userinfo endpoint returned {status}"))),
        }
    }
}
