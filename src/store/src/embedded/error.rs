//! What can go wrong, in words that the operator can act on.

use std::io;
use std::path::{Path, PathBuf};

use super::binaries::OLDEST;

/// Why the embedded PostgreSQL is not there.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No programs, and none could be fetched.
    #[error(
        "no PostgreSQL {OLDEST} or newer was found on this machine, and {reason}: install the package `postgresql` \
         (Debian, Ubuntu: apt-get install postgresql), or set SERVICE_PG_BIN to a folder that holds `postgres` and \
         `initdb`, or SERVICE_POSTGRES_DSN to a database that runs elsewhere"
    )]
    NoBinaries {
        /// Why fetching them did not help.
        reason: String,
    },
    /// `SERVICE_PG_BIN` is of no use.
    #[error("SERVICE_PG_BIN names {}, which cannot be used: {reason}", folder.display())]
    BadBinaries {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster needs another major version than the machine has.
    #[error(
        "the database in {} was made by PostgreSQL {needed} and runs with no other, but only {found} was found: \
         install PostgreSQL {needed} (Debian, Ubuntu: apt-get install postgresql-{needed}), or set SERVICE_PG_BIN to \
         a folder that holds it", cluster.display()
    )]
    WrongVersion {
        /// The cluster.
        cluster: PathBuf,
        /// The major version it needs.
        needed: u32,
        /// What there is.
        found: String,
    },
    /// Root, and no user to run PostgreSQL as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor a user `nobody` to run \
         it as: start the service as an ordinary user, or set SERVICE_POSTGRES_DSN to a database that runs elsewhere"
    )]
    NoUser,
    /// Root, and the user PostgreSQL runs as cannot get to its files.
    #[error(
        "PostgreSQL refuses to run as root, and the user `{user}` it runs as instead may not pass the folder {}: allow \
         that (chmod o+x), or set SERVICE_DATA_DIR to another folder, or SERVICE_POSTGRES_DSN to a database that runs \
         elsewhere", folder.display()
    )]
    Unreachable {
        /// The user.
        user: String,
        /// The folder in the way.
        folder: PathBuf,
    },
    /// The folder of the socket is not private.
    #[error(
        "the folder {} cannot hold the database's socket, {reason}: remove it, or set XDG_RUNTIME_DIR to a private \
         folder, or SERVICE_POSTGRES_DSN to a database that runs elsewhere", folder.display()
    )]
    SocketFolder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster has lost a part that cannot be made again.
    #[error("the database in {} is damaged, {reason}: restore the folder from a backup", cluster.display())]
    Damaged {
        /// The cluster.
        cluster: PathBuf,
        /// What is missing.
        reason: &'static str,
    },
    /// The cluster could not be made.
    #[error("cannot make a database in {}: {reason}", cluster.display())]
    Create {
        /// Where.
        cluster: PathBuf,
        /// What the program said.
        reason: String,
    },
    /// PostgreSQL ended before it was ready.
    #[error("PostgreSQL did not start ({status}); the last it wrote to {} was:\n{tail}", log.display())]
    Exited {
        /// How it ended.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// PostgreSQL runs but is not ready.
    #[error(
        "PostgreSQL was not ready after {seconds} seconds; the last it wrote to {} was:\n{tail}", log.display()
    )]
    Slow {
        /// How long was waited.
        seconds: u64,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A PostgreSQL left by an earlier service is neither ready nor gone.
    #[error(
        "an earlier PostgreSQL (process {pid}) still holds {} and has been `{status}` for {seconds} seconds: wait for \
         it or stop it", cluster.display()
    )]
    Stuck {
        /// The cluster.
        cluster: PathBuf,
        /// Its process.
        pid: i32,
        /// What it says of itself.
        status: String,
        /// How long was waited.
        seconds: u64,
    },
    /// PostgreSQL does not stop.
    #[error("PostgreSQL (process {pid}) does not stop")]
    NotStopped {
        /// Its process.
        pid: i32,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
}

impl EmbeddedError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
