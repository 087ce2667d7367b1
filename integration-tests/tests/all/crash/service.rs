//! The real binary, started, killed and stopped.

use std::fs::{OpenOptions, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

/// A graceful shutdown takes at most 25 s.
const STOP: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Service {
    binary: PathBuf,
    dsn: Option<String>,
    address: String,
    log: PathBuf,
    process: Option<Child>,
    home: TempDir,
    data_dir: PathBuf,
    more: Vec<(&'static str, String)>,
    open_files: Option<u32>,
}

impl Service {
    /// A service that is not started yet; without a DSN it uses an embedded database.
    pub(crate) fn new(folder: &Path, dsn: Option<&str>) -> Self {
        let binary = std::env::var_os("CALLBOARD_BIN");
        let binary =
            binary.expect("CALLBOARD_BIN is not set: run `cargo xtask test`, which builds the binary");
        let home = TempDir::new().unwrap();
        // As root, the embedded database runs as another user, who needs access.
        std::fs::set_permissions(home.path(), Permissions::from_mode(0o711)).unwrap();
        Self {
            binary: binary.into(),
            dsn: dsn.map(ToOwned::to_owned),
            address: format!("127.0.0.1:{}", free_port()),
            log: folder.join("service.log"),
            process: None,
            data_dir: home.path().canonicalize().unwrap().join("data"),
            home,
            more: Vec::new(),
            open_files: None,
        }
    }

    /// Names the log, for several services in the same folder.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.log.set_file_name(format!("{name}.log"));
        self
    }

    /// Sets a configuration variable.
    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        self.more.push((name, value));
    }

    /// Limits its open files.
    pub(crate) fn limit_open_files(&mut self, limit: u32) {
        self.open_files = Some(limit);
    }

    /// Its complete log.
    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) fn start(&mut self) {
        let (host, port) = self.address.split_once(':').unwrap();
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let mut command = match self.open_files {
            None => Command::new(&self.binary),
            Some(limit) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("ulimit -n {limit}; exec \"$0\" \"$@\"")).arg(&self.binary);
                shell
            }
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SERVICE_") && name != "SERVICE_PG_BIN" {
                command.env_remove(name);
            }
        }
        command.arg("serve").current_dir(self.home.path());
        command.env("SERVICE_HOST", host).env("SERVICE_PORT", port).env("SERVICE_DATA_DIR", &self.data_dir);
        // All clients share one address and some of them are fast.
        for limit in ["IP", "WORKFLOW", "SESSION"] {
            command.env(format!("SERVICE_CHAT_RATE_LIMIT_{limit}"), "0");
        }
        command.env("SERVICE_CHAT_MAX_STREAMS", "0");
        if let Some(dsn) = &self.dsn {
            command.env("SERVICE_POSTGRES_DSN", dsn);
        }
        command.envs(self.more.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        assert_eq!(
            process.try_wait().unwrap(),
            None,
            "the service ended unexpectedly; see {}",
            self.log.display()
        );
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Sends SIGTERM, and expects an exit in time with status 0.
    pub(crate) fn stop(mut self) {
        self.shut_down();
    }

    /// Like [`Self::stop`]; the service may be started again.
    pub(crate) fn shut_down(&mut self) {
        self.terminate();
        let status = self.ended(STOP);
        assert!(status.success(), "{status} after SIGTERM; see {}", self.log.display());
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        signal("TERM", self.process.as_ref().unwrap().id());
    }

    /// The exit status, which must arrive within `limit`.
    pub(crate) fn ended(&mut self, limit: Duration) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status;
            }
            if waited > limit {
                process.kill().unwrap();
                panic!("still running after {limit:?}; see {}", self.log.display());
            }
            std::thread::sleep(POLL);
            waited += POLL;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Some((pid, _)) = postmaster(&self.data_dir) {
            signal("QUIT", pid);
            signal("CONT", pid);
        }
    }
}

/// Sends SIGKILL to the embedded database itself.
pub(crate) fn kill_postmaster(data_dir: &Path) {
    let (pid, _) = postmaster(data_dir).expect("the embedded database runs");
    signal("KILL", pid);
}

/// Sends SIGSTOP to the embedded database: only SIGKILL ends it until it continues.
pub(crate) fn suspend_postmaster(data_dir: &Path) {
    let (pid, _) = postmaster(data_dir).expect("the embedded database runs");
    signal("STOP", pid);
}

/// Sends a signal through the shell, which every machine has.
fn signal(name: &str, pid: u32) {
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
}

/// The DSN of a data folder's embedded database, while it runs.
pub(crate) fn embedded_dsn(data_dir: &Path) -> Option<String> {
    postmaster(data_dir).map(|(_, dsn)| dsn)
}

fn postmaster(data_dir: &Path) -> Option<(u32, String)> {
    let text = std::fs::read_to_string(data_dir.join("postgres/postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let (pid, port, socket) = (lines.first()?, lines.get(3)?, lines.get(4)?);
    Some((pid.trim().parse().ok()?, format!("host={socket} port={port} user=callboard dbname=callboard")))
}

/// A port that stays ours over restarts: below the range for outgoing connections, otherwise a client that tries to
/// connect during the downtime could occupy it.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(64);
    let numbers = std::iter::repeat_with(|| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
    let candidates = numbers.take(10_000).filter_map(|n| u16::try_from(20_000 + n % 10_000).ok());
    let mut free = candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
}
