//! The real binary: starts it, stops it and reads its output.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A temporary folder that the database's user can enter if the test runs as root.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap()
}

/// The binary, with these variables and those that every test needs.
pub(crate) fn callboard(
    folder: &tempfile::TempDir,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
    let ours = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        !name.starts_with("SERVICE_") && !name.starts_with("CHAT_") && name != "RUST_BACKTRACE"
    });
    command.env_clear().envs(ours).args(arguments).current_dir(folder.path());
    command.env("SERVICE_DATA_DIR", folder.path().join("data")).env("SERVICE_PORT", "0");
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    callboard(&folder(), arguments, variables).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A running binary; killed on drop.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) output: Option<BufReader<ChildStdout>>,
    pub(crate) log: Option<ChildStderr>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (output, log) = (child.stdout.take().map(BufReader::new), child.stderr.take());
        Self { child, output, log }
    }

    /// The first line of output with this beginning.
    pub(crate) fn line(&mut self, beginning: &str) -> String {
        let lines = self.output.as_mut().unwrap().lines();
        lines.map(Result::unwrap).find(|line| line.starts_with(beginning)).unwrap()
    }

    /// The output of `demo` until it serves.
    pub(crate) fn until_serving(&mut self) -> String {
        let (output, mut printed) = (self.output.as_mut().unwrap(), String::new());
        while !printed.ends_with("Serving until Ctrl-C.\n") {
            assert!(output.read_line(&mut printed).unwrap() > 0, "{printed}");
        }
        printed
    }

    /// Stops it; returns its status and log.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        self.signal(Signal::INT);
        self.end()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        if let Some(mut stderr) = self.log.take() {
            stderr.read_to_string(&mut log).unwrap();
        }
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
