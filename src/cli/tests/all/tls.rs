//! A certificate for this machine, and a service that uses it for TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Running, callboard, folder, text};

fn file(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join("data/tls").join(name).display().to_string()
}

fn dev_tls_output(folder: &tempfile::TempDir, arguments: &[&str]) -> String {
    let output = callboard(folder, &[&["dev-tls"], arguments].concat(), &[]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_service_serves_tls_with_a_dev_tls_certificate() {
    let folder = folder();
    let output = dev_tls_output(&folder, &["--alias", "notes"]);
    for part in [
        "localhost, 127.0.0.1, ::1, apps.localhost, *.apps.localhost, notes.apps.localhost",
        "SERVICE_TLS_CERT=",
    ] {
        assert!(output.contains(part), "{output}");
    }
    for (name, mode) in
        [("authority.pem", 0o644), ("authority-key.pem", 0o600), ("cert.pem", 0o644), ("key.pem", 0o600)]
    {
        let found = std::fs::metadata(file(&folder, name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}");
    }
    let (cert, key, authority) =
        (file(&folder, "cert.pem"), file(&folder, "key.pem"), file(&folder, "authority.pem"));
    let variables = [("SERVICE_TLS_CERT", cert.as_str()), ("SERVICE_TLS_KEY", key.as_str())];
    let mut running = Running::start(callboard(&folder, &["serve"], &variables));
    let line = running.line("listening on ");
    let address = line.strip_prefix("listening on https://").expect(&line).to_owned();
    let port = address.rsplit_once(':').unwrap().1.to_owned();

    // A client that trusts the authority succeeds under each name.
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}");
        let trusted = [("SSL_CERT_FILE", authority.as_str())];
        let listed = callboard(&folder, &["--api-url", &url, "workflow", "list"], &trusted).output().unwrap();
        assert!(listed.status.success(), "{host}: {}", text(&listed.stderr));
    }
    // A client that does not trust it fails.
    let url = format!("https://localhost:{port}");
    let nowhere = folder.path().join("none.pem");
    std::fs::write(&nowhere, "").unwrap();
    let trusted = [("SSL_CERT_FILE", nowhere.to_str().unwrap())];
    let listed = callboard(&folder, &["--api-url", &url, "workflow", "list"], &trusted).output().unwrap();
    assert_eq!(listed.status.code(), Some(4), "{}", text(&listed.stdout));

    // A request without TLS gets a response; bytes of neither protocol close the connection.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("TLS only. Use https://.\r\n"),
        "{answer}"
    );
    let mut garbage = TcpStream::connect(&address).unwrap();
    garbage.write_all(&[22, 3, 1, 0, 1, 255]).unwrap();
    garbage.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(running.stop().0, Some(0));
}

#[test]
fn dev_tls_prints_json_for_programs() {
    let folder = folder();
    for arguments in [["dev-tls", "--json"], ["--json", "dev-tls"]] {
        let output = callboard(&folder, &arguments, &[]).output().unwrap();
        let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["cert"], file(&folder, "cert.pem"), "{printed}");
        assert_eq!(printed["names"][0], "localhost");
    }
}

#[test]
fn an_authority_is_reused_for_later_certificates_of_its_domain() {
    let folder = folder();
    dev_tls_output(&folder, &[]);
    let read = |name: &str| std::fs::read_to_string(file(&folder, name)).unwrap();
    let (authority, cert, key) = (read("authority.pem"), read("cert.pem"), read("key.pem"));
    dev_tls_output(&folder, &["--alias", "notes"]);
    assert_eq!(read("authority.pem"), authority);
    assert!(read("cert.pem") != cert && read("key.pem") != key);
    // The authority may not sign for another domain, so a new one is created.
    let other = [("SERVICE_APPS_DOMAIN", "apps.example.org"), ("SERVICE_PORT", "9443")];
    let output = callboard(&folder, &["dev-tls"], &other).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(" https://localhost:9443/healthz\n"), "{}", text(&output.stdout));
    assert_ne!(read("authority.pem"), authority);
}

#[test]
fn unusable_aliases_and_files_are_reported() {
    let folder = folder();
    for alias in ["", "-a", "a.b", "A", "*"] {
        let argument = format!("--alias={alias}");
        let output = callboard(&folder, &["dev-tls", &argument], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{alias}: {}", text(&output.stderr));
    }
    let other = crate::support::folder();
    dev_tls_output(&folder, &[]);
    dev_tls_output(&other, &[]);
    let (cert, key, foreign) = (file(&folder, "cert.pem"), file(&folder, "key.pem"), file(&other, "key.pem"));
    let missing = file(&folder, "missing.pem");
    let rows = [
        (
            cert.as_str(),
            foreign.as_str(),
            "SERVICE_TLS_KEY is not the key of the first certificate in SERVICE_TLS_CERT",
        ),
        (missing.as_str(), key.as_str(), "SERVICE_TLS_CERT: "),
        (cert.as_str(), missing.as_str(), "SERVICE_TLS_KEY: "),
        (key.as_str(), key.as_str(), "SERVICE_TLS_CERT: "),
        (cert.as_str(), cert.as_str(), "SERVICE_TLS_KEY: "),
    ];
    for (cert, key, reason) in rows {
        let variables = [("SERVICE_TLS_CERT", cert), ("SERVICE_TLS_KEY", key)];
        let output = callboard(&folder, &["serve"], &variables).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}
