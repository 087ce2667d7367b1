//! One private PostgreSQL cluster for a whole test run: created, started, handed out by its socket, removed.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::run;

/// The name prefix for test cluster folders; the creator's process id follows.
const PREFIX: &str = "callboard-test-";
/// A system's socket path may have about 104 bytes; this leaves room for the socket's own name.
const LONGEST_FOLDER: usize = 80;
/// The start timeout is 30 s: a loaded machine is slow; a broken one exits instead.
const START_POLLS: u32 = 600;
const POLL: Duration = Duration::from_millis(50);

/// A running cluster; dropping it stops the server and removes its folder.
pub(crate) struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    server: Option<Child>,
    owner: Option<(u32, u32)>,
    /// Held as long as this process lives, so that a later run can distinguish a dead run's cluster from a live one.
    _lock: File,
}

/// The folder with PostgreSQL's server programs: from `SERVICE_PG_BIN`, else Debian's newest, else from the `PATH`.
pub(crate) fn binaries() -> Option<PathBuf> {
    let mut debian: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    debian.sort_by(|a, b| b.cmp(a));
    let path = env::var_os("PATH").unwrap_or_default();
    env::var_os("SERVICE_PG_BIN")
        .map(PathBuf::from)
        .into_iter()
        .chain(debian.into_iter().map(|(_, bin)| bin))
        .chain(env::split_paths(&path))
        .find(|bin| ["initdb", "postgres", "pg_ctl"].iter().all(|program| bin.join(program).is_file()))
}

impl Cluster {
    /// Creates and starts a cluster; the server logs to `log`, which outlives the cluster.
    ///
    /// # Errors
    /// When no folder can be created, `initdb` fails, or the server does not start.
    pub(crate) fn start(bin: PathBuf, log: &Path) -> Result<Self> {
        Self::start_in(&base(), bin, log)
    }

    /// Starts a cluster whose commits reach a disk, as in production.
    #[cfg(feature = "bench")]
    pub(crate) fn start_on_disk(bin: PathBuf, log: &Path) -> Result<Self> {
        Self::start_in(&env::temp_dir(), bin, log)
    }

    fn start_in(base: &Path, bin: PathBuf, log: &Path) -> Result<Self> {
        let owner = if run::is_root() { Some(unprivileged()?) } else { None };
        sweep(&bin, owner);
        let (folder, lock) = make_folder(base, owner)?;
        // From here on, `Drop` removes everything created so far.
        let mut cluster = Self { bin, folder, server: None, owner, _lock: lock };
        let data = cluster.data();
        // A throw-away cluster can do without initdb's durable syncs.
        run::output(
            cluster
                .program("initdb")
                .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"])
                .arg("-D")
                .arg(&data),
        )?;
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent)?;
        }
        let log_file = File::create(log).with_context(|| log.display().to_string())?;
        let mut server = cluster.program("postgres");
        server.arg("-D").arg(&data).stdin(Stdio::null()).stdout(log_file.try_clone()?).stderr(log_file);
        for setting in cluster.settings() {
            server.arg("-c").arg(setting);
        }
        cluster.server = Some(server.spawn().context("starting postgres")?);
        cluster.wait_until_ready(log)?;
        Ok(cluster)
    }

    /// The connection string for tests.
    pub(crate) fn dsn(&self) -> String {
        format!("host={} port=5432 user=postgres dbname=postgres", self.folder.display())
    }

    /// The server's process id.
    #[cfg(feature = "bench")]
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// fsync, full_page_writes and synchronous_commit keep their defaults: the service refuses to start without them.
    /// The folder is in memory if there is room, so they cost little.
    fn settings(&self) -> [String; 6] {
        [
            "listen_addresses=".to_owned(),
            "port=5432".to_owned(),
            format!("unix_socket_directories={}", self.folder.display()),
            "max_connections=500".to_owned(),
            // The default keeps a gigabyte of log, possibly more than the available memory.
            "max_wal_size=256MB".to_owned(),
            "timezone=UTC".to_owned(),
        ]
    }

    fn program(&self, name: &str) -> Command {
        program(&self.bin, name, &self.folder, self.owner)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<()> {
        let pid_file = self.data().join("postmaster.pid");
        for _ in 0..START_POLLS {
            // `pg_ctl -w` also reads this file's last line.
            if fs::read_to_string(&pid_file).is_ok_and(|text| text.trim_end().ends_with("ready")) {
                return Ok(());
            }
            if let Some(server) = &mut self.server
                && let Some(status) = server.try_wait()?
            {
                bail!("postgres ended ({status}): {}", fs::read_to_string(log).unwrap_or_default().trim());
            }
            thread::sleep(POLL);
        }
        bail!("postgres was not ready after {:?}; see {}", POLL * START_POLLS, log.display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Immediate: no reader needs this data again. When pg_ctl cannot, the kernel can.
            if stop(&self.bin, &self.folder, self.owner).is_err() {
                server.kill().ok();
            }
            server.wait().ok();
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("failed to remove {}: {error}", self.folder.display());
        }
    }
}

