//! `callboard trigger webhook`.

use clap::{Args, ValueEnum};
use secrecy::ExposeSecret;
use wire::{SetWebhook, SignatureScheme, WebhookRate};

use super::show;
use crate::commands::credential::From;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;

#[derive(Debug, Args)]
#[command(after_help = "Calls are signed with a secret from standard input or a prompt:\n\
                  printf %s \"$SECRET\" | callboard trigger webhook orders --sender github")]
pub(crate) struct Webhook {
    /// Handle or id of the workflow.
    workflow: String,
    /// The sender, which determines how calls are signed.
    #[arg(long, value_enum, default_value_t = Sender::Plain)]
    sender: Sender,
    /// Require the secret itself in this header instead of a signature.
    #[arg(long, value_name = "NAME", conflicts_with = "sender")]
    secret_header: Option<String>,
    /// Accept calls without a secret or signature.
    #[arg(long, conflicts_with_all = ["sender", "secret_header", "from_env"])]
    anybody: bool,
    /// A method that starts a run, such as PUT; may be given several times (default: POST).
    #[arg(long = "method", value_name = "VERB")]
    methods: Vec<String>,
    /// The header with the sender's delivery id; a repeated delivery starts no second run.
    #[arg(long, value_name = "NAME")]
    delivery_header: Option<String>,
    /// Maximum number of calls per seconds, such as 60/60.
    #[arg(long, value_name = "CALLS/SECONDS", value_parser = rate)]
    rate: Option<WebhookRate>,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sender {
    /// As the node webhook_send: X-Signature signs the time in X-Timestamp, a dot and the body.
    Plain,
    /// X-Hub-Signature-256 signs the body, X-GitHub-Delivery is the delivery id.
    Github,
    /// X-Slack-Signature signs the time and the body.
    Slack,
}

impl Webhook {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let webhook = self.wanted()?;
        let workflow = session.received(session.client.workflow(&self.workflow).await)?.id;
        let made = session.received(session.client.set_webhook(&workflow, &webhook).await)?;
        session.output.print(&made, || show::webhook(&made, &show::address(session, &workflow)))
    }

    fn wanted(&self) -> Result<SetWebhook, CommandError> {
        let header = |name: &str| Some(name.to_owned());
        let mut webhook = SetWebhook {
            allowed_methods: self.methods.clone(),
            delivery_id_header: self.delivery_header.clone(),
            rate_limit: self.rate,
            ..SetWebhook::default()
        };
        if self.anybody {
            webhook.allow_unsigned = Some(true);
            return Ok(webhook);
        }
        let secret = Some(self.from.read()?.expose_secret().to_owned());
        if self.secret_header.is_some() {
            return Ok(SetWebhook {
                shared_secret_header: self.secret_header.clone(),
                shared_secret: secret,
                ..webhook
            });
        }
        webhook.hmac_secret = secret;
        match self.sender {
            Sender::Plain => {
                webhook.hmac_header = header("X-Signature");
                webhook.hmac_timestamp_header = header("X-Timestamp");
                webhook.delivery_id_header = webhook.delivery_id_header.or_else(|| header("X-Delivery-Id"));
            }
            Sender::Github => {
                webhook.hmac_header = header("X-Hub-Signature-256");
                webhook.delivery_id_header =
                    webhook.delivery_id_header.or_else(|| header("X-GitHub-Delivery"));
            }
            Sender::Slack => webhook.signature_scheme = Some(SignatureScheme::Slack),
        }
        Ok(webhook)
    }
}

fn rate(text: &str) -> Result<WebhookRate, String> {
    let parts = text.split_once('/').and_then(|(limit, seconds)| {
        Some(WebhookRate { limit: limit.parse().ok()?, interval_seconds: seconds.parse().ok()? })
    });
    parts.ok_or_else(|| "must be calls/seconds, such as 60/60".to_owned())
}
