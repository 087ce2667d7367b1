//! `callboard audit`: lists actions and refused attempts with their actors.

use clap::{Args, ValueEnum};
use client::{AuditFilter, Part};
use wire::AuditRecord;

use crate::options::{ClientOptions, ServiceSession};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only this action, such as `service_token.created` or `auth.failed`.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only actions of this actor: the id of a service token or of a user, or the subject of a JWT.
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Only rows with this outcome.
    #[arg(long, value_enum)]
    outcome: Option<OutcomeArgument>,
    /// Maximum number of rows to print.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    pub(crate) options: ClientOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutcomeArgument {
    /// Successful actions.
    Success,
    /// Denied actions.
    Denied,
}

impl Audit {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let rows = self.rows(session).await?;
        table::print_list(
            session.output,
            rows,
            "No audit rows found.",
            ["AT", "OUTCOME", "ACTION", "ACTOR", "TARGET", "ADDRESS", "REASON"],
            row,
        )
    }

    async fn rows(&self, session: &ServiceSession) -> Result<Vec<AuditRecord>, CommandError> {
        let filter = AuditFilter {
            action: self.action.clone(),
            actor: self.actor.clone(),
            outcome: self.outcome.map(|outcome| match outcome {
                OutcomeArgument::Success => "success".to_owned(),
                OutcomeArgument::Denied => "denied".to_owned(),
            }),
        };
        let read = async |part: &Part| session.received(session.client.audit_trail(&filter, part).await);
        parts::at_most(self.limit, read).await
    }
}

fn row(row: AuditRecord) -> [String; 7] {
    let named = |kind: String, id: Option<String>| match id {
        Some(id) => format!("{kind}:{id}"),
        None => kind,
    };
    let dash = || "-".to_owned();
    [
        second(&row.at),
        row.outcome,
        row.action,
        named(row.actor.kind, row.actor.id),
        row.target.map_or_else(dash, |target| named(target.kind, Some(target.id))),
        row.address.unwrap_or_else(dash),
        row.reason.unwrap_or_default(),
    ]
}
