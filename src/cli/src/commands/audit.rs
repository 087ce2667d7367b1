//! `callboard audit`: lists actions and refused attempts with their actors.

use clap::{Args, ValueEnum};
use client::{AuditFilter, Part};
use wire::AuditRecord;

use crate::options::{ClientOptions, Session, with_service};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::table::{self, second};

/// Maximum rows per page.
const PART: u32 = 200;

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
    outcome: Option<Outcome>,
    /// Maximum number of rows to print.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    options: ClientOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// Successful actions.
    Success,
    /// Denied actions.
    Denied,
}

impl Audit {
    /// Returns the outcome, and the output format for errors.
    pub(crate) fn run(self, outer: ClientOptions) -> (Output, Result<(), Failure>) {
        let options = self.options.clone().or(outer);
        with_service(&options, async |session| self.perform(session).await)
    }

    async fn perform(&self, session: &Session) -> Result<(), Failure> {
        let rows = self.rows(session).await?;
        if session.output == Output::Json {
            return say(pretty(&rows)?);
        }
        if rows.is_empty() {
            complain("No audit rows found.");
            return Ok(());
        }
        let head = ["AT", "OUTCOME", "ACTION", "ACTOR", "TARGET", "ADDRESS", "REASON"];
        table::print(head, rows.into_iter().map(row).collect())
    }

    async fn rows(&self, session: &Session) -> Result<Vec<AuditRecord>, Failure> {
        let filter = AuditFilter {
            action: self.action.clone(),
            actor: self.actor.clone(),
            outcome: self.outcome.map(|outcome| match outcome {
                Outcome::Success => "success".to_owned(),
                Outcome::Denied => "denied".to_owned(),
            }),
        };
        let (mut rows, mut cursor, mut missing) = (Vec::new(), None, self.limit);
        while missing > 0 {
            let part = Part { limit: Some(missing.min(PART)), cursor };
            let listed = session.client.audit_trail(&filter, &part).await;
            let listed = listed.map_err(|error| session.failed(error))?;
            missing = missing.saturating_sub(u32::try_from(listed.data.len()).unwrap_or(missing));
            rows.extend(listed.data);
            cursor = listed.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(rows)
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
