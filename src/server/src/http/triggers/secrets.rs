//! A webhook's secrets, sealed with a service key, which is itself sealed with the vault's key if there is one.

use kernel::Secret;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// The secrets that verify a webhook's calls.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    pub(super) shared: Option<Secret>,
    pub(super) hmac: Option<Secret>,
}

/// The sealing context.
fn context(workflow: Uuid) -> String {
    format!("callboard|webhook|{workflow}")
}

impl Secrets {
    pub(super) fn seal(&self, app: &App, workflow: Uuid) -> ApiResult<Vec<u8>> {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        let plain = json!({"shared": text(&self.shared), "hmac": text(&self.hmac)}).to_string();
        let sealed = app.answers_key().seal(&context(workflow), plain.as_bytes(), app.random());
        sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
    }

    pub(super) fn open(app: &App, workflow: Uuid, sealed: &[u8]) -> ApiResult<Self> {
        let key = app.answers_key();
        let plain = key
            .open(key.active(), &context(workflow), sealed)
            .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
        let plain: Value = serde_json::from_slice(&plain).map_err(|_| {
            ApiError::new(ErrorCode::Internal).with_cause("failed to decrypt a webhook's secrets")
        })?;
        let text =
            |name: &str| plain.get(name).and_then(Value::as_str).map(|text| Secret::from(text.to_owned()));
        Ok(Self { shared: text("shared"), hmac: text("hmac") })
    }
}
