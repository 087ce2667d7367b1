//! `postmaster.pid`: PostgreSQL's record of its state, which stays after a kill.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::process::exists;

/// Above every process id on Linux and macOS.
const NOBODY: &str = "99999999";

/// A parsed `postmaster.pid`.
#[derive(Debug, Clone)]
pub(super) struct PidFile {
    pub(super) text: String,
    pub(super) pid: Pid,
    pub(super) data_dir: PathBuf,
    pub(super) port: u16,
    /// Its first socket folder.
    pub(super) socket_dir: Option<PathBuf>,
    /// `starting`, `ready`, `stopping`; empty at first.
    pub(super) status: String,
}

/// The process with the id from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// No process.
    Gone,
    /// The PostgreSQL that runs this cluster.
    Ours,
    /// An unrelated process: ids are reused, in containers immediately.
    Other,
    /// The system does not reveal it.
    Unknown,
}

impl PidFile {
    /// Reads a cluster's file; `None` if it is missing or incomplete.
    pub(super) fn read(cluster: &Path) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(path(cluster)) {
            Ok(text) => Ok(Self::parse(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(text: String) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok().and_then(Pid::from_raw)?;
        let data_dir = PathBuf::from(lines.next()?);
        let _started = lines.next()?;
        let port = lines.next()?.trim().parse().ok()?;
        let socket_dir = lines.next().filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let _address = lines.next();
        let _shared_memory = lines.next();
        let status = lines.next().unwrap_or_default().trim().to_owned();
        Some(Self { pid, data_dir, port, socket_dir, status, text })
    }

    /// Whether it accepts connections.
    pub(super) fn is_ready(&self) -> bool {
        self.status == "ready"
    }

    /// Identifies the file's process.
    pub(super) fn holder(&self, cluster: &Path) -> Holder {
        if !exists(self.pid) {
            return Holder::Gone;
        }
        let process = PathBuf::from(format!("/proc/{}", self.pid.as_raw_pid()));
        // PostgreSQL's working directory is its data folder. Root in a container may not see another user's
        // process.
        if let Ok(folder) = std::fs::read_link(process.join("cwd")) {
            return if folder == cluster { Holder::Ours } else { Holder::Other };
        }
        match std::fs::read(process.join("cmdline")) {
            Ok(line) => by_command_line(&line, cluster),
            Err(_) => Holder::Unknown,
        }
    }

    /// Removes the process id, because it belongs to an unrelated process (or to a dead process without a
    /// parent that reaps it) and prevents PostgreSQL's start. The rest stays: PostgreSQL uses it to detect
    /// leftover workers with access to its memory.
    pub(super) fn disown(&self, cluster: &Path) -> io::Result<()> {
        let Some((_, rest)) = self.text.split_once('\n') else { return Ok(()) };
        // Root writes in a folder of the database's user here: never through that user's links.
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = match rustix::fs::open(path(cluster), flags, Mode::empty()) {
            Ok(file) => std::fs::File::from(file),
            // A PostgreSQL that was stopping has removed it in the meantime.
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        file.write_all(format!("{NOBODY}\n{rest}").as_bytes())?;
        file.sync_all()?;
        // The socket has a lock file with the same id.
        let lock = self.socket_dir.as_ref().map(|folder| folder.join(format!(".s.PGSQL.{}.lock", self.port)));
        match lock.map(std::fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn path(cluster: &Path) -> PathBuf {
    cluster.join("postmaster.pid")
}

/// A zombie process has an empty command line.
fn by_command_line(line: &[u8], cluster: &Path) -> Holder {
    let mut arguments = line.split(|byte| *byte == 0);
    let program = arguments.next().unwrap_or_default();
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if name != b"postgres" && name != b"postmaster" {
        Holder::Other
    } else if arguments.any(|argument| argument == cluster.as_os_str().as_bytes()) {
        Holder::Ours
    } else {
        Holder::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "4227\n/data/postgres\n1795219200\n5432\n/tmp/callboard-101-abcdef01\n\n  5632  98304\nready   \n";

    #[test]
    fn a_pid_file_is_parsed() {
        let file = PidFile::parse(TEXT.to_owned()).unwrap();
        assert_eq!((file.pid.as_raw_pid(), file.port, file.is_ready()), (4227, 5432, true));
        assert_eq!(file.data_dir, Path::new("/data/postgres"));
        assert_eq!(file.socket_dir.as_deref(), Some(Path::new("/tmp/callboard-101-abcdef01")));
        assert!(PidFile::parse("4227\n/data".to_owned()).is_none());
        assert!(PidFile::parse("0\n/data\n1\n5432\n\n".to_owned()).is_none());
    }

    #[test]
    fn the_owner_of_a_process_is_read_from_its_command_line() {
        let cluster = Path::new("/data/postgres");
        let ours = b"/usr/lib/postgresql/15/bin/postgres\0-D\0/data/postgres\0-c\0port=5432\0";
        assert_eq!(by_command_line(ours, cluster), Holder::Ours);
        assert_eq!(by_command_line(b"postgres\0-D\0data\0", cluster), Holder::Unknown);
        assert_eq!(by_command_line(b"vim\0/data/postgres\0", cluster), Holder::Other);
        assert_eq!(by_command_line(b"", cluster), Holder::Other);
    }

    #[test]
    fn an_unrelated_process_is_removed_from_the_pid_file() {
        let temp = tempfile::tempdir().unwrap();
        let ours = TEXT.replace("4227", &std::process::id().to_string());
        std::fs::write(path(temp.path()), &ours).unwrap();
        let file = PidFile::read(temp.path()).unwrap().unwrap();
        assert_eq!(file.holder(temp.path()), Holder::Other);
        file.disown(temp.path()).unwrap();
        let file = PidFile::read(temp.path()).unwrap().unwrap();
        assert_eq!(file.holder(temp.path()), Holder::Gone);
        assert_eq!(file.text, TEXT.replace("4227", NOBODY));
    }
}
