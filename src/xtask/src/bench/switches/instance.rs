//! A service instance that is restarted after each kill.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::hosted::{Request, ask};
use super::super::server::pause;
use crate::cluster::Cluster;

const READY_POLLS: u32 = 1_200;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Instance {
    pub(super) address: String,
    child: Child,
    command: Command,
    data: PathBuf,
}

impl Instance {
    /// Starts the instance and waits until it is ready.
    ///
    /// # Errors
    /// If it is not ready within a minute.
    pub(super) async fn start(target: &Path, cluster: &Cluster, name: &str) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let data = target.join(format!("bench-data-{}-{name}", std::process::id()));
        let mut command = Command::new(target.join("release/callboard"));
        command.arg("serve").env("SERVICE_POSTGRES_DSN", cluster.dsn()).env("SERVICE_DATA_DIR", &data);
        command.env("SERVICE_PORT", port.to_string()).env("SERVICE_LOG", "warn").stdout(Stdio::null());
        let child = command.spawn().context("start the service")?;
        let started = Self { address: format!("127.0.0.1:{port}"), child, command, data };
        started.ready().await?;
        Ok(started)
    }

    /// Kills the instance, restarts it and waits until it is ready.
    ///
    /// # Errors
    /// If it had already ended, or is not ready within a minute.
    pub(super) async fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended unexpectedly: {status}", self.address);
        }
        // SIGKILL.
        self.child.kill()?;
        self.child.wait()?;
        self.child = self.command.spawn().context("start the service again")?;
        self.ready().await
    }

    async fn ready(&self) -> Result<()> {
        for _ in 0..READY_POLLS {
            let answer = ask(&self.address, Request::get("localhost", "/readyz")).await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            pause(POLL_INTERVAL).await;
        }
        bail!("{} is not ready in a minute", self.address)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.data);
    }
}
