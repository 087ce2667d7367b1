//! The model endpoint: whether it is reached, and takes the key. The key itself is never printed.

use config::Config;
use net::{NetError, StatusCode};
use serde_json::Value;

use super::report::Finding;
use super::web::{SOON, Web};

const MODEL: &str = "model endpoint";

pub(super) enum Probed {
    Unset { key: bool },
    Asked { url: String, key: bool, answer: Result<(StatusCode, Option<usize>), NetError> },
}

/// Asks for the list of models, which costs nothing.
pub(super) async fn probe(config: &Config, web: &Web) -> Probed {
    let key = config.model.api_key.as_ref();
    let Some(base) = &config.model.base_url else { return Probed::Unset { key: key.is_some() } };
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
    // A user or password of the address is not for the eye.
    let url = base.url().host_str().map_or_else(String::new, |host| format!("{host}{}", base.url().path()));
    Probed::Asked { url, key: key.is_some(), answer }
}

pub(super) fn judge(probed: &Probed) -> Finding {
    let (url, key, answer) = match probed {
        Probed::Unset { key: false } => {
            return Finding::skipped(MODEL, "none is set; workflows can ask the built-in practice model");
        }
        Probed::Unset { key: true } => {
            return Finding::warning(
                MODEL,
                "SERVICE_MODEL_API_KEY is set, but no endpoint to use it at",
                "set SERVICE_MODEL_BASE_URL, such as https://api.openai.com/v1",
            );
        }
        Probed::Asked { url, key, answer } => (url, *key, answer),
    };
    let base = "put the endpoint's base, as OpenAI clients have it, into SERVICE_MODEL_BASE_URL";
    let (status, models) = match answer {
        Ok(answer) => *answer,
        Err(error) => {
            return Finding::problem(MODEL, format!("not reached: {error}"), format!("start it, or {base}"));
        }
    };
    match (status.as_u16(), models) {
        (200, Some(models)) => Finding::ok(MODEL, format!("{url} answers and names {models} models")),
        (401 | 403, _) if key => Finding::problem(
            MODEL,
            format!("{url} refuses the key ({status})"),
            "put a valid key into SERVICE_MODEL_API_KEY",
        ),
        (401 | 403, _) => Finding::problem(
            MODEL,
            format!("{url} asks for a key ({status})"),
            "put one into SERVICE_MODEL_API_KEY",
        ),
        (404 | 405, _) => Finding::warning(
            MODEL,
            format!("{url} answers, but has no list of models ({status})"),
            format!("unless it really has none, {base}; it usually ends in /v1"),
        ),
        (500.., _) => Finding::problem(
            MODEL,
            format!("{url} answers with an error of its own ({status})"),
            "look at the endpoint's log, or ask whoever runs it",
        ),
        (429, _) => Finding::warning(
            MODEL,
            format!("{url} is reached and asks to wait ({status})"),
            "try again later, or raise the limits of the key",
        ),
        _ => Finding::warning(MODEL, format!("{url} answers something unexpected ({status})"), base),
    }
}
