//! Runs PostgreSQL's programs, and waits for them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kernel::{Clock, SystemClock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::user::RunAs;

/// A command for `program` as that user, without the service's environment: that contains secrets, and
/// variables such as `PGDATA` and `PGPORT` that PostgreSQL would follow.
pub(super) fn command(program: &Path, run_as: &RunAs) -> Command {
    let mut command = Command::new(program);
    // A folder that every user may enter.
    command.env_clear().env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
    for name in ["PATH", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    run_as.apply(&mut command);
    command
}

/// Polls every `pause` until there is an answer; `None` after `limit`.
pub(super) fn wait_until<T, E>(
    limit: Duration,
    pause: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let clock = SystemClock::new();
    let end = clock.monotonic().saturating_add(limit);
    loop {
        let answer = look()?;
        if answer.is_some() || clock.monotonic() >= end {
            return Ok(answer);
        }
        std::thread::sleep(pause);
    }
}

/// Sends `signal`. A process that has already exited is a success.
pub(super) fn signal(pid: Pid, signal: Signal) -> std::io::Result<()> {
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a process has that id.
pub(super) fn exists(pid: Pid) -> bool {
    rustix::process::test_kill_process(pid) != Err(Errno::SRCH)
}

/// The first line of a program's output.
pub(super) fn first_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().lines().next().unwrap_or("no output").to_owned()
}

/// The last `lines` of a log.
pub(super) fn log_tail(path: &Path, lines: usize) -> String {
    log_tail_since(path, 0, lines)
}

/// The last `lines` of a log after its first `start` bytes.
pub(super) fn log_tail_since(path: &Path, start: u64, lines: usize) -> String {
    const MOST: u64 = 8 * 1024;
    let read = || {
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(end.saturating_sub(MOST).max(start)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.trim_end().lines().collect();
            all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
        }
        Err(error) => format!("(cannot be read: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_starts_at_the_given_offset() {
        let temp = tempfile::tempdir().unwrap();
        let log = temp.path().join("log");
        std::fs::write(&log, "old\none\ntwo\nthree\n").unwrap();
        assert_eq!(log_tail(&log, 2), "two\nthree");
        assert_eq!(log_tail_since(&log, 4, 9), "one\ntwo\nthree");
        assert_eq!(log_tail_since(&log, 400, 9), "");
    }

    #[test]
    fn child_processes_inherit_no_secrets() {
        let output = command(Path::new("/usr/bin/env"), &RunAs::Ourselves).output().unwrap();
        let names: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.split('=').next().unwrap().to_owned())
            .collect();
        assert!(
            names.iter().all(|name| ["LC_ALL", "PATH", "LD_LIBRARY_PATH"].contains(&name.as_str())),
            "{names:?}"
        );
    }
}
