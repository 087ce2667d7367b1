//! Where mail goes: to the mail server that the operator named, or to the log.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::sign_in::Letter;
use engine::outbox::Mail;
use kernel::{Clock, Secret};
use lettre::address::Envelope;
use lettre::message::header::{ContentTransferEncoding, ContentType};
use lettre::message::{Body, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use secrecy::ExposeSecret;
use url::{Host, Url};
use uuid::Uuid;

/// Timeout of the connection to the mail server. The sender bounds the rest.
const PATIENCE: Duration = Duration::from_secs(15);
/// Answers that refuse the service, not the mail: the operator may correct that meanwhile.
const NOT_LET_IN: [u16; 4] = [530, 534, 535, 538];
/// It is closing the connection, whatever was asked.
const CLOSING: u16 = 421;

/// Bytes of the longest line that may be sent as it stands (RFC 5322).
const LINE: usize = 998;

/// Where mail goes. Cheap to clone; each mail has a connection of its own.
#[derive(Clone)]
pub struct Delivery(Arc<Kind>);

enum Kind {
    Smtp { server: Box<AsyncSmtpTransport<Tokio1Executor>>, from: Mailbox },
    Log,
    Nowhere,
}

/// The configured mail server or sender cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// `SERVICE_SMTP_URL`. Its text is left out: it may hold a password.
    #[error("SERVICE_SMTP_URL cannot be used: write smtp://user:password@host:587 or smtps://host:465")]
    Server,
    /// `SERVICE_MAIL_FROM`.
    #[error("SERVICE_MAIL_FROM cannot be used as a sender: {0}")]
    From(String),
}

/// A mail was not sent.
pub(crate) struct Failure {
    /// For the log: no address and no secret.
    pub(crate) reason: String,
    /// It would be refused again.
    pub(crate) permanent: bool,
    /// Another mail, or another recipient, would fare no better now.
    pub(crate) is_of_server: bool,
    /// The server may have taken the mail: it was not heard to refuse it.
    pub(crate) may_have_it: bool,
}

impl Failure {
    /// The mail server did not take it in time.
    pub(crate) fn too_slow() -> Self {
        Self {
            reason: "the mail server takes too long".to_owned(),
            permanent: false,
            is_of_server: true,
            may_have_it: true,
        }
    }

    fn permanent(reason: &str) -> Self {
        Self { reason: reason.to_owned(), permanent: true, is_of_server: false, may_have_it: false }
    }

    fn of_server(self) -> Self {
        Self { is_of_server: true, ..self }
    }
}

/// The address with what it leaves unsaid of TLS.
fn with_tls(mut url: Url) -> Url {
    if url.scheme() == "smtp" && url.query().is_none() {
        let plain = url.password().is_none() || is_loopback(&url);
        url.set_query(Some(if plain { "tls=opportunistic" } else { "tls=required" }));
    }
    url
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        // Other schemes than those of the web have their addresses as names.
        Some(Host::Domain(name)) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl Delivery {
    /// Over the mail server at an address such as `smtp://user:password@host:587`: a password goes over STARTTLS only,
    /// unless the host is loopback or the address says `?tls=opportunistic`; without one STARTTLS is used where it is
    /// offered. `smtps://` speaks TLS from the first byte.
    ///
    /// # Errors
    /// [`DeliveryError`] names the variable to change.
    pub fn smtp(url: &Secret, from: &str) -> Result<Self, DeliveryError> {
        let url = with_tls(Url::parse(url.expose_secret()).map_err(|_| DeliveryError::Server)?);
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str());
        let builder = builder.map_err(|_| DeliveryError::Server)?;
        let server = Box::new(builder.timeout(Some(PATIENCE)).build());
        let from = from.parse().map_err(|error| DeliveryError::From(format!("{error}")))?;
        Ok(Self(Arc::new(Kind::Smtp { server, from })))
    }

    /// Into the log, code and link included: for development, where there is no mail server.
    #[must_use]
    pub fn log() -> Self {
        Self(Arc::new(Kind::Log))
    }

    /// Nowhere: sign-in by email is disabled, and queued mails are dropped.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(Arc::new(Kind::Nowhere))
    }

    /// Whether the mail server lets the service in.
    ///
    /// # Errors
    /// In a sentence without a secret, that it does not.
    pub async fn try_server(&self, clock: &dyn Clock) -> Result<(), String> {
        let Kind::Smtp { server, .. } = &*self.0 else { return Ok(()) };
        // The library bounds the connection alone: who speaks to a TLS port without TLS would wait for ever.
        match kernel::timeout(clock, PATIENCE, server.test_connection()).await {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) | None => Err("the mail server does not answer".to_owned()),
            Some(Err(error)) => Err(failure(&error).reason),
        }
    }

    pub(super) async fn send(&self, id: Uuid, recipient: &str, letter: &Letter) -> Result<(), Failure> {
        match &*self.0 {
            Kind::Nowhere => {
                tracing::info!(%id, "SERVICE_SMTP_URL is not set, so a mail is dropped");
                Ok(())
            }
            Kind::Log => {
                tracing::warn!(
                    "SERVICE_SMTP_URL is not set, so this mail is only here: {recipient} {}",
                    letter.in_short()
                );
                Ok(())
            }
            Kind::Smtp { server, from } => {
                let message = message(id, from.clone(), recipient, letter)?;
                server.send(message).await.map(drop).map_err(|error| failure(&error))
            }
        }
    }
}

