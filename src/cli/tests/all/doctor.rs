//! `callboard doctor` with real faults.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, callboard, folder, text};

/// The doctor's output, for people and for programs.
struct Report {
    status: Option<i32>,
    human: String,
    checks: Vec<Value>,
}

fn doctor(folder: &tempfile::TempDir, more: &[&str], variables: &[(&str, &str)]) -> Report {
    let run = |output: &str| -> Output {
        let mut arguments = vec!["doctor", "--output", output];
        arguments.extend(more);
        callboard(folder, &arguments, variables).output().unwrap()
    };
    let (human, json) = (run("human"), run("json"));
    assert_eq!(human.status.code(), json.status.code());
    let read: Value =
        serde_json::from_slice(&json.stdout).unwrap_or_else(|_| panic!("{}", text(&json.stderr)));
    let problems = read["problems"].as_u64().unwrap();
    assert_eq!(human.status.code(), Some(i32::from(problems > 0)), "{}", text(&human.stdout));
    assert_eq!(text(&human.stderr).is_empty(), problems == 0, "{}", text(&human.stderr));
    let checks = read["checks"].as_array().unwrap().clone();
    Report { status: human.status.code(), human: text(&human.stdout), checks }
}

impl Report {
    /// Level, message and remedy of a check's worst finding.
    fn worst_finding(&self, check: &str) -> (String, String, String) {
        let rank = |level: &str| ["ok", "skipped", "warning", "problem"].iter().position(|one| *one == level);
        let found = self.checks.iter().filter(|one| one["check"] == check);
        let worst = found.max_by_key(|one| rank(one["level"].as_str().unwrap()));
        let worst = worst.unwrap_or_else(|| panic!("no {check}: {}", self.human));
        let member = |name: &str| worst[name].as_str().unwrap_or_default().to_owned();
        (member("level"), member("message"), member("remedy"))
    }

    fn level(&self, check: &str) -> String {
        self.worst_finding(check).0
    }

    fn assert_problem(&self, check: &str, message: &str, remedy: &str) {
        let (level, found, cure) = self.worst_finding(check);
        assert!(level == "problem" && found.contains(message) && cure.contains(remedy), "{}", self.human);
        assert_eq!(self.status, Some(1));
    }
}

/// A running service with its own database and a known port.
struct Service {
    running: Running,
    port: String,
    folder: tempfile::TempDir,
}

impl Service {
    fn start() -> Self {
        let folder = folder();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let variables = [("SERVICE_PORT", port.as_str()), ("SERVICE_LOG", "error")];
        let mut running = Running::start(callboard(&folder, &["serve"], &variables));
        running.line("listening on ");
        Self { running, port, folder }
    }

    fn doctor(&self, more: &[&str], variables: &[(&str, &str)]) -> Report {
        let mut all = vec![("SERVICE_PORT", self.port.as_str())];
        all.extend_from_slice(variables);
        doctor(&self.folder, more, &all)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.running.signal(Signal::INT);
        self.running.end();
    }
}

/// A server that answers each connection with `answer`, which receives the request's head.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            answer(&text(&head), &mut stream);
        }
    });
    address
}

