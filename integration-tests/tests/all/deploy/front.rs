//! A proxy with the configuration in `deploy/`, with only ports, certificates and servers replaced.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use integration_tests::until;
use tempfile::TempDir;

use super::tunnel::speaks_tls;
use super::{replace_text, require_program, text_of};

/// The service's host and the app domain, as in the shipped files.
pub(super) const HOST: &str = "desk.example.com";
pub(super) const APPS: &str = "apps.example.net";

#[derive(Clone, Copy, Debug)]
pub(super) enum Engine {
    Nginx,
    Haproxy,
    Caddy,
}

/// A running proxy in front of the service and an instance that refuses connections.
pub(super) struct Front {
    pub(super) http: SocketAddr,
    pub(super) https: SocketAddr,
    /// The address of the instance that refuses connections.
    pub(super) refusing: SocketAddr,
    /// The authority for its certificates, PEM.
    pub(super) authority: Vec<u8>,
    process: Child,
    folder: TempDir,
}

/// The values that the shipped file leaves to its operator.
struct ProxyValues<'a> {
    folder: &'a Path,
    http: SocketAddr,
    https: SocketAddr,
    service: SocketAddr,
    refusing: SocketAddr,
}

impl Front {
    pub(super) async fn start(engine: Engine, service: SocketAddr) -> Self {
        require_program(match engine {
            Engine::Nginx => "nginx",
            Engine::Haproxy => "haproxy",
            Engine::Caddy => "caddy",
        });
        let folder = tempfile::tempdir().unwrap();
        let [http, https, refusing] = free_ports();
        let site = ProxyValues { folder: folder.path(), http, https, service, refusing };
        let certificate = certificate(folder.path());
        let mut command = match engine {
            Engine::Nginx => site.nginx(),
            Engine::Haproxy => site.haproxy(),
            Engine::Caddy => site.caddy(),
        };
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let process = process.unwrap_or_else(|error| panic!("{engine:?}: {error}"));
        let mut front = Self { http, https, refusing, authority: Vec::new(), process, folder };
        let root = front.folder.path().join("data/caddy/pki/authorities/local/root.crt");
        until("the proxy to listen", async || {
            let ended = front.process.try_wait().unwrap();
            let log = || fs::read_to_string(front.folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none(), "{engine:?}: {ended:?}: {}", log());
            // Caddy creates its authority and the certificate after it has begun to listen.
            let authority = match engine {
                Engine::Caddy => fs::read(&root).unwrap_or_default(),
                Engine::Nginx | Engine::Haproxy => certificate.clone(),
            };
            let ready = speaks_tls(https, HOST, &authority).await;
            front.authority = authority;
            ready
        })
        .await;
        front
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ProxyValues<'_> {
    fn nginx(&self) -> Command {
        let (folder, Self { http, https, service, refusing, .. }) = (self.folder.display(), self);
        let mut site = text_of("nginx.conf");
        replace_text(&mut site, "listen 80;", &format!("listen {http};"));
        replace_text(&mut site, "listen 443 ssl http2;", &format!("listen {https} ssl http2;"));
        replace_text(&mut site, "    listen [::]:80;\n", "");
        replace_text(&mut site, "    listen [::]:443 ssl http2;\n", "");
        replace_text(&mut site, "/etc/ssl/callboard", &folder.to_string());
        let servers = format!("server {refusing} max_fails=1 fail_timeout=5s;\n    server {service};");
        replace_text(&mut site, "server 127.0.0.1:8000 max_fails=1 fail_timeout=5s;", &servers);
        fs::write(self.folder.join("site.conf"), site).unwrap();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {folder}/{kind};"));
        // As root, its processes would change to a user who cannot read the folder. One process, so that none outlives
        // the test.
        let user = if folder_is_roots(self.folder) { "user root;" } else { "" };
        let main = format!(
            "{user} daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}}\n\
             http {{ access_log off; {} include {folder}/site.conf; }}\n",
            paths.join(" ")
        );
        fs::write(self.folder.join("main.conf"), main).unwrap();
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(self.folder)
            .arg("-e")
            .arg("stderr")
            .arg("-c")
            .arg(self.folder.join("main.conf"));
        command
    }

    fn haproxy(&self) -> Command {
        let Self { http, https, service, refusing, .. } = self;
        let mut config = text_of("haproxy.cfg");
        replace_text(&mut config, "bind :::80 v4v6", &format!("bind {http}"));
        replace_text(&mut config, "bind :::443 v4v6", &format!("bind {https}"));
        replace_text(&mut config, "/etc/haproxy/certs/", &self.folder.join("both.pem").display().to_string());
        let servers = format!("server refusing {refusing}\n    server one {service}");
        replace_text(&mut config, "server one 127.0.0.1:8000", &servers);
        let path = self.folder.join("haproxy.cfg");
        fs::write(&path, config).unwrap();
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(path);
        command
    }

    fn caddy(&self) -> Command {
        let Self { http, https, service, refusing, .. } = self;
        let mut config = text_of("Caddyfile");
        let options = format!(
            "{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\
             \thttp_port {}\n\thttps_port {}\n\t# An app gets",
            http.port(),
            https.port()
        );
        replace_text(&mut config, "{\n\t# An app gets", &options);
        let path = self.folder.join("Caddyfile");
        fs::write(&path, config).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(path);
        command.env("CALLBOARD_HOST", HOST).env("CALLBOARD_APPS_DOMAIN", APPS);
        command.env("CALLBOARD_UPSTREAMS", format!("{refusing} {service}"));
        command.env("CALLBOARD_ASK", format!("http://{service}"));
        command.env("HOME", self.folder).env("XDG_DATA_HOME", self.folder.join("data"));
        command.env("XDG_CONFIG_HOME", self.folder.join("config"));
        command
    }
}

fn folder_is_roots(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    folder.metadata().unwrap().uid() == 0
}

/// Ports that are currently free.
fn free_ports() -> [SocketAddr; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

/// Writes a certificate for the names in the shipped files, for the proxies that do not create their own; returns the
/// certificate for clients to trust.
fn certificate(folder: &Path) -> Vec<u8> {
    let names = vec![HOST.to_owned(), format!("*.{APPS}")];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    fs::write(folder.join("cert.pem"), &cert).unwrap();
    fs::write(folder.join("key.pem"), &key).unwrap();
    fs::write(folder.join("both.pem"), format!("{cert}{key}")).unwrap();
    cert.into_bytes()
}
