//! A worker process, from the service's side.

use std::io;
use std::path::Path;
use std::process::Stdio;

use monty_types::OOM_EXIT_CODE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::WORKER_ARGUMENT;
use crate::frame::READY;

/// A worker that is ready for a request. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

/// The reason that a worker was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The worker ended itself at its memory limit.
    Memory,
    /// The response exceeds its size limit.
    TooLong,
    /// The worker died.
    Crashed,
}

impl Worker {
    /// Starts a worker without environment, open files or the service's process group.
    pub(crate) async fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(WORKER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let requests = child.stdin.take().ok_or_else(missing)?;
        let mut answers = child.stdout.take().ok_or_else(missing)?;
        let hello = read(&mut answers, READY.len()).await;
        if hello.ok().flatten().as_deref() != Some(READY) {
            return Err(io::Error::other(format!("{} is not a worker", program.display())));
        }
        Ok(Self { child, requests, answers })
    }

    /// Sends a frame and waits for the response.
    pub(crate) async fn exchange(&mut self, frame: &[u8], longest: usize) -> Result<Vec<u8>, Lost> {
        // If the worker dies during the write, its exit status gives the reason.
        let written = self.requests.write_all(frame).await;
        let answer = match written {
            Ok(()) => read(&mut self.answers, longest).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Lost::TooLong),
            Err(_) => Err(self.status().await),
        }
    }

    async fn status(&mut self) -> Lost {
        // The pipe is closed, so the worker is dead or dying; otherwise the call's deadline applies.
        let ended = self.child.wait().await;
        match ended {
            Ok(status) if status.code() == Some(OOM_EXIT_CODE) => Lost::Memory,
            _ => Lost::Crashed,
        }
    }

    /// Whether the process is running.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The process id, while the process is running.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

/// Reads a frame; `None` if it is longer than `longest`.
async fn read(from: &mut ChildStdout, longest: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await?;
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > longest {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(Some(bytes))
}
