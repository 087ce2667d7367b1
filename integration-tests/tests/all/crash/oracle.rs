//! The outside process: `integration-tests/oracle/chat_oracle.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

pub(super) struct Oracle {
    process: Child,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

fn script() -> Command {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        let install = std::env::var("CALLBOARD_MISSING_PYTHON3");
        panic!("python3 is not installed: run `{}`", install.as_deref().unwrap_or("cargo xtask test"));
    }
    let mut command = Command::new("python3");
    command.arg("-B").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/chat_oracle.py"));
    command
}

pub(super) fn self_test() {
    succeeds(script().arg("self-test"), "the oracle's self-test");
}

/// Compares stored data with the history of a run.
pub(super) fn audit(folder: &Path, stored: &str, snapshot: &str) {
    let (dump, middle) = (folder.join("stored.json"), folder.join("middle.json"));
    std::fs::write(&dump, stored).unwrap();
    std::fs::write(&middle, format!(r#"{{"name": "middle", "items": {snapshot}}}"#)).unwrap();
    let mut audit = script();
    audit.arg("audit").arg("--history").arg(history(folder)).arg("--dump").arg(dump);
    audit.arg("--workflows").arg(workflows(folder));
    if snapshot != "[]" {
        audit.arg("--snapshot").arg(middle);
    }
    succeeds(&mut audit, "the audit");
}

fn succeeds(command: &mut Command, program: &str) {
    let output = command.output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} reported problems, see above: {command:?} {errors}");
}

fn history(folder: &Path) -> PathBuf {
    folder.join("history.jsonl")
}

fn workflows(folder: &Path) -> PathBuf {
    folder.join("workflows.json")
}

impl Oracle {
    pub(super) fn start(address: &str, folder: &Path, clients: u64, seed: u64) -> Self {
        let mut process = script()
            .args([
                "run",
                "--address",
                address,
                "--seed",
                &seed.to_string(),
                "--clients",
                &clients.to_string(),
            ])
            .arg("--history")
            .arg(history(folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers, folder: folder.to_owned() }
    }

    /// Starts a process and waits until the oracle finds it ready; returns the seconds. The first start also creates
    /// the database, so it is not measured.
    pub(super) fn measure_start(&mut self, first: bool, start: impl FnOnce()) -> f64 {
        self.write_command(if first { "starting cold" } else { "starting" });
        start();
        let answer = self.answer();
        answer["ready"].as_f64().unwrap_or_else(|| {
            let log = std::fs::read_to_string(self.folder.join("service.log")).unwrap_or_default();
            let last = log.lines().rev().take(20).collect::<Vec<_>>();
            panic!("not ready: {answer}; the last lines of its log, newest first: {last:#?}")
        })
    }

    /// Starts the clients' chats with these workflows.
    pub(super) fn start_clients(&mut self, chosen: &Value) {
        let file = workflows(&self.folder);
        std::fs::write(&file, chosen.to_string()).unwrap();
        self.write_command(&format!("go {}", file.display()));
        self.answer();
    }

    /// Announces a snapshot of the tables.
    pub(super) fn mark(&mut self, name: &str) {
        self.write_command(&format!("mark {name}"));
        self.answer();
    }

    /// Waits for the end of every turn; returns the oracle's report.
    pub(super) fn finish(&mut self) -> Value {
        self.write_command("finish");
        let report = self.answer();
        assert!(self.process.wait().unwrap().success());
        report
    }

    fn write_command(&mut self, command: &str) {
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{command}").unwrap();
        input.flush().unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("the oracle has ended; its last line was {line:?}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
