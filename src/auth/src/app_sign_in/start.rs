//! The browser's request to the central host, and the state kept until the browser returns.

use kernel::{Random, RandomError, Secret};
use secrecy::ExposeSecret;
use url::form_urlencoded;

use super::{AUTHORIZE, CodeRequest};
use crate::keyring::{KeyRing, KeyringError};
use crate::pkce::challenge;
use crate::sign_in::Token;

/// A new sign-in.
pub struct SignInStart {
    /// Returns with the browser; only its digest is stored.
    pub state: Token,
    verifier: Secret,
}

/// A stored verifier is invalid.
#[derive(Debug, thiserror::Error)]
#[error("a sealed verifier cannot be read")]
pub struct BadVerifier(#[source] Option<KeyringError>);

impl SignInStart {
    /// Creates two secrets of 256 bits.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn fresh(random: &dyn Random) -> Result<Self, RandomError> {
        let (state, verifier) = (Token::fresh(random)?, Token::fresh(random)?);
        Ok(Self { state, verifier: verifier.expose().into() })
    }

    /// The address to which the browser is sent, below the central host's `base`.
    #[must_use]
    pub fn address(&self, base: &str, alias: &str, redirect_uri: &str) -> String {
        let request = CodeRequest {
            alias: alias.to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            challenge: challenge(self.verifier.expose_secret()),
            state: self.state.expose().to_owned(),
        };
        format!("{}{AUTHORIZE}?{}", base.trim_end_matches('/'), request.query())
    }

    /// Seals the verifier for the state's row only.
    ///
    /// # Errors
    /// [`KeyringError::Random`] if the random source fails.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        ring.seal(&context(&self.state.digest()), self.verifier.expose_secret().as_bytes(), random)
    }
}

/// Opens the verifier that was sealed for the row with this state digest.
///
/// # Errors
/// [`BadVerifier`] for anything else.
pub fn open_verifier(ring: &KeyRing, state: &[u8], sealed: &[u8]) -> Result<Secret, BadVerifier> {
    let plain =
        ring.open(ring.active(), &context(state), sealed).map_err(|error| BadVerifier(Some(error)))?;
    let text = String::from_utf8(plain).map_err(|_| BadVerifier(None))?;
    Ok(text.as_str().into())
}

fn context(state: &[u8]) -> String {
    format!("callboard|app sign-in|{}", hex::encode(state))
}

impl CodeRequest {
    /// Encodes the request as a query.
    #[must_use]
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.members() {
            query.append_pair(name, value);
        }
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use kernel::SeededRandom;

    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new("app", [("app", &[7; 32])]).unwrap()
    }

    #[test]
    fn the_central_host_reads_the_app_request_without_a_verifier() {
        let start = SignInStart::fresh(&SeededRandom::new(1)).unwrap();
        let back = "https://notes.apps.example.org:8443/__service/auth/callback";
        for base in ["https://desk.example.org/below", "https://desk.example.org/below/"] {
            let address = start.address(base, "notes", back);
            let (path, query) = address.split_once('?').unwrap();
            assert_eq!(path, "https://desk.example.org/below/authorize");
            let members = form_urlencoded::parse(query.as_bytes()).into_owned();
            let request = CodeRequest::read(members).unwrap();
            assert_eq!((request.alias.as_str(), request.redirect_uri.as_str()), ("notes", back));
            assert_eq!(request.state, start.state.expose());
            assert_eq!(request.challenge, challenge(start.verifier.expose_secret()));
            assert!(!address.contains(start.verifier.expose_secret()));
        }
    }

    #[test]
    fn a_verifier_opens_only_in_its_row() {
        let (ring, random) = (ring(), SeededRandom::new(2));
        let start = SignInStart::fresh(&random).unwrap();
        let sealed = start.seal(&ring, &random).unwrap();
        let opened = open_verifier(&ring, &start.state.digest(), &sealed).unwrap();
        assert_eq!(opened.expose_secret(), start.verifier.expose_secret());
        assert_ne!(start.state.expose(), start.verifier.expose_secret());
        assert!(open_verifier(&ring, &Token::digest_of("other"), &sealed).is_err());
        let secret = start.verifier.expose_secret().as_bytes();
        assert!(!sealed.windows(secret.len()).any(|bytes| bytes == secret));
    }
}
