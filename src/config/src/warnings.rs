//! Settings that do not prevent the start but are probably mistakes.

use crate::source::Source;
use crate::variables::{self, variables};
use crate::{Config, ModelTape, auth::Auth, chat::Chat};
use kernel::Secret;
use secrecy::ExposeSecret;

/// Minimum bytes of a strong signing key.
const KEY_BYTES: usize = 32;

/// One sentence each: unknown variables, short signing keys, development settings, variables without an effect yet.
#[must_use]
pub fn warnings(source: &Source, config: &Config) -> Vec<String> {
    let mut warnings: Vec<String> = source
        .set()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("SERVICE_") && variables::find(name).is_none())
        .map(|name| match nearest(name) {
            Some(known) => {
                format!("{} is not a known variable; the nearest one is {known}", name.escape_debug())
            }
            None => format!("{} is not a known variable", name.escape_debug()),
        })
        .collect();
    let Auth { jwt_secret, .. } = &config.auth;
    let Chat { token_signing_key, .. } = &config.chat;
    warnings.extend(short_key("SERVICE_AUTH_JWT_SECRET", jwt_secret.as_ref()));
    warnings.extend(short_key("CHAT_TOKEN_SIGNING_KEY", token_signing_key.as_ref()));
    let bootstrap =
        config.auth.bootstrap.token.as_ref().map_or(KEY_BYTES, |token| token.expose_secret().len());
    if bootstrap < KEY_BYTES {
        warnings.push(format!(
            "SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN is shorter than {KEY_BYTES} bytes, so it can be guessed"
        ));
    }
    warnings.extend(config.model.tape.as_ref().map(|tape| {
        match tape {
        ModelTape::Record(_) => {
            "SERVICE_MODEL_RECORD is for development: requests and responses are kept in a file, unencrypted"
                .to_owned()
        }
        ModelTape::Replay(_) => {
            "SERVICE_MODEL_REPLAY is for development: models are not called, responses are read from a file"
                .to_owned()
        }
    }
    }));
    warnings.extend(variables().iter().filter_map(|variable| {
        let pending = variable.pending.as_deref()?;
        source.get(&variable.name)?;
        Some(format!("{} has no effect yet: {pending}", variable.name))
    }));
    warnings
}

fn short_key(name: &str, key: Option<&Secret>) -> Option<String> {
    let bytes = key?.expose_secret().len();
    (bytes < KEY_BYTES).then(|| {
        format!("{name} is shorter than {KEY_BYTES} bytes, so signatures made with it can be guessed")
    })
}

/// The known variable with the smallest edit distance.
fn nearest(name: &str) -> Option<&'static str> {
    variables()
        .iter()
        .map(|variable| variable.name.as_str())
        .min_by_key(|known| strsim::levenshtein(name, known))
}
