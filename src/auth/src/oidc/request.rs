//! The browser's request to the provider, and the secrets kept until the browser returns.

use kernel::{Random, RandomError, Secret};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use url::Url;

use super::Metadata;
use crate::keyring::{KeyRing, KeyringError};
use crate::pkce::{METHOD, challenge};
use crate::sign_in::Token;

/// The scopes requested from the provider.
const SCOPE: &str = "openid email profile";

/// A sign-in on its way to the provider.
pub struct Asked {
    /// Returns with the browser; only its digest is stored.
    pub state: Token,
    /// The other stored secrets.
    pub kept: Kept,
}

impl Asked {
    /// Creates a sign-in: three secrets of 256 bits.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn fresh(random: &dyn Random) -> Result<Self, RandomError> {
        let secret = || Token::fresh(random).map(|token| Secret::from(token.expose()));
        Ok(Self { state: Token::fresh(random)?, kept: Kept { nonce: secret()?, verifier: secret()? } })
    }

    /// The address to which the browser is sent.
    #[must_use]
    pub fn address(&self, metadata: &Metadata, client_id: &str, redirect_uri: &str) -> Url {
        let mut address = metadata.authorization_endpoint.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", SCOPE)
            .append_pair("state", self.state.expose())
            .append_pair("nonce", self.kept.nonce.expose_secret())
            .append_pair("code_challenge", &challenge(self.kept.verifier.expose_secret()))
            .append_pair("code_challenge_method", METHOD);
        address
    }
}

/// Secrets that verify a returning user. Only stored sealed.
pub struct Kept {
    /// Returned in the identity token.
    nonce: Secret,
    /// Proves to the provider that we made the request (PKCE).
    verifier: Secret,
}

#[derive(Serialize, Deserialize)]
struct Plain<'a> {
    nonce: &'a str,
    verifier: &'a str,
}

impl Kept {
    /// Seals the secrets for the row with this state digest only.
    ///
    /// # Errors
    /// [`KeyringError::Random`] if the random source fails.
    pub fn seal(&self, ring: &KeyRing, state: &[u8], random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        let plain = Plain { nonce: self.nonce.expose_secret(), verifier: self.verifier.expose_secret() };
        let plain = serde_json::to_vec(&plain).map_err(|error| KeyringError::Invalid(error.to_string()))?;
        ring.seal(&context(state), &plain, random)
    }

    /// Opens the secrets that were sealed for the row with this state digest.
    ///
    /// # Errors
    /// [`KeyringError::Tampered`] for anything else.
    pub fn open(ring: &KeyRing, state: &[u8], sealed: &[u8]) -> Result<Self, KeyringError> {
        let plain = ring.open(ring.active(), &context(state), sealed)?;
        let plain: Plain<'_> = serde_json::from_slice(&plain).map_err(|_| KeyringError::Tampered)?;
        Ok(Self { nonce: plain.nonce.into(), verifier: plain.verifier.into() })
    }

    /// Whether an identity token's nonce is ours; the comparison takes constant time.
    #[must_use]
    pub fn is_nonce(&self, shown: &str) -> bool {
        self.nonce.expose_secret().as_bytes().ct_eq(shown.as_bytes()).into()
    }

    /// The verifier for the provider's token endpoint.
    #[must_use]
    pub fn verifier(&self) -> &str {
        self.verifier.expose_secret()
    }
}

fn context(state: &[u8]) -> String {
    format!("callboard|oidc|{}", hex::encode(state))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use kernel::SeededRandom;

    use super::*;

    #[test]
    fn the_browser_url_has_the_provider_parameters_but_no_verifier() {
        let sign_in = Asked::fresh(&SeededRandom::new(1)).unwrap();
        let metadata = Metadata::parse(
            br#"{"issuer":"i","authorization_endpoint":"https://id.example/a?tenant=1","token_endpoint":"https://t.example","jwks_uri":"https://k.example"}"#,
            "i",
        );
        let address = sign_in.address(&metadata.unwrap(), "c&d", "https://desk.example/back");
        let query: HashMap<_, _> = address.query_pairs().into_owned().collect();
        let expected = [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "c&d"),
            ("redirect_uri", "https://desk.example/back"),
            ("scope", "openid email profile"),
            ("state", sign_in.state.expose()),
            ("nonce", sign_in.kept.nonce.expose_secret()),
            ("code_challenge", &challenge(sign_in.kept.verifier())),
            ("code_challenge_method", "S256"),
        ];
        assert_eq!(query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert!(!address.as_str().contains(sign_in.kept.verifier()));
        assert!(
            sign_in.kept.is_nonce(&query["nonce"])
                && !sign_in.kept.is_nonce("")
                && !sign_in.kept.is_nonce("x")
        );
    }

    #[test]
    fn a_stored_verifier_opens_only_in_its_row() {
        let (ring, random) = (KeyRing::new("oidc", [("oidc", &[7; 32])]).unwrap(), SeededRandom::new(1));
        let Asked { state, kept } = Asked::fresh(&random).unwrap();
        let sealed = kept.seal(&ring, &state.digest(), &random).unwrap();
        assert!(!sealed.windows(43).any(|bytes| bytes == kept.verifier().as_bytes()));
        assert_eq!(Kept::open(&ring, &state.digest(), &sealed).unwrap().verifier(), kept.verifier());
        assert!(Kept::open(&ring, &Token::digest_of("other"), &sealed).is_err());
    }
}
