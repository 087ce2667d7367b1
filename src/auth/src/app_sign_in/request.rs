//! A request for an authorization code.

use crate::pkce::{METHOD, is_challenge};
use crate::sign_in::Token;

const RESPONSE_TYPE: &str = "response_type";
const CLIENT_ID: &str = "client_id";
const REDIRECT_URI: &str = "redirect_uri";
const CODE_CHALLENGE: &str = "code_challenge";
const CODE_CHALLENGE_METHOD: &str = "code_challenge_method";
const STATE: &str = "state";

/// The request's parameters, each allowed once.
pub const NAMES: [&str; 6] =
    [RESPONSE_TYPE, CLIENT_ID, REDIRECT_URI, CODE_CHALLENGE, CODE_CHALLENGE_METHOD, STATE];

/// Maximum app host address bytes.
const LONGEST_ADDRESS: usize = 512;

/// An app's code request. The caller still compares the app and the address with the existing ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRequest {
    /// The app's alias.
    pub alias: String,
    /// The address to which the browser returns.
    pub redirect_uri: String,
    /// The verifier's digest.
    pub challenge: String,
    /// The value by which the app recognises the browser.
    pub state: String,
}

/// A request problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestProblem {
    /// A parameter is missing or invalid.
    #[error("`{0}` is missing or not valid")]
    Invalid(&'static str),
    /// A parameter occurs twice.
    #[error("`{0}` is given twice")]
    Repeated(&'static str),
    /// A parameter is unknown.
    #[error("the request has an unknown parameter")]
    Unknown,
}

impl CodeRequest {
    /// Parses the parameters of a query, a form or an object.
    ///
    /// # Errors
    /// [`RequestProblem`], the first one in [`NAMES`] order.
    pub fn read(members: impl IntoIterator<Item = (String, String)>) -> Result<Self, RequestProblem> {
        let mut found: [Option<String>; NAMES.len()] = Default::default();
        for (name, value) in members {
            let mut places = NAMES.iter().zip(&mut found);
            let (known, place) = places.find(|(known, _)| **known == name).ok_or(RequestProblem::Unknown)?;
            if place.replace(value).is_some() {
                return Err(RequestProblem::Repeated(known));
            }
        }
        let [kind, alias, redirect_uri, challenge, method, state] = found;
        is(kind, RESPONSE_TYPE, |kind| kind == "code")?;
        let alias = is(alias, CLIENT_ID, is_label)?;
        let redirect_uri = is(redirect_uri, REDIRECT_URI, |text| text.len() <= LONGEST_ADDRESS)?;
        let challenge = is(challenge, CODE_CHALLENGE, is_challenge)?;
        is(method, CODE_CHALLENGE_METHOD, |method| method == METHOD)?;
        let state = is(state, STATE, Token::has_form)?;
        Ok(Self { alias, redirect_uri, challenge, state })
    }

    /// The parameters, as [`CodeRequest::read`] parses them.
    #[must_use]
    pub fn members(&self) -> [(&'static str, &str); NAMES.len()] {
        [
            (RESPONSE_TYPE, "code"),
            (CLIENT_ID, &self.alias),
            (REDIRECT_URI, &self.redirect_uri),
            (CODE_CHALLENGE, &self.challenge),
            (CODE_CHALLENGE_METHOD, METHOD),
            (STATE, &self.state),
        ]
    }
}

/// An app is found by its alias only, never by its id.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(plain) && uuid::Uuid::parse_str(text).is_err()
}

fn is(
    value: Option<String>,
    name: &'static str,
    good: impl FnOnce(&str) -> bool,
) -> Result<String, RequestProblem> {
    value.filter(|value| good(value)).ok_or(RequestProblem::Invalid(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE_OF_TEST: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn good() -> Vec<(String, String)> {
        let request = CodeRequest {
            alias: "notes".into(),
            redirect_uri: "https://notes.apps.example.org/__service/auth/callback".into(),
            challenge: CHALLENGE.into(),
            state: STATE_OF_TEST.into(),
        };
        request.members().map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    #[test]
    fn a_request_has_each_member_once_and_no_other() {
        assert!(CodeRequest::read(good()).is_ok());
        for (at, name) in NAMES.iter().enumerate() {
            let mut missing = good();
            missing.remove(at);
            assert_eq!(CodeRequest::read(missing), Err(RequestProblem::Invalid(name)));
            let mut twice = good();
            twice.push(twice[at].clone());
            assert_eq!(CodeRequest::read(twice), Err(RequestProblem::Repeated(name)));
        }
        let mut more = good();
        more.push(("scope".into(), "openid".into()));
        assert_eq!(CodeRequest::read(more), Err(RequestProblem::Unknown));
    }

    #[test]
    fn values_are_exact() {
        for (name, bad) in [
            (RESPONSE_TYPE, "token"),
            (RESPONSE_TYPE, "code id_token"),
            (CLIENT_ID, ""),
            (CLIENT_ID, "Notes"),
            (CLIENT_ID, "notes.evil"),
            (CLIENT_ID, "0198c2e7-0000-7000-8000-000000000000"),
            (CODE_CHALLENGE, "plain"),
            (CODE_CHALLENGE_METHOD, "plain"),
            (CODE_CHALLENGE_METHOD, "s256"),
            (CODE_CHALLENGE_METHOD, ""),
            (STATE, "short"),
            (STATE, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjX\n"),
        ] {
            let mut members = good();
            members.iter_mut().filter(|(known, _)| known == name).for_each(|(_, value)| *value = bad.into());
            assert_eq!(CodeRequest::read(members), Err(RequestProblem::Invalid(name)), "{name}={bad}");
        }
    }
}
