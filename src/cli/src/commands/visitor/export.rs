//! `callboard visitor export`.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use wire::ExportLine;

use super::VisitorArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, complain, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  callboard visitor export support user:ada@example.org --out ada.ndjson\n\n\
                        Without its last line, {\"type\":\"end\", …}, an export is incomplete; the command then fails."
)]
pub(crate) struct ExportVisitor {
    #[command(flatten)]
    pub(super) named: VisitorArguments,
    /// Write to this file, which must not exist (default: standard output).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl ExportVisitor {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let VisitorArguments { workflow, visitor, .. } = &self.named;
        let export = session.client.export_visitor(workflow, visitor).await;
        let mut export = export.map_err(|error| session.complaint(error).about(visitor))?;
        let mut file = self.out.as_deref().map(create).transpose()?;
        loop {
            let line = export.next().await.map_err(|error| session.complaint(error).about(visitor))?;
            match (line, &mut file) {
                (Some(line), Some((file, path))) => {
                    writeln!(file, "{line}").map_err(|error| unwritable(path, &error))?;
                }
                (Some(line), None) => say(line)?,
                (None, _) => break,
            }
        }
        if let Some((mut file, path)) = file {
            file.flush()
                .and_then(|()| file.get_ref().sync_all())
                .map_err(|error| unwritable(path, &error))?;
        }
        if let Some(ExportLine::End { threads, items, attachments }) = export.end() {
            complain(format!(
                "Exported {} of {}: {threads} threads, {items} items, {attachments} attachments.",
                harmless(visitor),
                harmless(workflow)
            ));
        }
        Ok(())
    }
}

/// Creates a private file (mode 0600); fails if it exists.
fn create(path: &Path) -> Result<(BufWriter<File>, &Path), CommandError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| unwritable(path, &error))?;
    Ok((BufWriter::new(file), path))
}

fn unwritable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::from(format!("{} cannot be written: {error}", path.display()))
}
