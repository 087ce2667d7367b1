//! User sign-in, and the mail for it.

use kernel::Secret;
use url::Url;

use crate::reader::{RejectedValue, VariableReader};
use crate::{address, parse};

/// Accounts and the external identity provider.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// `SERVICE_SIGNUP`.
    pub signup: Signup,
    /// `SERVICE_OWNER_EMAIL`, its domain in lowercase.
    pub owner_email: Option<String>,
    /// `SERVICE_OIDC_*`.
    pub oidc: Option<Oidc>,
}

/// `SERVICE_SIGNUP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signup {
    /// A first sign-in creates an account without membership.
    Open,
    /// Only invited addresses.
    Members,
}

/// An external OpenID provider.
#[derive(Debug, Clone)]
pub struct Oidc {
    /// `SERVICE_OIDC_ISSUER`, as written: issuers are compared exactly.
    pub issuer: String,
    /// The same as a URL.
    pub issuer_url: Url,
    /// `SERVICE_OIDC_CLIENT_ID`.
    pub client_id: String,
    /// `SERVICE_OIDC_CLIENT_SECRET`.
    pub client_secret: Secret,
}

/// The mail server.
#[derive(Debug, Clone)]
pub struct Mail {
    /// `SERVICE_SMTP_URL`; `None`: mail goes to the log.
    pub smtp_url: Option<Secret>,
    /// `SERVICE_MAIL_FROM`: an address, or `Name <address>`.
    pub from: Option<String>,
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<SignIn, RejectedValue> {
    let kinds = [("open", Signup::Open), ("members", Signup::Members)];
    let signup = reader.value("SERVICE_SIGNUP", parse::choice(&kinds));
    let owner_email = reader.optional("SERVICE_OWNER_EMAIL", parse::mail_address);
    let oidc = read_oidc(reader);
    Ok(SignIn { signup: signup?, owner_email: owner_email?, oidc: oidc? })
}

fn read_oidc(reader: &mut VariableReader<'_>) -> Result<Option<Oidc>, RejectedValue> {
    let issuer = reader
        .optional("SERVICE_OIDC_ISSUER", |text| address::issuer(text).map(|url| (text.to_owned(), url)));
    let client_id = reader.optional("SERVICE_OIDC_CLIENT_ID", parse::line);
    let client_secret = reader.secret("SERVICE_OIDC_CLIENT_SECRET", parse::any_secret);
    match (issuer?, client_id?, client_secret?) {
        (Some((issuer, issuer_url)), Some(client_id), Some(client_secret)) => {
            Ok(Some(Oidc { issuer, issuer_url, client_id, client_secret }))
        }
        (None, None, None) => Ok(None),
        (issuer, client_id, client_secret) => {
            let given = [
                ("SERVICE_OIDC_ISSUER", issuer.is_some()),
                ("SERVICE_OIDC_CLIENT_ID", client_id.is_some()),
                ("SERVICE_OIDC_CLIENT_SECRET", client_secret.is_some()),
            ];
            for (name, _) in given.into_iter().filter(|(_, given)| !given) {
                reader.refuse(
                    name,
                    "is not set although another SERVICE_OIDC_ variable is",
                    "set issuer, client id and client secret, or none of them",
                );
            }
            Err(RejectedValue)
        }
    }
}

pub(crate) fn read_mail(reader: &mut VariableReader<'_>) -> Result<Mail, RejectedValue> {
    let smtp_url = reader.secret("SERVICE_SMTP_URL", |text| {
        address::secret_url(
            text,
            &["smtp", "smtps"],
            "write smtp://user:password@host:587 or smtps://host:465",
        )
    });
    let from = reader.optional("SERVICE_MAIL_FROM", parse::mailbox);
    Ok(Mail { smtp_url: smtp_url?, from: from? })
}
