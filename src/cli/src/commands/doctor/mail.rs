//! The mail server: checks that it is reachable and accepts the service's login. Sends no mail.

use config::Config;

use super::report::Finding;

const MAIL: &str = "mail server";

/// Connects to the mail server; `None` if none is configured.
pub(super) async fn probe(config: &Config) -> Option<Result<(), String>> {
    server::try_mail_server(config).await
}

pub(super) fn judge(config: &Config, probed: Option<&Result<(), String>>) -> Finding {
    match probed {
        Some(Ok(())) => Finding::ok(MAIL, "it accepts the service's login"),
        Some(Err(error)) => Finding::problem(
            MAIL,
            format!("mail cannot be sent: {error}"),
            "check SERVICE_SMTP_URL: smtp://user:password@host:587, or smtps://host:465",
        ),
        None if !config.offers_mail_sign_in() => Finding::skipped(
            MAIL,
            "not configured; people sign in with the OpenID provider, and no mail is sent",
        ),
        None if config.http.is_loopback() => {
            Finding::skipped(MAIL, "not configured; sign-in codes are written to the log")
        }
        None => Finding::warning(
            MAIL,
            "not configured: only people who can read the log can sign in",
            "set SERVICE_SMTP_URL and SERVICE_MAIL_FROM",
        ),
    }
}
