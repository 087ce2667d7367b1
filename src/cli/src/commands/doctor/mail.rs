//! The mail server: whether it is reached and lets the service in. No mail is sent.

use config::Config;

use super::report::Finding;

const MAIL: &str = "mail server";

/// What came of asking it; `None`: there is none.
pub(super) async fn probe(config: &Config) -> Option<Result<(), String>> {
    server::try_mail_server(config).await
}

pub(super) fn judge(config: &Config, probed: Option<&Result<(), String>>) -> Finding {
    match probed {
        Some(Ok(())) => Finding::ok(MAIL, "it lets the service in"),
        Some(Err(error)) => Finding::problem(
            MAIL,
            format!("no mail can be sent: {error}"),
            "look at SERVICE_SMTP_URL: smtp://user:password@host:587, or smtps://host:465",
        ),
        None if !config.offers_mail_sign_in() => Finding::skipped(
            MAIL,
            "none is set; people sign in by the OpenID provider, and nobody is sent mail",
        ),
        None if config.http.is_loopback() => {
            Finding::skipped(MAIL, "none is set; codes that sign people in go to the log")
        }
        None => Finding::warning(
            MAIL,
            "none is set: only who reads the log can sign in",
            "set SERVICE_SMTP_URL and SERVICE_MAIL_FROM",
        ),
    }
}
