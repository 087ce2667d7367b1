//! Runs commands: a temporary home, and the binary.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use integration_tests::{TestService, within};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdout, Command};

/// A home with a user's settings, and a service's address.
pub(super) struct Terminal {
    home: Arc<TempDir>,
    address: String,
    token: Option<String>,
}

/// The result of a command.
pub(super) struct CommandResult {
    pub(super) status: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Terminal {
    pub(super) fn for_service(t: &TestService) -> Self {
        Self::at(&format!("http://{}", t.address()))
    }

    pub(super) fn at(address: &str) -> Self {
        Self { home: Arc::new(TempDir::new().unwrap()), address: address.to_owned(), token: None }
    }

    /// Another terminal with the same home and this token in its environment.
    pub(super) fn with_token(&self, token: &str) -> Self {
        let (home, address) = (Arc::clone(&self.home), self.address.clone());
        Self { home, address, token: Some(token.to_owned()) }
    }

    /// The service's address.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A path in the home.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file into the working folder; returns its name.
    pub(super) fn file(&self, name: &str, text: impl ToString) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.to_string()).unwrap();
        name.to_owned()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("SERVICE_") || text.starts_with("CLICOLOR") || text == "NO_COLOR" {
                command.env_remove(&name);
            }
        }
        command.args(arguments).current_dir(self.home.path()).kill_on_drop(true);
        command.env("SERVICE_API_URL", &self.address).env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.envs(self.token.as_ref().map(|token| ("SERVICE_SERVICE_TOKEN", token)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> CommandResult {
        finish(self.command(arguments)).await
    }

    /// Runs a command with this text on standard input.
    pub(super) async fn type_in(&self, arguments: &[&str], text: &str) -> CommandResult {
        self.type_later(arguments, async { text.to_owned() }).await
    }

    /// Runs a command whose standard input becomes known only after its start. A command that does not wait for input
    /// may have ended by then.
    pub(super) async fn type_later(
        &self,
        arguments: &[&str],
        text: impl Future<Output = String>,
    ) -> CommandResult {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(text.await.as_bytes()).await;
        ended(child).await
    }

    /// Runs a command that must succeed; returns its standard output.
    pub(super) async fn output_of(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.err);
        ran.out
    }

    /// Runs a command that must succeed; returns its standard output as JSON.
    pub(super) async fn json_of(&self, arguments: &[&str]) -> Value {
        super::json_of(&self.output_of(arguments).await)
    }

    /// Starts a command.
    pub(super) fn start(&self, arguments: &[&str]) -> RunningCommand {
        RunningCommand::spawn(self.command(arguments), &self.home)
    }

    /// Starts a command at a terminal with keys; `script` provides it. Without `exec`, some shells stay in between and
    /// return their own status after Ctrl-C.
    pub(super) fn start_at_a_terminal(&self, arguments: &str) -> RunningCommand {
        let plain = self.command(&[]);
        let mut command = Command::new("script");
        command.args(["-qfec", &format!("exec {} {arguments}", binary().display()), "/dev/null"]);
        command.current_dir(self.home.path()).env("TERM", "xterm").kill_on_drop(true);
        for (name, value) in plain.as_std().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let install = std::env::var("CALLBOARD_MISSING_SCRIPT");
        assert!(install.is_err(), "`script` is not installed: run `{}`", install.unwrap_or_default());
        RunningCommand::spawn(command, &self.home)
    }
}

/// A running command.
pub(super) struct RunningCommand {
    child: Child,
    output: ChildStdout,
    seen: Vec<u8>,
    /// The end of the examined output.
    examined: usize,
    /// The working folder, which must exist as long as the command runs.
    _home: Arc<TempDir>,
}

impl RunningCommand {
    fn spawn(mut command: Command, home: &Arc<TempDir>) -> Self {
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        Self { child, output, seen: Vec::new(), examined: 0, _home: Arc::clone(home) }
    }

    /// Reads standard output until this text follows the earlier output.
    pub(super) async fn until(&mut self, text: &str) {
        let mut bytes = [0; 1024];
        loop {
            let new = &self.seen[self.examined..];
            if let Some(at) = new.windows(text.len()).position(|bytes| bytes == text.as_bytes()) {
                self.examined += at + text.len();
                return;
            }
            let read = within(text, self.output.read(&mut bytes)).await.unwrap();
            assert!(read > 0, "it ended before `{text}`: {}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&bytes[..read]);
        }
    }

    pub(super) fn interrupt(&self) {
        let pid = self.child.id().unwrap();
        let kill = std::process::Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status();
        assert!(kill.unwrap().success());
    }

    pub(super) async fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).await.unwrap();
    }

    /// Closes the reading end of standard output, and waits for the command's end.
    pub(super) async fn without_reader(self) -> CommandResult {
        drop(self.output);
        ended(self.child).await
    }

    pub(super) async fn end(mut self) -> CommandResult {
        within("the command to end", self.output.read_to_end(&mut self.seen)).await.unwrap();
        let mut ran = ended(self.child).await;
        ran.out = String::from_utf8(self.seen).unwrap();
        ran
    }
}

async fn finish(mut command: Command) -> CommandResult {
    ended(command.spawn().unwrap()).await
}

async fn ended(child: Child) -> CommandResult {
    let output = within("a command", child.wait_with_output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandResult { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn binary() -> PathBuf {
    std::env::var_os("CALLBOARD_BIN")
        .expect("CALLBOARD_BIN is not set: run `cargo xtask test`, which builds the binary")
        .into()
}
