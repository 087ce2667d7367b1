//! `callboard app check`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bundle::{CheckError, Limits, Verdict};
use clap::Args;
use kernel::SystemClock;

use super::report;
use crate::options::ClientOptions;
use crate::output::{Failure, Output, piece, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A ZIP archive.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Check {
    pub(super) fn run(&self, options: &ClientOptions) -> Result<(), Failure> {
        options.without_service("app check")?;
        let name = self.file.display().to_string();
        let mut archive = open(&self.file).map_err(|error| unreadable(&name, &error))?;
        let verdict = bundle::check(&mut archive, &Limits::DEFAULT, &SystemClock::new(), bundle::TIME);
        let verdict = verdict.map_err(|error| match error {
            CheckError::Io(error) => unreadable(&name, &error),
            CheckError::Overdue => {
                let limit = bundle::TIME.as_secs();
                format!("{name} cannot be checked within {limit} s: its documents are too complex").into()
            }
        })?;
        match options.output() {
            Output::Json => say(pretty(&report::json(&verdict))?)?,
            Output::Human => piece(report::text(&name, &verdict, Paint::stdout()))?,
        }
        match verdict {
            Verdict::Accepted(_) => Ok(()),
            Verdict::Refused(_) => Err(Failure::Said),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder; archive its content as a ZIP file",
        ));
    }
    Ok(file)
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("{name} cannot be read: {error}"))
}
