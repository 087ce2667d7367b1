//! `http:<credential>`: another service judges. It receives the evaluators' whole context, signed with the
//! credential.

use async_trait::async_trait;
use net::{Host, Url};
use serde_json::Value;
use wire::{FieldError, is_credential_name};

use crate::evaluators::bench::Executed;
use crate::evaluators::config::Config;
use crate::evaluators::judge::{Ask, Asking, VerdictResult};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::normalized;

/// A service that judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostTarget {
    /// The JSON pointer to the entrypoint.
    pub pointer: String,
    /// The JSON pointer to the URL.
    pub url_pointer: String,
    /// The name of the signing credential.
    pub credential: String,
    /// The URL: `http` or `https`, without a user.
    pub url: String,
}

pub(in crate::evaluators) struct PostJudge {
    target: PostTarget,
    config: Value,
}

impl PostTarget {
    /// The host and port.
    #[must_use]
    pub fn place(&self) -> Option<(Host<String>, u16)> {
        let url = Url::parse(self.url.trim()).ok()?;
        Some((url.host()?.to_owned(), url.port_or_known_default()?))
    }
}

impl PostJudge {
    /// `credential`: as named by the entrypoint; `entrypoint_at` and `config_at`: pointers to the entrypoint and the
    /// config.
    pub(in crate::evaluators) fn read(
        credential: &str,
        value: &Value,
        entrypoint_at: String,
        config_at: String,
        problems: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let before = problems.len();
        if !is_credential_name(credential) {
            let message = format!("'{credential}' is not a valid name of a credential in the vault");
            problems.push(FieldError::new(&entrypoint_at, "evaluator_not_found", message));
        }
        let mut config = Config::from_value(config_at, value, problems)?;
        let url = config.text("url");
        if let Some(problem) = url.and_then(url_problem) {
            config.note("url", "url", problem);
        }
        let (url, url_pointer) = (url?.to_owned(), config.at("url"));
        // Other members are for the service itself.
        let target =
            PostTarget { pointer: entrypoint_at, url_pointer, credential: credential.to_owned(), url };
        (problems.len() == before).then(|| Self { target, config: value.clone() })
    }
}

/// The problem with a URL, if any; the text does not repeat the URL.
fn url_problem(text: &str) -> Option<String> {
    match Url::parse(text.trim()) {
        Err(error) => Some(format!("is not a valid address: {error}")),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some(format!("'{}:' is neither http nor https", url.scheme()))
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must not contain a user or a password; the credential signs the request".to_owned())
        }
        Ok(_) => None,
    }
}

#[async_trait]
impl Asking for PostJudge {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let said = ask.execute(Executed::Post(&self.target), subject.context(&self.config), 0).await?;
        Ok(normalized(&said, threshold.unwrap_or(0.5))?)
    }

    fn post(&self) -> Option<&PostTarget> {
        Some(&self.target)
    }
}
