//! Sets up sign-in: its keys, its provider and its mail delivery.

use std::sync::Arc;

use actors::delivery::mail::{Delivery, DeliveryError, Settings};
use auth::keyring::KeyRing;
use auth::sign_in::CodeKey;
use config::{Config, Signup};
use store::{Store, StoreError};

use kernel::{Clock, SystemClock};

use crate::http::SignInKeys;
use crate::keys;
use crate::oidc::Provider;
use crate::tokens::TokensError;

/// Loads the sign-in keys, which are generated at the first start unless configured.
pub(crate) async fn keys(store: &Store, ring: Option<&KeyRing>) -> Result<SignInKeys, StoreError> {
    let codes = CodeKey::new(&store.service_key("sign_in", ring).await?);
    let letters = Arc::new(keys::generated(store, "mail", ring).await?);
    let apps = Arc::new(keys::generated(store, "app_sign_ins", ring).await?);
    Ok(SignInKeys { codes, letters, apps })
}

/// Creates the configured provider without contacting it.
pub(crate) async fn provider(
    config: &Config,
    store: &Store,
    ring: Option<&KeyRing>,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Provider>, TokensError> {
    let Some(oidc) = &config.sign_in.oidc else { return Ok(None) };
    let sealing = keys::generated(store, "oidc", ring).await?;
    Ok(Some(Provider::new(oidc, sealing, Arc::clone(clock))?))
}

/// Mail delivery settings. Logs a warning if they are probably unintended.
pub(crate) fn mail(config: &Config, sign_in: &SignInKeys) -> Result<Settings, DeliveryError> {
    let delivery = match smtp(config) {
        Some(delivery) => delivery?,
        None if config.offers_mail_sign_in() => Delivery::log(),
        None => Delivery::nowhere(),
    };
    if !config.http.is_loopback() {
        warn_public(config);
    }
    let members_and = match config.sign_in.signup {
        Signup::Open => None,
        Signup::Members => Some(config.sign_in.owner_email.clone()),
    };
    Ok(Settings { ring: Arc::clone(&sign_in.letters), delivery, members_and })
}

fn smtp(config: &Config) -> Option<Result<Delivery, DeliveryError>> {
    let url = config.mail.smtp_url.as_ref()?;
    let from = config.mail.from.clone().unwrap_or_else(|| default_from(config));
    Some(Delivery::smtp(url, &from))
}

/// Checks that the configured mail server accepts the service, without sending mail. `None` without a mail server.
///
/// # Errors
/// The reason for a refusal, without secrets.
pub async fn try_mail_server(config: &Config) -> Option<Result<(), String>> {
    Some(match smtp(config)? {
        Ok(delivery) => delivery.try_server(&SystemClock::new()).await,
        Err(error) => Err(error.to_string()),
    })
}

fn warn_public(config: &Config) {
    if config.offers_mail_sign_in() && config.mail.smtp_url.is_none() {
        tracing::warn!(
            "others can reach this service and SERVICE_SMTP_URL is not set: sign-in codes are written to this log, and only \
             its readers can sign in"
        );
    }
    if !config.offers_mail_sign_in() && config.sign_in.oidc.is_none() {
        tracing::warn!(
            "sign-in is disabled: others can reach this service, and SERVICE_PUBLIC_BASE_URL, needed for links in mail, \
             is not set"
        );
    }
}

fn default_from(config: &Config) -> String {
    let base = config.http.public_base_url.as_ref();
    format!("no-reply@{}", base.and_then(|base| base.url().domain()).unwrap_or("localhost"))
}
