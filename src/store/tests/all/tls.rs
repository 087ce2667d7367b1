//! TLS, against a cluster with a certificate that no authority has signed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use store::StoreError;

use crate::support::{open, outsider, pause};

/// A second cluster; the tests' cluster has only a socket, and TLS needs TCP.
struct Cluster {
    folder: tempfile::TempDir,
    server: Child,
    port: u16,
}

impl Cluster {
    async fn start() -> Self {
        let bin = binaries();
        // The server's user needs access, and a socket path must be short.
        let folder = tempfile::Builder::new().prefix("cb-tls").tempdir_in("/tmp").unwrap();
        let owner = rustix::process::geteuid().is_root().then(|| (id("-u"), id("-g")));
        if let Some((user, group)) = owner {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let program = |name: &Path| {
            let mut command = Command::new(name);
            command.current_dir(folder.path()).stdin(Stdio::null());
            if let Some((user, group)) = owner {
                command.uid(user).gid(group);
            }
            command
        };
        let data = folder.path().join("data");
        let mut initdb = program(&bin.join("initdb"));
        run(initdb
            .args(["--auth=trust", "--username=postgres", "--no-locale", "--no-sync", "-D"])
            .arg(&data));
        run(program(Path::new("openssl"))
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .args(["-keyout", "data/server.key", "-out", "data/server.crt"]));
        fs::set_permissions(data.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut postgres = program(&bin.join("postgres"));
        postgres.arg("-D").arg(&data).stdout(Stdio::null()).stderr(log);
        for setting in ["listen_addresses=127.0.0.1", "ssl=on", "max_connections=20", "shared_buffers=4MB"] {
            postgres.arg("-c").arg(setting);
        }
        postgres.arg("-c").arg(format!("port={port}"));
        postgres.arg("-c").arg(format!("unix_socket_directories={}", folder.path().display()));
        let server = postgres.spawn().unwrap();
        let mut cluster = Self { folder, server, port };
        cluster.wait_until_ready().await;
        cluster
    }

    async fn wait_until_ready(&mut self) {
        for _ in 0..600 {
            let pid_file = self.folder.path().join("data/postmaster.pid");
            if fs::read_to_string(pid_file).is_ok_and(|text| text.trim_end().ends_with("ready")) {
                return;
            }
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(self.server.try_wait().unwrap().is_none(), "{log}");
            pause(Duration::from_millis(50)).await;
        }
        panic!("the cluster with TLS does not start");
    }

    fn dsn(&self, host: &str, mode: &str) -> String {
        format!("host={host} port={} user=postgres dbname=postgres sslmode={mode}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SIGQUIT stops it and its children at once.
        let pid = rustix::process::Pid::from_child(&self.server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.server.wait();
    }
}

fn binaries() -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = debian.map(|entry| entry.path().join("bin")).collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::var_os("SERVICE_PG_BIN")
        .map(PathBuf::from)
        .into_iter()
        .chain(debian.into_iter().rev())
        .chain(std::env::split_paths(&path))
        .find(|bin| bin.join("initdb").is_file() && bin.join("postgres").is_file())
        .expect("PostgreSQL's server programs: install postgresql, or set SERVICE_PG_BIN")
}

fn id(flag: &str) -> u32 {
    let ask = |user: &str| Command::new("id").args([flag, user]).output().ok().filter(|o| o.status.success());
    let output = ask("postgres").or_else(|| ask("nobody")).expect("a user to run PostgreSQL as");
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

fn run(command: &mut Command) {
    let output =
        command.output().unwrap_or_else(|error| panic!("install {:?}: {error}", command.get_program()));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The service's connections: with and without TLS.
async fn connections(cluster: &Cluster) -> (i64, i64) {
    let client =
        outsider(&format!("host={} port={} user=postgres", cluster.folder.path().display(), cluster.port))
            .await;
    let row = client
        .query_one(
            "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) \
             FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'callboard'",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn the_dsn_sets_encryption_and_server_verification() {
    let cluster = Cluster::start().await;
    for mode in ["require", "prefer", "allow"] {
        let store = open(&cluster.dsn("127.0.0.1", mode), 1).await.unwrap();
        let lane = store.lane().await.unwrap();
        store.ping().await.unwrap();
        // The connection that opened the database may still be closing.
        crate::support::until(mode, async || connections(&cluster).await == (2, 0)).await;
        drop((lane, store));
        crate::support::until("it is gone", async || connections(&cluster).await == (0, 0)).await;
    }
    for mode in ["verify-full", "verify-ca"] {
        for host in ["localhost", "127.0.0.1"] {
            let Err(error) = open(&cluster.dsn(host, mode), 1).await else { panic!("{mode} accepted it") };
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("certificate"), "{mode}: {text}");
        }
    }
    let store = open(&cluster.dsn("127.0.0.1", "disable"), 1).await.unwrap();
    store.ping().await.unwrap();
    crate::support::until("disable", async || connections(&cluster).await == (0, 1)).await;
}
