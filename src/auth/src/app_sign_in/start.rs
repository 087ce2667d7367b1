//! What a browser takes to the central host, and what is kept until it returns.

use kernel::{Random, RandomError, Secret};
use secrecy::ExposeSecret;
use url::form_urlencoded;

use super::{AUTHORIZE, CodeRequest};
use crate::keyring::{KeyRing, KeyringError};
use crate::pkce::challenge;
use crate::sign_in::Token;

/// A sign-in that begins.
pub struct SignInStart {
    /// Comes back with the browser; its digest is kept.
    pub state: Token,
    verifier: Secret,
}

/// A stored verifier is not one.
#[derive(Debug, thiserror::Error)]
#[error("a sealed verifier cannot be read")]
pub struct BadVerifier(#[source] Option<KeyringError>);

impl SignInStart {
    /// Two new secrets of 256 bits.
    ///
    /// # Errors
    /// [`RandomError`] if there are no random bytes.
    pub fn fresh(random: &dyn Random) -> Result<Self, RandomError> {
        let (state, verifier) = (Token::fresh(random)?, Token::fresh(random)?);
        Ok(Self { state, verifier: verifier.expose().into() })
    }

    /// Where the browser is sent: to the central host, whose base this is.
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

    /// The verifier, sealed for the row of the state, and for no other.
    ///
    /// # Errors
    /// [`KeyringError::Random`] if there are no random bytes.
    pub fn seal(&self, ring: &KeyRing, random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        ring.seal(&context(&self.state.digest()), self.verifier.expose_secret().as_bytes(), random)
    }
}

/// The verifier that was sealed for the row with this digest of a state.
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
    /// As a query.
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
    fn the_central_host_reads_what_the_app_sends_and_sees_no_verifier() {
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
