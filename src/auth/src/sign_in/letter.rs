//! The service's mail: sign-in codes and links, and invitations.

use kernel::Random;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Code;
use crate::keyring::{KeyRing, KeyringError};
use crate::role::Role;

/// A mail. Only stored sealed.
#[derive(Serialize, Deserialize)]
pub struct Letter {
    /// The service's name for users.
    service: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Content {
    Code { code: String, link: Option<String> },
    Link { link: String },
    Invitation { workspace: String, role: String, login: Option<String> },
}

impl Letter {
    /// A sign-in code for the service named `service`. Without a link, the mail contains only the code.
    #[must_use]
    pub fn new(service: &str, code: &Code, link: Option<String>) -> Self {
        let content = Content::Code { code: code.expose().to_owned(), link };
        Self { service: service.to_owned(), content }
    }

    /// A sign-in link without a code.
    #[must_use]
    pub fn link(service: &str, link: String) -> Self {
        Self { service: service.to_owned(), content: Content::Link { link } }
    }

    /// An invitation to the named workspace. It contains no secret: a user who accepts it proves access to this mailbox
    /// by signing in at `login`.
    #[must_use]
    pub fn invitation(service: &str, workspace: &str, role: Role, login: Option<String>) -> Self {
        let (workspace, role) = (workspace.to_owned(), role.as_str().to_owned());
        Self { service: service.to_owned(), content: Content::Invitation { workspace, role, login } }
    }

    /// Seals the mail for the row with this id only.
    ///
    /// # Errors
    /// [`KeyringError::Random`] if the random source fails.
    pub fn seal(&self, ring: &KeyRing, id: Uuid, random: &dyn Random) -> Result<Vec<u8>, KeyringError> {
        let plain = serde_json::to_vec(self).map_err(|error| KeyringError::Invalid(error.to_string()))?;
        ring.seal(&context(id), &plain, random)
    }

    /// Opens the mail that was sealed for the row with this id.
    ///
    /// # Errors
    /// [`KeyringError::Tampered`] for anything else.
    pub fn open(ring: &KeyRing, id: Uuid, sealed: &[u8]) -> Result<Self, KeyringError> {
        let plain = ring.open(ring.active(), &context(id), sealed)?;
        serde_json::from_slice(&plain).map_err(|_| KeyringError::Tampered)
    }

    /// The subject. It contains no code, because others may see it.
    #[must_use]
    pub fn subject(&self) -> String {
        let service = &self.service;
        match &self.content {
            Content::Code { .. } | Content::Link { .. } => format!("Sign in to {service}"),
            Content::Invitation { workspace, .. } => format!("Invitation to \"{workspace}\" on {service}"),
        }
    }

    /// The text: a code on a separate line, a link on a separate line.
    #[must_use]
    pub fn text(&self) -> String {
        let service = &self.service;
        match &self.content {
            Content::Code { code, link } => code_text(service, code, link.as_deref()),
            Content::Link { link } => link_text(service, link),
            Content::Invitation { workspace, role, login } => {
                invitation_text(service, workspace, role, login.as_deref())
            }
        }
    }

    /// The whole mail in one line, for the log that replaces mail delivery.
    #[must_use]
    pub fn in_short(&self) -> String {
        match &self.content {
            Content::Code { code, link } => {
                let link = link.as_deref().map(|link| format!(" or the link {link}")).unwrap_or_default();
                format!("signs in with the code {code}{link}")
            }
            Content::Link { link } => format!("signs in with the link {link}"),
            Content::Invitation { workspace, role, login } => {
                let login = login.as_deref().map(|login| format!(", and signs in at {login}"));
                let login = login.unwrap_or_default();
                format!("is invited to the workspace {workspace:?} as {role}{login}")
            }
        }
    }
}

fn code_text(service: &str, code: &str, link: Option<&str>) -> String {
    let (both, link) = match link {
        Some(link) => (
            "Each works once",
            format!("Or open this link in the browser where you requested it:\n\n{link}\n\n"),
        ),
        None => ("It works once", String::new()),
    };
    format!(
        "Your code to sign in to {service}:\n\n{code}\n\n{link}{both}, within 10 minutes, in the browser where you requested it.\n\
         If you did not request it, ignore this email: without it, sign-in is not possible.\n"
    )
}

fn link_text(service: &str, link: &str) -> String {
    format!(
        "Many codes were requested for this address today, so this mail has none. To sign in to {service}, open this link \
         in the browser where you requested it:\n\n{link}\n\nIt works once, within 10 minutes.\nIf you did not request \
         it, ignore this email: the link does not work in another browser.\n"
    )
}

fn invitation_text(service: &str, workspace: &str, role: &str, login: Option<&str>) -> String {
    let place = match login {
        Some(login) => format!("with this email address, within 7 days:\n\n{login}\n"),
        None => format!("to {service} with this email address, within 7 days.\n"),
    };
    format!(
        "You are invited to the workspace \"{workspace}\" on {service}, as {role}.\n\nTo accept, sign in {place}\n\
         If you did not expect this invitation, ignore this email.\n"
    )
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
    fn code_and_link_have_separate_lines() {
        let text = letter(Some("https://desk.example.org/api/auth/magic/x")).text();
        assert!(text.lines().any(|line| line == "012345"));
        assert!(text.lines().any(|line| line == "https://desk.example.org/api/auth/magic/x"));
        assert!(text.lines().all(|line| line.len() < 300) && text.is_ascii());
        assert!(!letter(None).text().contains("link"));
        let link = Letter::link("desk.example.org", "https://desk.example.org/x".to_owned());
        assert!(link.text().lines().any(|line| line == "https://desk.example.org/x"));
        assert_eq!(link.subject(), letter(None).subject());
        assert!(!letter(None).subject().contains("012345"));
    }

    #[test]
    fn a_sealed_letter_opens_only_in_its_row() {
        let (ring, random) = (KeyRing::new("mail", [("mail", &[7; 32])]).unwrap(), SeededRandom::new(1));
        let sealed = letter(None).seal(&ring, Uuid::from_u128(1), &random).unwrap();
        assert!(!sealed.windows(6).any(|bytes| bytes == b"012345"));
        let opened = Letter::open(&ring, Uuid::from_u128(1), &sealed).unwrap();
        assert_eq!(opened.in_short(), "signs in with the code 012345");
        assert!(Letter::open(&ring, Uuid::from_u128(2), &sealed).is_err());
    }

    #[test]
    fn an_invitation_has_the_login_url_and_no_secret() {
        let login = "https://desk.example.org/login".to_owned();
        let letter = Letter::invitation("desk.example.org", "Support", Role::Editor, Some(login.clone()));
        assert_eq!(letter.subject(), "Invitation to \"Support\" on desk.example.org");
        assert!(letter.text().lines().any(|line| line == login));
        assert!(letter.text().contains("as editor"));
        assert!(letter.in_short().contains("\"Support\" as editor"));
        let (ring, random) = (KeyRing::new("mail", [("mail", &[7; 32])]).unwrap(), SeededRandom::new(1));
        let sealed = letter.seal(&ring, Uuid::from_u128(1), &random).unwrap();
        assert_eq!(Letter::open(&ring, Uuid::from_u128(1), &sealed).unwrap().text(), letter.text());
    }
}
