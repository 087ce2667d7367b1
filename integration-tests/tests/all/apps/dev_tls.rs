//! The service's own TLS, with the authority of `callboard dev-tls`, and a browser that trusts it.

use std::net::TcpListener;
use std::process::Command;

use integration_tests::Browser;
use tempfile::TempDir;

/// Certificates for app hosts, and the port of the service that uses them.
pub(super) struct DevTls {
    folder: TempDir,
    port: u16,
}

impl DevTls {
    pub(super) fn for_aliases(aliases: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = std::env::var_os("CALLBOARD_BIN");
        let binary =
            binary.expect("CALLBOARD_BIN is not set: run `cargo xtask test`, which builds the binary");
        let made = Command::new(binary)
            .arg("dev-tls")
            .args(aliases.iter().flat_map(|alias| ["--alias", alias]))
            .arg("--dir")
            .arg(folder.path())
            .env("SERVICE_DATA_DIR", folder.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // The address is part of the configuration, so the port is chosen first.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { folder, port }
    }

    /// The URL of the central host.
    pub(super) fn central(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The URL of a path in an app.
    pub(super) fn app(&self, alias: &str, path: &str) -> String {
        format!("https://{alias}.apps.localhost:{}{path}", self.port)
    }

    /// The port as a variable.
    pub(super) fn port(&self) -> (&'static str, String) {
        ("SERVICE_PORT", self.port.to_string())
    }

    /// The variables that turn TLS on.
    pub(super) fn variables(&self) -> [(&'static str, String); 3] {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        [
            ("SERVICE_TLS_CERT", file("cert.pem")),
            ("SERVICE_TLS_KEY", file("key.pem")),
            ("SERVICE_PUBLIC_BASE_URL", self.central()),
        ]
    }

    pub(super) async fn browser(&self) -> Browser {
        Browser::start_trusting(&self.folder.path().join("authority.pem")).await
    }
}
