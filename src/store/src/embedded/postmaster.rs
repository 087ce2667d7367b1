//! Starts the server and waits until it is ready.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use kernel::{Clock, SystemClock};
use rustix::process::Pid;

use super::EmbeddedError;
use super::binaries::Binaries;
use super::pid_file::PidFile;
use super::process::{command, log_tail_since, wait_until};
use super::socket::PORT;
use super::user::RunAs;

/// After a crash it first replays its log, up to a gigabyte.
const LIMIT: Duration = Duration::from_secs(120);
/// Maximum time for a killed server's workers to exit.
const LEFTOVERS: Duration = Duration::from_secs(5);
/// Maximum log bytes; a larger log is started anew.
const LARGEST_LOG: u64 = 10 * 1024 * 1024;
/// Log lines in an error.
const TAIL: usize = 12;

/// The parameters of a start.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) binaries: &'a Binaries,
    pub(super) cluster: &'a Path,
    pub(super) socket_dir: &'a Path,
    pub(super) log: &'a Path,
    pub(super) run_as: &'a RunAs,
}

/// Settings that override `postgresql.conf`. Every supported version accepts each of them.
const SETTINGS: &[&str] = &[
    // Private: one socket, nothing on the network.
    "listen_addresses=",
    "unix_socket_permissions=0700",
    // Committed data survives a power failure.
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    // One server without replicas.
    "wal_level=minimal",
    "max_wal_senders=0",
    "archive_mode=off",
    // A small footprint, without features that only help long analytical queries.
    "shared_buffers=128MB",
    "max_connections=100",
    "max_parallel_workers_per_gather=0",
    "jit=off",
    // Logs to stderr, which is a file.
    "logging_collector=off",
    "log_destination=stderr",
    "log_checkpoints=off",
    "timezone=UTC",
    "log_timezone=UTC",
];

/// Starts the server and returns when it accepts connections.
pub(super) fn start(plan: &Plan<'_>) -> Result<Child, EmbeddedError> {
    let clock = SystemClock::new();
    let end = clock.monotonic().saturating_add(LEFTOVERS);
    loop {
        match start_once(plan) {
            // A killed server's workers exit within moments; until then the start fails.
            Err(EmbeddedError::Exited { tail, .. })
                if tail.contains("shared memory block") && clock.monotonic() < end =>
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            answer => return answer,
        }
    }
}

fn start_once(plan: &Plan<'_>) -> Result<Child, EmbeddedError> {
    let (log, log_start) = open_log(plan.log).map_err(EmbeddedError::io("write", plan.log))?;
    let stale = PidFile::read(plan.cluster).map_err(EmbeddedError::io("read", plan.cluster))?;
    let postgres = plan.binaries.postgres();
    let mut child = spawn(plan, &postgres, log).map_err(EmbeddedError::io("start", &postgres))?;
    let pid = Pid::from_child(&child);
    let tail = || log_tail_since(plan.log, log_start, TAIL);
    let ready = wait_until(LIMIT, Duration::from_millis(5), || {
        if let Some(status) = child.try_wait().map_err(EmbeddedError::io("wait for", &postgres))? {
            let (status, log) = (status.to_string(), plan.log.to_owned());
            return Err(EmbeddedError::Exited { status, log, tail: tail() });
        }
        let file = PidFile::read(plan.cluster).map_err(EmbeddedError::io("read", plan.cluster))?;
        // A killed predecessor's file also says `ready`, and in a container it may even have the same id.
        let ready = file.is_some_and(|file| {
            file.pid == pid && file.is_ready() && stale.as_ref().is_none_or(|stale| stale.text != file.text)
        });
        Ok(ready.then_some(()))
    })?;
    match ready {
        Some(()) => Ok(child),
        // Left running to recover: if it were stopped now, the recovery would begin again at every start.
        None => {
            let log = plan.log.to_owned();
            Err(EmbeddedError::Slow { seconds: LIMIT.as_secs(), log, tail: tail() })
        }
    }
}

fn spawn(plan: &Plan<'_>, postgres: &Path, log: File) -> io::Result<Child> {
    let mut command: Command = command(postgres, plan.run_as);
    command.arg("-D").arg(plan.cluster);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    if cfg!(target_os = "linux") {
        // A statement ends soon after its client has died, even if the client was a killed service. On other
        // systems an old PostgreSQL refuses to start with this setting.
        command.args(["-c", "client_connection_check_interval=10s"]);
    }
    let mut folders = std::ffi::OsString::from("unix_socket_directories=");
    folders.push(plan.socket_dir);
    command.arg("-c").arg(folders).args(["-c", &format!("port={PORT}")]);
    // A separate process group: Ctrl-C in the terminal reaches only the service, which then stops it
    // gracefully.
    command.process_group(0).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Opens the log for appending, and returns its length.
fn open_log(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    if length <= LARGEST_LOG {
        return Ok((file, length));
    }
    file.set_len(0)?;
    Ok((file, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_is_truncated() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("postgres.log");
        std::fs::write(&path, "short").unwrap();
        assert_eq!(open_log(&path).unwrap().1, 5);
        File::create(&path).unwrap().set_len(LARGEST_LOG + 1).unwrap();
        assert_eq!(open_log(&path).unwrap().1, 0);
        assert_eq!(path.metadata().unwrap().len(), 0);
    }
}
