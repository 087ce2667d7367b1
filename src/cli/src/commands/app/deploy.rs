//! `callboard app deploy` and `deployments`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use clap::Args;
use client::Archive;
use wire::{DeploymentRecord, DeploymentSummary};

use super::archive::{self, Unopened};
use super::{AppArguments, releases, report};
use crate::complaint::Complaint;
use crate::options::{ServiceSession, new_key};
use crate::output::{CommandError, Output, complain, say};
use crate::parts;
use crate::table::{self, second};
use crate::terminal::{Underway, check_terminal, harmless};

/// Bytes per read.
const CHUNK: usize = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct Deploy {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// A ZIP archive, or a folder
    #[arg(value_name = "FILE|FOLDER")]
    bundle: PathBuf,
    /// Publish the deployment, too
    #[arg(long)]
    publish: bool,
    /// Show the permissions of the deployment, ask, and acknowledge them
    #[arg(long, requires = "publish")]
    acknowledge: bool,
    /// Do not ask
    #[arg(long, requires = "acknowledge")]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Deployments {
    #[command(flatten)]
    pub(super) named: AppArguments,
}

impl Deploy {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let unreadable = |error: io::Error| {
            CommandError::usage(format!("{} cannot be read: {error}", self.bundle.display()))
        };
        let file = archive::open(&self.bundle).map_err(|unopened| match unopened {
            Unopened::Io(error) => unreadable(error),
            Unopened::Refused(findings) => Complaint::of_bundle(findings).into(),
        })?;
        if self.acknowledge && !self.yes {
            check_terminal()?;
        }
        let size = file.metadata().map_err(unreadable)?.len();
        let archive = Archive { size, chunks: Chunks { file, size, sent: 0, underway: Underway::new() } };
        let deployed =
            session.received(session.client.deploy(&self.named.app, &new_key()?, archive).await)?;
        let id = &deployed.summary.id;
        if !self.publish {
            return session.output.print(&deployed, || {
                show(&deployed)?;
                let app = &self.named.app;
                complain(format_args!(
                    "Next: callboard app acknowledge {app}, then callboard app publish {app}"
                ));
                Ok(())
            });
        }
        if session.output == Output::Human {
            show(&deployed)?;
        }
        let published = self.published(session, id).await;
        if let Err(CommandError::Told(_)) = &published {
            self.take_back(session, id).await;
        }
        published
    }

    async fn published(&self, session: &ServiceSession, id: &str) -> Result<(), CommandError> {
        if self.acknowledge {
            releases::acknowledge(session, &self.named.app, id, self.yes).await?;
        }
        releases::publish(session, &self.named.app, id).await
    }

    /// Deletes the deployment whose publication was refused. Keeps it if it was published meanwhile.
    async fn take_back(&self, session: &ServiceSession, id: &str) {
        match session.client.delete_deployment(&self.named.app, id).await {
            Ok(()) => complain("The deployment was not published, and is deleted again."),
            Err(error) if error.code() == Some("deployment_released") => {}
            Err(error) => complain(format_args!("Deployment {id} was not published, and stays: {error}")),
        }
    }
}

impl Deployments {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        let all = parts::all(session, async |part| session.client.deployments(app, part).await).await?;
        table::print_list(
            session.output,
            all,
            format_args!("No deployments found. `callboard app deploy {app} FOLDER` uploads one."),
            ["CREATED", "FILES", "SIZE", "KEPT", "ID"],
            row,
        )
    }
}

fn row(deployment: DeploymentSummary) -> [String; 5] {
    [
        second(&deployment.created_at),
        deployment.file_count.to_string(),
        size(deployment.expanded_size),
        if deployment.available { "yes" } else { "no" }.to_owned(),
        deployment.id,
    ]
}

fn size(bytes: i64) -> String {
    report::bytes(u64::try_from(bytes).unwrap_or_default())
}

fn show(deployment: &DeploymentRecord) -> Result<(), CommandError> {
    let DeploymentRecord { summary, report, bindings, .. } = deployment;
    let names: Vec<&str> = bindings.keys().map(String::as_str).collect();
    let lines = [
        ("deployment", summary.id.clone()),
        ("digest", summary.digest.clone()),
        ("files", summary.file_count.to_string()),
        ("size", format!("{} ({} packed)", size(summary.expanded_size), size(summary.size))),
        ("bindings", if names.is_empty() { "-".to_owned() } else { names.join(", ") }),
    ];
    lines.iter().try_for_each(|(name, value)| say(format_args!("{name:<10} {value}")))?;
    for path in &report.dropped {
        complain(format_args!("dropped: {} is not served", harmless(path)));
    }
    for note in &report.notes {
        let line = note.line.map(|line| format!(":{line}")).unwrap_or_default();
        complain(format_args!(
            "note: {}{line}  {}: {}",
            harmless(&note.path),
            note.code,
            harmless(&note.detail)
        ));
    }
    Ok(())
}

/// The archive's bytes, with a progress line while they are sent.
struct Chunks {
    file: File,
    size: u64,
    sent: u64,
    underway: Underway,
}

impl Iterator for Chunks {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut chunk = Vec::new();
        let limit = u64::try_from(CHUNK).unwrap_or(u64::MAX);
        match self.file.by_ref().take(limit).read_to_end(&mut chunk) {
            Ok(0) => {
                self.underway.show("Checking the bundle …");
                None
            }
            Ok(read) => {
                self.sent = self.sent.saturating_add(u64::try_from(read).unwrap_or_default());
                self.underway.show(&progress(self.sent, self.size));
                Some(Ok(chunk))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// A progress bar.
fn progress(sent: u64, size: u64) -> String {
    const WIDTH: u64 = 30;
    let of = |whole: u64| sent.saturating_mul(whole).checked_div(size).unwrap_or(whole).min(whole);
    let filled = usize::try_from(of(WIDTH)).unwrap_or_default();
    let empty = usize::try_from(WIDTH).unwrap_or_default().saturating_sub(filled);
    format!(
        "Uploading [{}{}] {} % of {}",
        "#".repeat(filled),
        " ".repeat(empty),
        of(100),
        report::bytes(size)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_as_a_bar() {
        assert_eq!(progress(0, 2048), format!("Uploading [{}] 0 % of 2.0 KiB", " ".repeat(30)));
        assert_eq!(
            progress(1024, 2048),
            format!("Uploading [{}{}] 50 % of 2.0 KiB", "#".repeat(15), " ".repeat(15))
        );
        assert_eq!(progress(9, 2), format!("Uploading [{}] 100 % of 2 bytes", "#".repeat(30)));
        assert_eq!(progress(0, 0), format!("Uploading [{}] 100 % of 0 bytes", "#".repeat(30)));
    }
}
