//! The model endpoint: checks that it is reachable and accepts the key. The key is never printed.

use config::Config;
use net::{NetError, StatusCode};
use serde_json::Value;

use super::report::Finding;
use super::web::{SOON, Web};

const MODEL: &str = "model endpoint";

pub(super) enum ModelProbe {
    Unset { key: bool },
    Asked { url: String, key: bool, answer: Result<(StatusCode, Option<usize>), NetError> },
}

/// Requests the model list, which is free.
pub(super) async fn probe(config: &Config, web: &Web) -> ModelProbe {
    let key = config.model.api_key.as_ref();
    let Some(base) = &config.model.base_url else { return ModelProbe::Unset { key: key.is_some() } };
    let url = base.join("/models");
    let answer = match web.get(&url, SOON, key).await {
        Ok(response) => {
            let status = response.status();
            let body = response.bytes().await.unwrap_or_default();
            let models = serde_json::from_slice::<Value>(&body).ok();
            let models = models.and_then(|list| list.get("data")?.as_array().map(Vec::len));
            Ok((status, models))
        }
        Err(error) => Err(error),
    };
    // Omits the URL's user and password.
    let url = base.url().host_str().map_or_else(String::new, |host| format!("{host}{}", base.url().path()));
    ModelProbe::Asked { url, key: key.is_some(), answer }
}

pub(super) fn judge(probed: &ModelProbe) -> Finding {
    let (url, key, answer) = match probed {
        ModelProbe::Unset { key: false } => {
            return Finding::skipped(MODEL, "not configured; workflows can use the built-in practice model");
        }
        ModelProbe::Unset { key: true } => {
            return Finding::warning(
                MODEL,
                "SERVICE_MODEL_API_KEY is set, but no endpoint",
                "set SERVICE_MODEL_BASE_URL, such as https://api.openai.com/v1",
            );
        }
        ModelProbe::Asked { url, key, answer } => (url, *key, answer),
    };
    let base = "set SERVICE_MODEL_BASE_URL to the endpoint's base URL, as for OpenAI clients";
    let (status, models) = match answer {
        Ok(answer) => *answer,
        Err(error) => {
            return Finding::problem(
                MODEL,
                format!("not reachable: {error}"),
                format!("start it, or {base}"),
            );
        }
    };
    match (status.as_u16(), models) {
        (200, Some(models)) => Finding::ok(MODEL, format!("{url} responds and lists {models} models")),
        (401 | 403, _) if key => Finding::problem(
            MODEL,
            format!("{url} rejects the key ({status})"),
            "set SERVICE_MODEL_API_KEY to a valid key",
        ),
        (401 | 403, _) => {
            Finding::problem(MODEL, format!("{url} requires a key ({status})"), "set SERVICE_MODEL_API_KEY")
        }
        (404 | 405, _) => Finding::warning(
            MODEL,
            format!("{url} responds, but has no list of models ({status})"),
            format!("unless it really has none, {base}; it usually ends in /v1"),
        ),
        (500.., _) => Finding::problem(
            MODEL,
            format!("{url} returns a server error ({status})"),
            "check the endpoint's log, or ask its operator",
        ),
        (429, _) => Finding::warning(
            MODEL,
            format!("{url} is rate-limiting requests ({status})"),
            "try again later, or raise the key's limits",
        ),
        _ => Finding::warning(MODEL, format!("{url} returns an unexpected status ({status})"), base),
    }
}
