//! Inspects the environment for an embedded PostgreSQL, without starting or fetching anything.

use std::path::{Path, PathBuf};

use super::binaries::SearchPath;
use super::user::RunAs;
use super::{EmbeddedError, EmbeddedOptions, cluster, dsn, orphan};

/// The state of an embedded PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// It is running.
    Running {
        /// The DSN.
        dsn: String,
    },
    /// A start would use these programs.
    Programs {
        /// Their folder.
        folder: PathBuf,
        /// PostgreSQL's major version.
        major: u32,
        /// Whether the database already exists.
        made: bool,
    },
    /// A start would fetch the programs first.
    Fetched {
        /// PostgreSQL's major version.
        major: u32,
    },
}

/// Inspects, by the rules of [`super::Embedded::start`]. The data folder need not exist.
///
/// # Errors
/// [`EmbeddedError`], as at a start.
pub fn look(options: &EmbeddedOptions) -> Result<Looked, EmbeddedError> {
    let data_dir = std::path::absolute(&options.data_dir).unwrap_or_else(|_| options.data_dir.clone());
    let data_dir = data_dir.canonicalize().unwrap_or(data_dir);
    look_in(&data_dir, &SearchPath::of_machine(options, &data_dir))
}

pub(super) fn look_in(data_dir: &Path, search: &SearchPath) -> Result<Looked, EmbeddedError> {
    let cluster = cluster::place(data_dir);
    let run_as = RunAs::choose(&cluster)?;
    let missing = data_dir.ancestors().take_while(|folder| !folder.exists()).last();
    run_as.check_way_above(missing.unwrap_or(data_dir))?;
    let running =
        orphan::running(&cluster).map_err(EmbeddedError::io("look for a running PostgreSQL in", &cluster))?;
    if let Some(orphan) = running {
        return Ok(Looked::Running { dsn: dsn(&orphan.socket_dir, orphan.port) });
    }
    let needed = cluster::version(&cluster)?;
    match search.installed(needed, &run_as)? {
        Ok(binaries) => {
            Ok(Looked::Programs { folder: binaries.folder, major: binaries.major, made: needed.is_some() })
        }
        Err(found) => {
            search.fetchable(needed).map(|major| Looked::Fetched { major }).map_err(|reason| match needed {
                Some(needed) => EmbeddedError::WrongVersion { cluster, needed, found: listed(found) },
                None => EmbeddedError::NoBinaries { reason },
            })
        }
    }
}

/// Formats the versions found, for an error.
pub(super) fn listed(found: Vec<String>) -> String {
    if found.is_empty() { "none".to_owned() } else { found.join(", ") }
}
