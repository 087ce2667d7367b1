//! The mail that a sign-in sends.

use kernel::Random;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Code;
use crate::keyring::{KeyRing, KeyringError};

/// A mail's code and link. It is only ever stored sealed.
#[derive(Serialize, Deserialize)]
pub struct Letter {
    code: String,
    link: Option<String>,
    service: String,
}

impl Letter {
    /// For a service known under `service`. Without a link it holds the code alone.
    #[must_use]
    pub fn new(service: &str, code: &Code, link: Option<String>) -> Self {
        Self { code: code.expose().to_owned(), link, service: service.to_owned() }
    }

    /// Sealed for the row of this id, and for no other.
    ///
    /// # Errors
    /// [`KeyringError::Random`] when there are no random bytes.
    pub fn seal(&self, ring: &KeyRing, id: Uuid, random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        let plain = serde_json::to_vec(self).map_err(|error| KeyringError::Invalid(error.to_string()))?;
        ring.seal(&context(id), &plain, random)
    }

    /// What was sealed for the row of this id.
    ///
    /// # Errors
    /// [`KeyringError::Tampered`] for anything else.
    pub fn open(ring: &KeyRing, id: Uuid, sealed: &[u8]) -> Result<Self, KeyringError> {
        let plain = ring.open(ring.active(), &context(id), sealed)?;
        serde_json::from_slice(&plain).map_err(|_| KeyringError::Tampered)
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The link, where it has one.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// The subject. It holds no code: it is shown where others look.
    #[must_use]
    pub fn subject(&self) -> String {
        format!("Sign in to {}", self.service)
    }

    /// The text: the code alone on a line, and the link.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { code, link, service } = self;
        let (both, link) = match link {
            Some(link) => (
                "Each works once",
                format!("Or open this link in the browser where you asked:\n\n{link}\n\n"),
            ),
            None => ("It works once", String::new()),
        };
        format!(
            "Your code to sign in to {service}:\n\n{code}\n\n{link}{both}, within 10 minutes, in the browser where you asked.\n\
             If you did not ask, do nothing: nobody gets in without this mail.\n"
        )
    }
}

fn context(id: Uuid) -> String {
    format!("callboard|mail|{id}")
}

#[cfg(test)]
mod tests {
    use kernel::SeededRandom;

    use super::*;

    fn letter(link: Option<&str>) -> Letter {
        Letter::new("desk.example.org", &Code::read("012345").unwrap(), link.map(str::to_owned))
    }

    #[test]
    fn code_and_link_stand_alone_on_their_lines() {
        let text = letter(Some("https://desk.example.org/api/auth/magic/x")).text();
        assert!(text.lines().any(|line| line == "012345"));
        assert!(text.lines().any(|line| line == "https://desk.example.org/api/auth/magic/x"));
        assert!(text.lines().all(|line| line.len() < 300) && text.is_ascii());
        assert!(!letter(None).text().contains("link"));
        assert!(!letter(None).subject().contains("012345"));
    }

    #[test]
    fn a_sealed_letter_opens_only_in_its_row() {
        let (ring, random) = (KeyRing::new("mail", [("mail", &[7; 32])]).unwrap(), SeededRandom::new(1));
        let sealed = letter(None).seal(&ring, Uuid::from_u128(1), &random).unwrap();
        assert!(!sealed.windows(6).any(|bytes| bytes == b"012345"));
        assert_eq!(Letter::open(&ring, Uuid::from_u128(1), &sealed).unwrap().code(), "012345");
        assert!(Letter::open(&ring, Uuid::from_u128(2), &sealed).is_err());
    }
}