impl Delivery {
    /// Gives a mail that a workflow has written to some of its recipients. What it says is never in the log.
    pub(crate) async fn send_mail(&self, id: Uuid, mail: &Mail, recipients: &[&str]) -> Result<(), Failure> {
        match &*self.0 {
            Kind::Nowhere | Kind::Log => {
                Err(Failure::permanent("SERVICE_SMTP_URL is not set, so no mail is sent").of_server())
            }
            Kind::Smtp { server, from } => {
                let message = written(id, from.clone(), mail)?;
                let to = recipients.iter().map(|one| address(one)).collect::<Result<_, _>>()?;
                let envelope = Envelope::new(message.envelope().from().cloned(), to);
                let envelope = envelope.map_err(|_| Failure::permanent("the mail has no recipient"))?;
                let sent = server.send_raw(&envelope, &message.formatted()).await;
                let is_ascii = recipients.iter().all(|one| one.is_ascii());
                // The library's own no may be to letters that the server does not know.
                sent.map(drop).map_err(|error| match failure(&error) {
                    failure if error.is_client() && !is_ascii => Failure { is_of_server: false, ..failure },
                    failure => failure,
                })
            }
        }
    }
}

/// A workflow's mail. Every address is one address, and every header is encoded by the library.
fn written(id: Uuid, from: Mailbox, mail: &Mail) -> Result<Message, Failure> {
    let parsed = |text: &String| address(text).map(|address| Mailbox::new(None, address));
    let name = format!("<{id}@{}>", from.email.domain());
    let mut message = Message::builder().message_id(Some(name)).from(from).subject(&mail.subject);
    for to in &mail.to {
        message = message.to(parsed(to)?);
    }
    for cc in &mail.cc {
        message = message.cc(parsed(cc)?);
    }
    if let Some(reply_to) = &mail.reply_to {
        message = message.reply_to(parsed(reply_to)?);
    }
    let part = |kind: ContentType, text: &str| {
        SinglePart::builder().header(kind).body(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    };
    let plain = part(ContentType::TEXT_PLAIN, &mail.text);
    let message = match &mail.html {
        Some(html) => {
            let both = MultiPart::alternative().singlepart(plain);
            message.multipart(both.singlepart(part(ContentType::TEXT_HTML, html)))
        }
        None => message.singlepart(plain),
    };
    message.map_err(|_| Failure::permanent("the mail cannot be put together"))
}

fn address(text: &str) -> Result<Address, Failure> {
    text.parse().map_err(|_| Failure::permanent("an address is none that mail is sent to"))
}

fn message(id: Uuid, from: Mailbox, recipient: &str, letter: &Letter) -> Result<Message, Failure> {
    let to = address(recipient)?;
    let text = letter.text().replace('\n', "\r\n");
    let body = if text.is_ascii() && text.lines().all(|line| line.len() <= LINE) {
        // As it stands: quoted-printable would break the link's line, and not everything that reads mail mends it.
        Body::dangerous_pre_encoded(text.into_bytes(), ContentTransferEncoding::SevenBit)
    } else {
        Body::new(text)
    };
    // One that is sent again has the same id, by which mail programs know it.
    let name = format!("<{id}@{}>", from.email.domain());
    Message::builder()
        .message_id(Some(name))
        .from(from)
        .to(Mailbox::new(None, to))
        .subject(letter.subject())
        .singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(body))
        .map_err(|_| Failure::permanent("the mail cannot be put together"))
}

/// What a server says may name the address, so only its number is told.
fn failure(error: &smtp::Error) -> Failure {
    let Some(code) = error.status().map(u16::from) else {
        // Its own refusals come before anything is sent.
        let may_have_it = !error.is_client();
        return Failure { reason: format!("{error}"), permanent: false, is_of_server: true, may_have_it };
    };
    let is_of_server = code == CLOSING || NOT_LET_IN.contains(&code);
    let permanent = error.is_permanent() && !is_of_server;
    Failure {
        reason: format!("the mail server answered {code}"),
        permanent,
        is_of_server,
        may_have_it: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_over_tls_unless_somebody_says_otherwise() {
        let query = |url: &str| with_tls(Url::parse(url).unwrap()).query().unwrap_or_default().to_owned();
        for (url, expected) in [
            ("smtp://user:password@mail.example.org:587", "tls=required"),
            ("smtp://user:password@192.0.2.1", "tls=required"),
            ("smtp://user:password@127.0.0.1.example.org", "tls=required"),
            ("smtp://user:password@localhost:1025", "tls=opportunistic"),
            ("smtp://user:password@127.0.0.1:1025", "tls=opportunistic"),
            ("smtp://user:password@[::1]:1025", "tls=opportunistic"),
            ("smtp://relay.example.org", "tls=opportunistic"),
            ("smtp://user:password@mail.example.org?tls=opportunistic", "tls=opportunistic"),
            ("smtps://user:password@mail.example.org", ""),
        ] {
            assert_eq!(query(url), expected, "{url}");
        }
    }
}
