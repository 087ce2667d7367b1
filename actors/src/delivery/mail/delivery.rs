//! Sends mail: to the operator's mail server, or to the log.

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

/// Timeout for connecting to the mail server. The sender bounds the rest.
const PATIENCE: Duration = Duration::from_secs(15);
/// Replies that reject the service, not the mail: the operator may correct that meanwhile.
const NOT_LET_IN: [u16; 4] = [530, 534, 535, 538];
/// The server is closing the connection, whatever the request.
const CLOSING: u16 = 421;

/// Maximum bytes per line without encoding (RFC 5322).
const LINE: usize = 998;

/// The mail transport. Cheap to clone; each mail uses a separate connection.
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
    /// `SERVICE_SMTP_URL` is invalid. Its value is omitted because it may contain a password.
    #[error("SERVICE_SMTP_URL cannot be used: write smtp://user:password@host:587 or smtps://host:465")]
    Server,
    /// `SERVICE_MAIL_FROM` is invalid.
    #[error("SERVICE_MAIL_FROM cannot be used as a sender: {0}")]
    From(String),
}

/// A mail was not sent.
pub(crate) struct MailFailure {
    /// For the log: without addresses and secrets.
    pub(crate) reason: String,
    /// Whether a retry would be refused again.
    pub(crate) permanent: bool,
    /// Whether the server is at fault, so other mails and recipients would fail too.
    pub(crate) is_of_server: bool,
    /// Whether the server may have accepted the mail: no refusal was received.
    pub(crate) may_have_it: bool,
}

impl MailFailure {
    /// The mail server did not accept the mail in time.
    pub(crate) fn too_slow() -> Self {
        Self {
            reason: "the mail server did not respond in time".to_owned(),
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

/// Adds the default TLS mode to the URL.
fn with_tls(mut url: Url) -> Url {
    if url.scheme() == "smtp" && url.query().is_none() {
        let plain = url.password().is_none() || is_loopback(&url);
        url.set_query(Some(if plain { "tls=opportunistic" } else { "tls=required" }));
    }
    url
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        // In non-web schemes, addresses are parsed as names.
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
    /// Sends over the mail server at a URL such as `smtp://user:password@host:587`. A password goes over STARTTLS only,
    /// unless the host is loopback or the URL says `?tls=opportunistic`; without a password, STARTTLS is used if
    /// offered. `smtps://` uses TLS from the first byte.
    ///
    /// # Errors
    /// [`DeliveryError`] with the variable to change.
    pub fn smtp(url: &Secret, from: &str) -> Result<Self, DeliveryError> {
        let url = with_tls(Url::parse(url.expose_secret()).map_err(|_| DeliveryError::Server)?);
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str());
        let builder = builder.map_err(|_| DeliveryError::Server)?;
        let server = Box::new(builder.timeout(Some(PATIENCE)).build());
        let from = from.parse().map_err(|error| DeliveryError::From(format!("{error}")))?;
        Ok(Self(Arc::new(Kind::Smtp { server, from })))
    }

    /// Writes mail to the log, including code and link: for development without a mail server.
    #[must_use]
    pub fn log() -> Self {
        Self(Arc::new(Kind::Log))
    }

    /// Drops queued mails: sign-in by email is disabled.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(Arc::new(Kind::Nowhere))
    }

    /// Checks whether the mail server accepts the service's login.
    ///
    /// # Errors
    /// A sentence without secrets that describes the failure.
    pub async fn try_server(&self, clock: &dyn Clock) -> Result<(), String> {
        let Kind::Smtp { server, .. } = &*self.0 else { return Ok(()) };
        // The library bounds only the connection: without this timeout, plain text to a TLS port would wait forever.
        match kernel::timeout(clock, PATIENCE, server.test_connection()).await {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) | None => Err("the mail server does not answer".to_owned()),
            Some(Err(error)) => Err(failure(&error).reason),
        }
    }

    pub(super) async fn send(&self, id: Uuid, recipient: &str, letter: &Letter) -> Result<(), MailFailure> {
        match &*self.0 {
            Kind::Nowhere => {
                tracing::info!(%id, "mail dropped: SERVICE_SMTP_URL is not set");
                Ok(())
            }
            Kind::Log => {
                tracing::warn!(
                    "mail logged instead of sent, because SERVICE_SMTP_URL is not set: {recipient} {}",
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
    /// Sends a workflow's mail to some of its recipients. Its content never reaches the log.
    pub(crate) async fn send_mail(
        &self,
        id: Uuid,
        mail: &Mail,
        recipients: &[&str],
    ) -> Result<(), MailFailure> {
        match &*self.0 {
            Kind::Nowhere | Kind::Log => {
                Err(MailFailure::permanent("SERVICE_SMTP_URL is not set, so no mail is sent").of_server())
            }
            Kind::Smtp { server, from } => {
                let message = written(id, from.clone(), mail)?;
                let to = recipients.iter().map(|one| address(one)).collect::<Result<_, _>>()?;
                let envelope = Envelope::new(message.envelope().from().cloned(), to);
                let envelope = envelope.map_err(|_| MailFailure::permanent("the mail has no recipient"))?;
                let sent = server.send_raw(&envelope, &message.formatted()).await;
                let is_ascii = recipients.iter().all(|one| one.is_ascii());
                // The library itself may reject characters that the server does not support.
                sent.map(drop).map_err(|error| match failure(&error) {
                    failure if error.is_client() && !is_ascii => {
                        MailFailure { is_of_server: false, ..failure }
                    }
                    failure => failure,
                })
            }
        }
    }
}

/// Builds a workflow's mail. Each string is parsed as a single address, and the library encodes every header.
fn written(id: Uuid, from: Mailbox, mail: &Mail) -> Result<Message, MailFailure> {
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
    message.map_err(|_| MailFailure::permanent("the mail cannot be built"))
}

fn address(text: &str) -> Result<Address, MailFailure> {
    text.parse().map_err(|_| MailFailure::permanent("a recipient address is not valid"))
}

fn message(id: Uuid, from: Mailbox, recipient: &str, letter: &Letter) -> Result<Message, MailFailure> {
    let to = address(recipient)?;
    let text = letter.text().replace('\n', "\r\n");
    let body = if text.is_ascii() && text.lines().all(|line| line.len() <= LINE) {
        // Unencoded: quoted-printable would break the link's line, and some mail readers do not restore it.
        Body::dangerous_pre_encoded(text.into_bytes(), ContentTransferEncoding::SevenBit)
    } else {
        Body::new(text)
    };
    // A mail that is sent again has the same id, by which mail programs recognize it.
    let name = format!("<{id}@{}>", from.email.domain());
    Message::builder()
        .message_id(Some(name))
        .from(from)
        .to(Mailbox::new(None, to))
        .subject(letter.subject())
        .singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(body))
        .map_err(|_| MailFailure::permanent("the mail cannot be built"))
}

/// Reports only the reply's number, because its text may contain the address.
fn failure(error: &smtp::Error) -> MailFailure {
    let Some(code) = error.status().map(u16::from) else {
        // The library's own refusals come before anything is sent.
        let may_have_it = !error.is_client();
        return MailFailure { reason: format!("{error}"), permanent: false, is_of_server: true, may_have_it };
    };
    let is_of_server = code == CLOSING || NOT_LET_IN.contains(&code);
    let permanent = error.is_permanent() && !is_of_server;
    MailFailure {
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
    fn a_password_requires_tls_except_on_loopback_or_when_configured() {
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
