//! The PostgreSQL that an earlier service left running when it was killed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::EmbeddedError;
use super::pid_file::{Holder, PidFile};
use super::process::{signal, wait_until};
use super::socket::{ProbeResult, knock};

/// Maximum time for it to become ready or to exit.
const LIMIT: Duration = Duration::from_secs(30);

/// A running PostgreSQL that is not a child of this process.
#[derive(Debug)]
pub(super) struct Orphan {
    pub(super) pid: Pid,
    pub(super) socket_dir: PathBuf,
    pub(super) port: u16,
}

/// Waits until the cluster is either run by an orphan that accepts connections, or free (`None`).
pub(super) fn settle(cluster: &Path) -> Result<Option<Orphan>, EmbeddedError> {
    let mut sent_away = false;
    let mut seen = None;
    let settled = wait_until(LIMIT, Duration::from_millis(5), || {
        let Some(file) = PidFile::read(cluster)? else { return Ok(Some(None)) };
        let step = step(&file, cluster, sent_away);
        match step {
            OrphanAction::Free => return Ok(Some(None)),
            OrphanAction::TakeOver(orphan) => return Ok(Some(Some(orphan))),
            OrphanAction::Disown => {
                file.disown(cluster)?;
                return Ok(Some(None));
            }
            OrphanAction::SendAway => {
                tracing::warn!(
                    pid = file.pid.as_raw_pid(),
                    "an earlier PostgreSQL has lost its socket; stopping it"
                );
                signal(file.pid, Signal::INT)?;
                sent_away = true;
            }
            OrphanAction::Wait => {}
        }
        seen = Some((file.pid.as_raw_pid(), file.status));
        io::Result::Ok(None)
    });
    match (settled.map_err(EmbeddedError::io("look for a running PostgreSQL in", cluster))?, seen) {
        (Some(settled), _) => Ok(settled),
        (None, None) => Ok(None),
        (None, Some((pid, status))) => {
            let cluster = cluster.to_owned();
            Err(EmbeddedError::Stuck { cluster, pid, status, seconds: LIMIT.as_secs() })
        }
    }
}

/// Returns the PostgreSQL that runs the cluster and currently accepts connections.
pub(super) fn running(cluster: &Path) -> io::Result<Option<Orphan>> {
    let step = PidFile::read(cluster)?.map(|file| step(&file, cluster, true));
    Ok(match step {
        Some(OrphanAction::TakeOver(orphan)) => Some(orphan),
        _ => None,
    })
}

enum OrphanAction {
    Free,
    TakeOver(Orphan),
    Disown,
    SendAway,
    Wait,
}

fn step(file: &PidFile, cluster: &Path, sent_away: bool) -> OrphanAction {
    let answer = || match &file.socket_dir {
        Some(folder) => (knock(folder, file.port), folder.clone()),
        None => (ProbeResult::Nobody, PathBuf::new()),
    };
    let take_over =
        |socket_dir| OrphanAction::TakeOver(Orphan { pid: file.pid, socket_dir, port: file.port });
    match file.holder(cluster) {
        Holder::Gone => OrphanAction::Free,
        Holder::Other => OrphanAction::Disown,
        Holder::Ours if !file.is_ready() => OrphanAction::Wait,
        Holder::Ours => match answer() {
            (ProbeResult::Welcome, folder) => take_over(folder),
            (ProbeResult::Nobody, _) if !sent_away => OrphanAction::SendAway,
            _ => OrphanAction::Wait,
        },
        // Without /proc the only proof is an answer on the socket from the file. Otherwise PostgreSQL decides
        // itself.
        Holder::Unknown if file.data_dir == cluster => match answer() {
            (ProbeResult::Welcome, folder) => take_over(folder),
            _ => OrphanAction::Free,
        },
        Holder::Unknown => OrphanAction::Free,
    }
}

/// Whether that process still runs the cluster.
pub(super) fn is_there(pid: Pid, cluster: &Path) -> io::Result<bool> {
    let Some(file) = PidFile::read(cluster)? else { return Ok(false) };
    Ok(file.pid == pid && matches!(file.holder(cluster), Holder::Ours | Holder::Unknown))
}