fn closed_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_running_service_passes_all_checks_unchanged() {
    let service = Service::start();
    let base = format!("http://127.0.0.1:{}", service.port);
    let report = service.doctor(&["--url", &base], &[]);
    assert_eq!(report.status, Some(0), "{}", report.human);
    for check in [
        "configuration",
        "data folder",
        "secret files",
        "database",
        "database TLS",
        "database role",
        "row security",
        "migrations",
        "connections",
        "clock",
        "address",
        "readiness",
        "streams",
    ] {
        assert_eq!(report.level(check), "ok", "{check}: {}", report.human);
    }
    assert_eq!(report.level("model endpoint"), "skipped");
    assert!(
        report.worst_finding("data folder").1.contains("held by the running service (process "),
        "{}",
        report.human
    );
    assert!(report.worst_finding("clock").1.contains("the database's is within "), "{}", report.human);
    assert!(report.human.contains("ok       migrations       up to date\n"), "{}", report.human);
    assert!(!report.human.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_open_file_limit_is_reported_with_its_connections() {
    let folder = folder();
    let report = |limit: u32| {
        let unlimited = callboard(&folder, &["doctor", "--output", "json"], &[]);
        let variables = unlimited.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(unlimited.get_program())
            .args(unlimited.get_args())
            .current_dir(folder.path())
            .env_clear()
            .envs(variables)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = report["checks"].as_array().unwrap().iter();
        checks.find(|one| one["check"] == "open files").expect("a finding").clone()
    };
    let few = report(256);
    assert_eq!(few["level"], "warning", "{few}");
    assert_eq!(few["message"], "at most 256, for 128 connections of clients");
    assert!(few["remedy"].as_str().unwrap().contains("LimitNOFILE="), "{few}");
    let enough = report(4_096);
    assert_eq!(enough["level"], "ok", "{enough}");
    assert_eq!(enough["message"], "at most 4096, for 3072 connections of clients");
}

#[test]
fn only_a_buffering_proxy_is_reported() {
    let service = Service::start();
    let upstream = format!("127.0.0.1:{}", service.port);
    let forward = |buffers: bool| {
        let upstream = upstream.clone();
        server(move |head, stream| {
            let mut to = TcpStream::connect(&upstream).unwrap();
            // One request per connection, so that the end is where the service closes.
            to.write_all(head.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).unwrap();
            if buffers {
                let mut whole = Vec::new();
                to.read_to_end(&mut whole).unwrap();
                let _ = stream.write_all(&whole);
            } else {
                let _ = std::io::copy(&mut to, stream);
            }
        })
    };
    let held = service.doctor(&["--url", &format!("http://{}", forward(true))], &[]);
    held.assert_problem("streams", "buffers streams: 5 pieces sent within 2000 ms", "proxy_buffering off");
    let passed = service.doctor(&[], &[("SERVICE_PUBLIC_BASE_URL", &format!("http://{}", forward(false)))]);
    // If the machine paused for a moment, two pieces may have arrived together.
    assert_ne!(passed.level("streams"), "problem", "{}", passed.human);
    let closed = service.doctor(&["--url", &format!("http://{}", closed_port())], &[]);
    closed.assert_problem("streams", "no stream was received through", "start the service");
}

#[test]
fn a_data_folder_that_is_a_file_and_a_closed_database_port_are_reported() {
    let folder = folder();
    std::fs::write(folder.path().join("data"), "").unwrap();
    let dsn = format!("postgres://u:hunter2@{}/d", closed_port());
    let report = doctor(&folder, &[], &[("SERVICE_POSTGRES_DSN", &dsn)]);
    report.assert_problem("data folder", "is a file, not a folder", "set SERVICE_DATA_DIR to a folder");
    report.assert_problem("database", "nothing listens at 127.0.0.1:", "start PostgreSQL there");
    assert!(!report.human.contains("hunter2"), "{}", report.human);
    assert!(folder.path().join("data").is_file());
}

#[test]
fn the_doctor_creates_no_folder_and_starts_no_embedded_database() {
    let folder = folder();
    let report = doctor(&folder, &[], &[]);
    assert_eq!(report.status, Some(0), "{}", report.human);
    assert!(
        report.worst_finding("data folder").1.ends_with("does not exist yet and can be created"),
        "{}",
        report.human
    );
    assert!(
        report.worst_finding("database").1.contains("will be created at the first start"),
        "{}",
        report.human
    );
    assert_eq!(report.level("readiness"), "skipped");
    assert!(!folder.path().join("data").exists());
    let none = doctor(&folder, &[], &[("SERVICE_PG_BIN", "/nowhere")]);
    none.assert_problem("database", "SERVICE_PG_BIN names /nowhere, which cannot be used", "");
}

#[test]
fn a_port_of_another_program_is_reported() {
    let folder = folder();
    let other = server(|_, stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")));
    let port = other.rsplit(':').next().unwrap();
    let report = doctor(&folder, &[], &[("SERVICE_PORT", port)]);
    report.assert_problem(
        "address",
        &format!("another program already listens on port {port}"),
        "set SERVICE_PORT",
    );
    let open = doctor(&folder, &[], &[("SERVICE_HOST", "0.0.0.0")]);
    open.assert_problem("address", "", "");
    assert!(
        open.worst_finding("address").1.contains("SERVICE_")
            || open.worst_finding("address").2.contains("SERVICE_"),
        "{}",
        open.human
    );
}

#[test]
fn a_model_endpoint_is_checked_with_its_key_which_is_not_printed() {
    let folder = folder();
    let endpoint = server(|head, stream| {
        let good = head.starts_with("GET /v1/models ") && head.contains("Bearer good-key-8715");
        let answer = if good {
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 25\r\n\r\n{\"data\": [{\"id\": \"small\"}]}"
        } else {
            "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        };
        let _ = stream.write_all(answer.replace("length: 25", "length: 27").as_bytes());
    });
    let ask = |base: &str, key: &str| {
        let report =
            doctor(&folder, &[], &[("SERVICE_MODEL_BASE_URL", base), ("SERVICE_MODEL_API_KEY", key)]);
        assert!(key.is_empty() || !report.human.contains(key), "{}", report.human);
        report
    };
    let base = format!("http://{endpoint}/v1");
    let good = ask(&base, "good-key-8715");
    assert_eq!(good.status, Some(0), "{}", good.human);
    assert!(good.worst_finding("model endpoint").1.contains("lists 1 models"), "{}", good.human);
    ask(&base, "bad-key-5178").assert_problem(
        "model endpoint",
        "rejects the key (401",
        "SERVICE_MODEL_API_KEY",
    );
    ask(&base, "").assert_problem("model endpoint", "requires a key (401", "SERVICE_MODEL_API_KEY");
    let stopped = ask(&format!("http://{}/v1", closed_port()), "good-key-8715");
    stopped.assert_problem("model endpoint", "not reachable", "SERVICE_MODEL_BASE_URL");
}

#[test]
fn configuration_problems_and_open_secrets_have_lines_with_remedies() {
    let folder = folder();
    let report = doctor(&folder, &[], &[("SERVICE_PORT", "eighty"), ("SERVICE_LOG", "loud")]);
    let problems: Vec<&Value> = report.checks.iter().filter(|one| one["level"] == "problem").collect();
    assert_eq!(problems.len(), 2, "{}", report.human);
    assert!(problems.iter().all(|one| one["remedy"].is_string() && one["check"] == "configuration"));
    assert_eq!(report.level("all the rest"), "skipped");
    let file = folder.path().join(".env");
    std::fs::write(&file, "SERVICE_MODEL_API_KEY=open-key\nSERVICE_NOBODY=1\n").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let report = doctor(&folder, &[], &[]);
    assert_eq!(report.status, Some(0), "warnings are not problems: {}", report.human);
    let (level, message, remedy) = report.worst_finding("secret files");
    assert_eq!((level.as_str(), remedy.as_str()), ("warning", "chmod 600 .env"));
    assert!(message.contains("mode 644"), "{message}");
    assert_eq!(report.level("configuration"), "warning");
    assert_eq!(report.level("model endpoint"), "warning", "a key without an endpoint");
}

#[test]
fn the_metadata_of_a_provider_is_checked() {
    let answers = |body: &'static str| {
        server(move |head, stream| {
            let issuer = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
            assert!(head.starts_with("GET /.well-known/openid-configuration "), "{head}");
            let body = body.replace("[issuer]", &format!("http://{issuer}"));
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        })
    };
    let service = Service::start();
    let check_issuer = |address: &str| {
        let issuer = format!("http://{address}");
        service.doctor(
            &[],
            &[
                ("SERVICE_OIDC_ISSUER", issuer.as_str()),
                ("SERVICE_OIDC_CLIENT_ID", "desk"),
                ("SERVICE_OIDC_CLIENT_SECRET", "canary-7QxZ"),
            ],
        )
    };
    let check = "OpenID provider";
    let good = r#"{"issuer":"[issuer]","authorization_endpoint":"[issuer]/a","token_endpoint":"[issuer]/t","jwks_uri":"[issuer]/j"}"#;
    let report = check_issuer(&answers(good));
    assert_eq!(report.level(check), "ok", "{}", report.human);
    assert!(!report.human.contains("canary"), "{}", report.human);
    let slash = r#"{"issuer":"[issuer]/","authorization_endpoint":"[issuer]/a","token_endpoint":"[issuer]/t","jwks_uri":"[issuer]/j"}"#;
    check_issuer(&answers(slash)).assert_problem(check, "differs from SERVICE_OIDC_ISSUER", "exactly");
    check_issuer(&closed_port()).assert_problem(check, "not reachable", "SERVICE_OIDC_ISSUER");
    assert!(!service.doctor(&[], &[]).human.contains(check), "unconfigured parts are not mentioned");
}

/// A server that answers every request with this body.
fn answering(body: String) -> String {
    server(move |_, stream| {
        let length = body.len();
        let _ =
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    })
}

#[test]
fn a_key_set_is_fetched_and_its_keys_are_counted() {
    let service = Service::start();
    let check_url = |address: &str| {
        let url = format!("http://{address}/keys");
        service.doctor(&[], &[("SERVICE_AUTH_JWKS_URL", url.as_str())])
    };
    // The key from RFC 7515, A.2.
    let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let good = format!(r#"{{"keys":[{{"kty":"RSA","kid":"one","n":"{n}","e":"AQAB"}}]}}"#);
    let report = check_url(&answering(good));
    assert_eq!(report.worst_finding("key set").1, "it has 1 for RS256", "{}", report.human);
    check_url(&answering(r#"{"keys":[]}"#.to_owned())).assert_problem("key set", "no key", "RSA");
    check_url(&answering("<html>".to_owned())).assert_problem(
        "key set",
        "not a valid key set",
        "SERVICE_AUTH_JWKS_URL",
    );
    check_url(&closed_port()).assert_problem("key set", "not reachable", "SERVICE_AUTH_JWKS_URL");
    assert!(!service.doctor(&[], &[]).human.contains("key set"), "unconfigured parts are not mentioned");
}

/// A mail server that greets and gives this answer to `AUTH`.
fn mail_server(to_auth: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"220 here\r\n");
            let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream.try_clone().unwrap()));
            while let Some(Ok(line)) = lines.next() {
                let answer = match line.split(' ').next().unwrap_or_default() {
                    "EHLO" => "250-here\r\n250 AUTH PLAIN LOGIN\r\n",
                    "AUTH" => to_auth,
                    "QUIT" => "221 bye\r\n",
                    "MAIL" => panic!("a mail is sent"),
                    _ => "250 ok\r\n",
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

#[test]
fn the_login_at_a_mail_server_is_checked() {
    let service = Service::start();
    let check_server = |address: &str| {
        let url = format!("smtp://desk:canary-9LkP@{address}");
        service.doctor(&[], &[("SERVICE_SMTP_URL", url.as_str())])
    };
    let report = check_server(&mail_server("235 welcome\r\n"));
    assert_eq!(report.level("mail server"), "ok", "{}", report.human);
    for (address, expected) in
        [(mail_server("535 who are you\r\n"), "535"), (closed_port(), "mail cannot be sent")]
    {
        let report = check_server(&address);
        report.assert_problem("mail server", expected, "SERVICE_SMTP_URL");
        assert!(!report.human.contains("canary"), "{}", report.human);
    }
    assert_eq!(service.doctor(&[], &[]).level("mail server"), "skipped");
}

#[test]
fn a_vault_without_keys_is_reported_with_the_setting() {
    let folder = folder();
    let dsn = format!("postgres://nobody@{}/none", closed_port());
    let report = doctor(&folder, &[], &[("SERVICE_POSTGRES_DSN", &dsn)]);
    let (level, message, remedy) = report.worst_finding("vault");
    assert!(
        level == "warning" && message.contains("503") && remedy.contains("SERVICE_VAULT_KEYS"),
        "{}",
        report.human
    );
    let keys = r#"{"active": "first", "keys": {"first": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}"#;
    let report = doctor(&folder, &[], &[("SERVICE_POSTGRES_DSN", &dsn), ("SERVICE_VAULT_KEYS", keys)]);
    let (level, message, _) = report.worst_finding("vault");
    assert!(level == "ok" && message.contains("first") && !report.human.contains("AAAA"), "{}", report.human);
}
