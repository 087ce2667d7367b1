//! An nginx server with the same files.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::run;

/// Debian's paths, for users whose `PATH` lacks them.
const PLACES: [&str; 2] = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"];
const START_POLLS: u32 = 100;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A server for a folder of files; dropping it stops it and removes the folder.
pub(super) struct Nginx {
    child: Child,
    folder: PathBuf,
    address: String,
}

/// The nginx program, if installed.
fn program() -> Option<PathBuf> {
    run::on_path("nginx").or_else(|| PLACES.iter().map(PathBuf::from).find(|place| place.is_file()))
}

impl Nginx {
    /// Starts nginx with these files in a new folder.
    ///
    /// # Errors
    /// If nginx is not installed, or does not listen.
    pub(super) fn start(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<Self> {
        let install = "no nginx: apt-get update && apt-get install -y --no-install-recommends nginx-light";
        let program = program().context(install)?;
        let _ = fs::remove_dir_all(folder);
        for (path, content) in files {
            let file = folder.join("files").join(path);
            fs::create_dir_all(file.parent().context("a file without a folder")?)?;
            fs::write(file, content)?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        fs::write(folder.join("nginx.conf"), configuration(folder, &address))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).stderr(Stdio::null());
        let child = command.spawn().context("start nginx")?;
        let started = Self { child, folder: folder.to_owned(), address };
        for _ in 0..START_POLLS {
            if TcpStream::connect(&started.address).is_ok() {
                return Ok(started);
            }
            thread::sleep(POLL_INTERVAL);
        }
        bail!("nginx does not listen; see {}", folder.join("error.log").display())
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The master process, whose children serve the requests.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// One worker per core, bodies by `sendfile`, compressed forms from files, no access log.
fn configuration(folder: &Path, address: &str) -> String {
    let folder = folder.display();
    let user = if run::is_root() { "user root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes auto; pid {folder}/nginx.pid; error_log {folder}/error.log;
         events {{ worker_connections 1024; }}
         http {{
             access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;
             gzip_static on; gzip_vary on; etag on;
             types {{ text/javascript js; text/html html; }}
             client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
             uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
             server {{ listen {address}; root {folder}/files; index index.html; add_header Cache-Control no-cache; }}
         }}"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Workers end only if their master can tell them: hence SIGTERM.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
