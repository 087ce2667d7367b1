//! The embedded PostgreSQL: found or fetched, created once, run on a private Unix socket, stopped with the
//! service.
//!
//! Everything here blocks. The caller holds the data folder's lock ([`crate::data_dir::DataDir`]) during all
//! calls.

mod binaries;
mod cluster;
mod error;
mod fetch;
mod look;
mod orphan;
mod pid_file;
mod postmaster;
mod process;
mod socket;
#[cfg(test)]
mod tests;
mod user;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal};

pub(crate) use binaries::OLDEST;
use binaries::SearchPath;
pub use error::EmbeddedError;
pub use look::{Looked, look};
use process::{signal, wait_until};
use user::RunAs;

/// The name of the database and its user.
const DATABASE: &str = "callboard";
/// Maximum time for a fast shutdown, which disconnects clients and writes a checkpoint.
const FAST: Duration = Duration::from_secs(10);
/// Maximum time for an immediate shutdown.
const IMMEDIATE: Duration = Duration::from_secs(5);

/// Settings for the embedded PostgreSQL.
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The service's data folder, which exists and is locked by this process.
    pub data_dir: PathBuf,
    /// `SERVICE_PG_BIN`: the folder with `postgres` and `initdb`, instead of a search.
    pub binaries: Option<PathBuf>,
}

/// A running PostgreSQL. Dropping it requests a stop and does not wait.
#[derive(Debug)]
pub struct Embedded {
    dsn: String,
    cluster: PathBuf,
    socket_dir: PathBuf,
    process: Process,
    /// Whether the drop has nothing to do.
    released: bool,
}

#[derive(Debug)]
enum Process {
    Child(Child),
    Orphan(Pid),
}

impl Embedded {
    /// Starts PostgreSQL on the data folder, or takes over a server that a killed service left running there.
    ///
    /// # Errors
    /// [`EmbeddedError`], whose text tells the operator how to fix it.
    pub fn start(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let data_dir =
            options.data_dir.canonicalize().map_err(EmbeddedError::io("read", &options.data_dir))?;
        Self::start_in(&data_dir, &SearchPath::of_machine(options, &data_dir))
    }

    fn start_in(data_dir: &Path, search: &SearchPath) -> Result<Self, EmbeddedError> {
        let cluster = cluster::place(data_dir);
        let run_as = RunAs::choose(&cluster)?;
        run_as.check_way_to(data_dir)?;
        // Before any search: a running server needs no programs.
        if let Some(orphan) = orphan::settle(&cluster)? {
            tracing::info!(pid = orphan.pid.as_raw_pid(), "took over a running PostgreSQL");
            return Ok(Self {
                dsn: dsn(&orphan.socket_dir, orphan.port),
                cluster,
                socket_dir: orphan.socket_dir,
                process: Process::Orphan(orphan.pid),
                released: false,
            });
        }
        let binaries = match cluster::major(&cluster)? {
            Some(major) => search.for_major(major, &cluster, &run_as)?,
            None => {
                let binaries = search.any(&run_as)?;
                cluster::create(&cluster, &binaries, &run_as)?;
                binaries
            }
        };
        // In an image whose `postgres` has another uid, the cluster's owner is unknown.
        run_as.give_all(&cluster).map_err(EmbeddedError::io("change the owner of", &cluster))?;
        let socket_dir = socket::prepare(data_dir, &run_as)?;
        let plan = postmaster::Plan {
            binaries: &binaries,
            cluster: &cluster,
            socket_dir: &socket_dir,
            log: &data_dir.join("postgres.log"),
            run_as: &run_as,
        };
        let child = postmaster::start(&plan).inspect_err(|_| {
            // Succeeds only if the folder is empty.
            let _ = std::fs::remove_dir(&socket_dir);
        })?;
        tracing::info!(pid = child.id(), binaries = %binaries.folder.display(), "PostgreSQL {} started", binaries.major);
        Ok(Self {
            dsn: dsn(&socket_dir, socket::PORT),
            cluster,
            socket_dir,
            process: Process::Child(child),
            released: false,
        })
    }

    /// The DSN in `tokio-postgres` format.
    #[must_use]
    pub fn dsn(&self) -> &str {
        &self.dsn
    }

    /// Whether an earlier service started it.
    #[must_use]
    pub fn taken_over(&self) -> bool {
        matches!(self.process, Process::Orphan(_))
    }

    /// Stops it gracefully: disconnects clients and writes all data. Uses an immediate shutdown after ten
    /// seconds.
    ///
    /// # Errors
    /// [`EmbeddedError::NotStopped`] if it survives that too; [`EmbeddedError::Io`].
    pub fn stop(mut self) -> Result<(), EmbeddedError> {
        // Whatever the result, the drop cannot do more than these signals.
        self.released = true;
        let io = EmbeddedError::io("stop the PostgreSQL of", &self.cluster);
        let stopped = self.send_and_wait(Signal::INT, FAST).and_then(|stopped| {
            if stopped {
                return Ok(true);
            }
            tracing::warn!(
                "PostgreSQL did not stop in time; forcing an immediate stop, and it recovers at the next start"
            );
            self.send_and_wait(Signal::QUIT, IMMEDIATE)
        });
        if !stopped.map_err(io)? {
            let pid = self.pid().map_or(0, Pid::as_raw_pid);
            return Err(EmbeddedError::NotStopped { pid });
        }
        // This service may not have created an orphan's folder; PostgreSQL has removed the socket itself.
        if self.socket_dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callboard-")) {
            let _ = std::fs::remove_dir(&self.socket_dir);
        }
        Ok(())
    }

    /// Leaves it running; the next start takes it over.
    pub fn leave_running(mut self) {
        self.released = true;
    }

    fn pid(&self) -> Option<Pid> {
        match &self.process {
            Process::Child(child) => Some(Pid::from_child(child)),
            // Another process may have its id by now.
            Process::Orphan(pid) => {
                orphan::is_there(*pid, &self.cluster).is_ok_and(|there| there).then_some(*pid)
            }
        }
    }

    /// Sends a signal; returns whether the process has exited within `limit`.
    fn send_and_wait(&mut self, kind: Signal, limit: Duration) -> std::io::Result<bool> {
        let Some(pid) = self.pid() else { return Ok(true) };
        signal(pid, kind)?;
        let gone = wait_until(limit, Duration::from_millis(5), || match &mut self.process {
            Process::Child(child) => child.try_wait().map(|status| status.map(|_| ())),
            Process::Orphan(pid) => orphan::is_there(*pid, &self.cluster).map(|there| (!there).then_some(())),
        })?;
        Ok(gone.is_some())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if !self.released
            && let Some(pid) = self.pid()
        {
            let _ = signal(pid, Signal::INT);
        }
    }
}

fn dsn(socket_dir: &Path, port: u16) -> String {
    // Quoted if necessary: another process chose an orphaned server's folder.
    let folder = socket_dir.to_string_lossy();
    let plain = folder.chars().all(|c| !c.is_whitespace() && c != '\'' && c != '\\');
    let host = if plain {
        folder.into_owned()
    } else {
        format!("'{}'", folder.replace('\\', "\\\\").replace('\'', "\\'"))
    };
    format!("host={host} port={port} user={DATABASE} dbname={DATABASE}")
}
