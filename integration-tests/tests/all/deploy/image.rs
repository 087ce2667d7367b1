//! The container image: built without a daemon, and its root folder started as the image's user.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use integration_tests::{AnswerExt, BOOTSTRAP, Client, JSON, owner_of_all_databases};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};

use super::{require_program, run, shipped};

fn assemble(binary: &Path, folder: &Path) {
    run(Command::new("sh").arg(shipped("image.sh")).arg(binary).arg(folder));
}

#[test]
fn the_image_contains_the_binary_its_libraries_and_an_unprivileged_user() {
    require_program("buildah");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A small program with a library: the copied files do not depend on what the program does.
    assemble(Path::new("/bin/true"), &at("context"));
    let buildah = |arguments: &[&str]| {
        let mut command = Command::new("buildah");
        command
            .args(["--storage-driver", "vfs"])
            .arg("--root")
            .arg(at("storage"))
            .arg("--runroot")
            .arg(at("run"));
        command.args(arguments);
        command
    };
    let context = at("context").display().to_string();
    let file = shipped("Containerfile").display().to_string();
    run(&mut buildah(&["build", "--isolation", "chroot", "-q", "-t", "callboard", "-f", &file, &context]));
    let described = run(&mut buildah(&["inspect", "--type", "image", "callboard"]));
    let described: Value = serde_json::from_str(&described).unwrap();
    let config = &described["OCIv1"]["config"];
    assert_eq!(config["User"], "10001:10001");
    assert_eq!(
        (&config["Entrypoint"], &config["Cmd"]),
        (&json!(["/usr/local/bin/callboard"]), &json!(["serve"]))
    );
    assert_eq!(config["StopSignal"], "SIGTERM");
    let container = run(&mut buildah(&["from", "callboard"]));
    let root = run(&mut buildah(&["mount", container.trim()]));
    let root = Path::new(root.trim());
    let owner = run(Command::new("stat").args(["-c", "%u:%g %a"]).arg(root.join("var/lib/callboard")));
    assert_eq!(owner.trim(), "10001:10001 700");
    let files = run(Command::new("find").arg(root).args(["-type", "f", "-printf", "%P %m\n"]));
    let libraries = files.lines().filter(|file| file.contains(".so")).count();
    assert!(libraries >= 2, "{files}");
    let others: Vec<&str> = files.lines().filter(|file| !file.contains(".so")).collect();
    for file in [
        "usr/local/bin/callboard 755",
        "etc/ssl/certs/ca-certificates.crt 644",
        "etc/passwd 644",
        "etc/group 644",
    ] {
        assert!(others.contains(&file), "{file}: {files}");
    }
    assert_eq!(others.len(), 4, "{files}");
}

#[test]
fn foreign_folders_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    let mut script = Command::new("sh");
    let refused = script.arg(shipped("image.sh")).arg("/bin/true").arg(folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not a folder of this script"));
    assert_eq!(std::fs::read_to_string(folder.path().join("mine")).unwrap(), "mine");
}

/// The service in the image's root folder, as the image's user.
struct ContainedService(Child);

impl ContainedService {
    fn start(root: &Path, variables: &BTreeMap<&str, String>) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount"]);
        command.arg(format!("--mount-proc={}", root.join("proc").display()));
        command
            .args(["chroot", "--userspec=10001:10001"])
            .arg(root)
            .args(["/usr/local/bin/callboard", "serve"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).envs(variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// The printed address, or the error message.
    fn address(&mut self) -> Result<SocketAddr, String> {
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        match line.trim().strip_prefix("listening on http://") {
            Some(address) => Ok(address.parse().unwrap()),
            None => Err(std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap()),
        }
    }
}

impl Drop for ContainedService {
    fn drop(&mut self) {
        // Its child is the first process of a namespace, which ends with it.
        let id = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let _ = Command::new("kill").args(["-9", child]).status();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_runs_in_the_root_folder_of_the_image() {
    let uid = run(Command::new("id").arg("-u"));
    assert_eq!(uid.trim(), "0", "this test changes the root folder of a process: run the tests as root");
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    let binary = std::env::var("CALLBOARD_BIN").expect("CALLBOARD_BIN is not set: run `cargo xtask test`");
    assemble(Path::new(&binary), &context);
    // The parts that a container engine creates: the process folder, the device, and the volume.
    let root = context.join("root");
    std::fs::create_dir(root.join("proc")).unwrap();
    std::fs::create_dir(root.join("dev")).unwrap();
    run(Command::new("mknod").args(["-m", "666"]).arg(root.join("dev/null")).args(["c", "1", "3"]));
    std::fs::create_dir_all(root.join("var/lib")).unwrap();
    std::fs::rename(context.join("data/callboard"), root.join("var/lib/callboard")).unwrap();
    std::os::unix::fs::chown(root.join("var/lib/callboard"), Some(10_001), Some(10_001)).unwrap();
    run(Command::new("chmod").arg("755").arg(folder.path()));

    let database = owner_of_all_databases().await;
    let mut variables = BTreeMap::from([
        ("SERVICE_DATA_DIR", "/var/lib/callboard".to_owned()),
        ("SERVICE_PORT", "0".to_owned()),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", BOOTSTRAP.to_owned()),
    ]);
    // Without an external database, it names the variable to set.
    let error = ContainedService::start(&root, &variables).address().unwrap_err();
    assert!(error.contains("SERVICE_POSTGRES_DSN"), "{error}");

    variables.insert("SERVICE_POSTGRES_DSN", over_tcp(database.dsn()).await);
    let mut contained = ContainedService::start(&root, &variables);
    let address = contained.address().unwrap();
    let token = BOOTSTRAP.to_owned().into();
    let client = Client::builder(&format!("http://{address}")).service_token(token).build().unwrap();
    // Workflow code runs in the sandbox there.
    let body = json!({"name": "Twice", "handle": "twice"}).to_string();
    assert_eq!(client.send("POST", "/api/workflows", &[JSON], body).await.unwrap().status, 201);
    let node = json!({"name": "twice", "type": "code", "language": "python", "source": "2 * args", "args": "{{ inputs.n }}"});
    let graph = integration_tests::graphs::chain(&[node], Some(json!({"n": "{{ results.twice }}"})));
    let version = json!({"graph": graph}).to_string();
    client.send("POST", "/api/workflows/twice/versions", &[JSON], version).await.unwrap().expect(201);
    let inputs = json!({"inputs": {"n": 21}}).to_string();
    let ran = client.send("POST", "/api/workflows/twice/runs?wait=30", &[JSON], inputs).await.unwrap();
    assert_eq!(ran.value()["output"], json!({"n": 42}), "{}", ran.text());
}

/// A TCP DSN for a database that listens on a socket: the socket's folder is outside of the root folder.
async fn over_tcp(dsn: &str) -> String {
    let value =
        |name: &str| dsn.split(' ').find_map(|pair| pair.strip_prefix(name)).unwrap_or_default().to_owned();
    let (folder, port) = (value("host="), value("port="));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let relay = listener.local_addr().unwrap();
    let socket = format!("{folder}/.s.PGSQL.{port}");
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let other = |pair: &str| match pair.split_once('=') {
        Some(("host", _)) => "host=127.0.0.1".to_owned(),
        Some(("port", _)) => format!("port={}", relay.port()),
        _ => pair.to_owned(),
    };
    dsn.split(' ').map(other).collect::<Vec<_>>().join(" ")
}