fn program(bin: &Path, name: &str, folder: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = run::command(bin.join(name));
    // The unprivileged user may be unable to enter the caller's folder.
    command.current_dir(folder);
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

fn stop(bin: &Path, folder: &Path, owner: Option<(u32, u32)>) -> Result<()> {
    let mut command = program(bin, "pg_ctl", folder, owner);
    run::output(
        command.args(["stop", "-s", "-w", "-t", "20", "-m", "immediate", "-D"]).arg(folder.join("data")),
    )?;
    Ok(())
}

/// The user and group to run PostgreSQL as, because it refuses to run as root.
fn unprivileged() -> Result<(u32, u32)> {
    let id = |flag: &str, user: &str| -> Result<u32> {
        Ok(run::output(run::command("id").args([flag, user]))?.parse()?)
    };
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|user| Some((id("-u", user).ok()?, id("-g", user).ok()?)))
        .context("root needs a user to run PostgreSQL as: neither `postgres` nor `nobody` exists")
}

/// `/dev/shm` if it has more than a gigabyte free, otherwise the folder for temporary files.
fn base() -> PathBuf {
    let free = || -> Option<u64> {
        let table = run::output(run::command("df").args(["-Pk", "/dev/shm"])).ok()?;
        table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
    };
    if free().is_some_and(|kib| kib > 1024 * 1024) { PathBuf::from("/dev/shm") } else { env::temp_dir() }
}

/// A folder that only the server's user can enter, and the lock that shows that its creator is alive.
fn make_folder(base: &Path, owner: Option<(u32, u32)>) -> Result<(PathBuf, File)> {
    let name = format!("{PREFIX}{}", std::process::id());
    let folder = base.join(&name);
    ensure!(folder.as_os_str().len() <= LONGEST_FOLDER, "{} is too long for a socket", folder.display());
    // Under its final name, the folder always has a lock, so other runs do not consider it orphaned.
    let unfinished = base.join(format!(".{name}"));
    DirBuilder::new().mode(0o700).create(&unfinished).with_context(|| unfinished.display().to_string())?;
    let lock = File::create(unfinished.join("lock"))?;
    lock.try_lock().context("locking a new file")?;
    if let Some((user, group)) = owner {
        chown(&unfinished, Some(user), Some(group))?;
    }
    fs::rename(&unfinished, &folder)?;
    Ok((folder, lock))
}

/// Stops and removes killed runs' clusters. Leaves all other folders alone.
fn sweep(bin: &Path, owner: Option<(u32, u32)>) {
    for base in [Path::new("/dev/shm"), &env::temp_dir()] {
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let folder = entry.path();
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            if !ours || !File::open(folder.join("lock")).is_ok_and(|lock| lock.try_lock().is_ok()) {
                continue;
            }
            // Its server may have outlived its creator. Without a server this fails, which is harmless.
            stop(bin, &folder, owner).ok();
            if fs::remove_dir_all(&folder).is_ok() {
                println!("removed {}, left by a run that was killed", folder.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_running_process_is_kept_and_of_a_dead_one_is_free() {
        let base = env::temp_dir().join(format!("x{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let (folder, lock) = make_folder(&base, None).unwrap();
        let other = File::open(folder.join("lock")).unwrap();
        let while_living = other.try_lock().is_err();
        drop(lock);
        let once_dead = other.try_lock().is_ok();
        fs::remove_dir_all(&base).unwrap();
        assert!(while_living);
        assert!(once_dead);
    }
}
