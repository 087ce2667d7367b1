//! Errors with instructions for the operator.

use std::io;
use std::path::{Path, PathBuf};

use super::binaries::OLDEST;

/// The reason why the embedded PostgreSQL is not available.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No programs were found, and none could be fetched.
    #[error(
        "no PostgreSQL {OLDEST} or newer was found on this machine, and {reason}: install the package `postgresql` \
         (Debian, Ubuntu: apt-get install postgresql), or set SERVICE_PG_BIN to a folder with `postgres` and \
         `initdb`, or SERVICE_POSTGRES_DSN to a database that runs elsewhere"
    )]
    NoBinaries {
        /// The reason why fetching failed.
        reason: String,
    },
    /// `SERVICE_PG_BIN` is not usable.
    #[error("SERVICE_PG_BIN names {}, which cannot be used: {reason}", folder.display())]
    BadBinaries {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The cluster needs a major version that the machine does not have.
    #[error(
        "the database in {} was created by PostgreSQL {needed} and requires this version, but only {found} was found: \
         install PostgreSQL {needed} (Debian, Ubuntu: apt-get install postgresql-{needed}), or set SERVICE_PG_BIN to \
         the folder of its programs", cluster.display()
    )]
    WrongVersion {
        /// The cluster.
        cluster: PathBuf,
        /// The major version it needs.
        needed: u32,
        /// The versions found.
        found: String,
    },
    /// Running as root, without a user to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor a user `nobody` to run \
         it as: start the service as an ordinary user, or set SERVICE_POSTGRES_DSN to a database that runs elsewhere"
    )]
    NoUser,
    /// Running as root, and PostgreSQL's user cannot reach its files.
    #[error(
        "PostgreSQL refuses to run as root, and the user `{user}`, which it runs as instead, may not enter the folder {}: \
         allow it (chmod o+x), or set SERVICE_DATA_DIR to another folder, or SERVICE_POSTGRES_DSN to a database that runs \
         elsewhere", folder.display()
    )]
    Unreachable {
        /// The user.
        user: String,
        /// The inaccessible folder.
        folder: PathBuf,
    },
    /// The socket's folder is not private.
    #[error(
        "the folder {} cannot contain the database's socket ({reason}): remove it, or set XDG_RUNTIME_DIR to a private \
         folder, or SERVICE_POSTGRES_DSN to a database that runs elsewhere", folder.display()
    )]
    SocketFolder {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The cluster has lost a part that cannot be recreated.
    #[error("the database in {} is damaged, {reason}: restore the folder from a backup", cluster.display())]
    Damaged {
        /// The cluster.
        cluster: PathBuf,
        /// The missing part.
        reason: &'static str,
    },
    /// The cluster could not be created.
    #[error("cannot create a database in {}: {reason}", cluster.display())]
    Create {
        /// The cluster's path.
        cluster: PathBuf,
        /// The program's message.
        reason: String,
    },
    /// PostgreSQL ended before it was ready.
    #[error("PostgreSQL did not start ({status}); its last lines in {}:\n{tail}", log.display())]
    Exited {
        /// The exit status.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// PostgreSQL runs but does not become ready.
    #[error(
        "PostgreSQL was not ready after {seconds} seconds; its last lines in {}:\n{tail}", log.display()
    )]
    Slow {
        /// The time waited, seconds.
        seconds: u64,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A PostgreSQL from an earlier service neither becomes ready nor exits.
    #[error(
        "an earlier PostgreSQL (process {pid}) still holds {} and has been `{status}` for {seconds} seconds: wait for \
         it or stop it", cluster.display()
    )]
    Stuck {
        /// The cluster.
        cluster: PathBuf,
        /// Its process id.
        pid: i32,
        /// The status that it reports.
        status: String,
        /// The time waited, seconds.
        seconds: u64,
    },
    /// PostgreSQL does not stop.
    #[error("PostgreSQL (process {pid}) does not stop")]
    NotStopped {
        /// Its process id.
        pid: i32,
    },
    /// An operating system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The path concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl EmbeddedError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
