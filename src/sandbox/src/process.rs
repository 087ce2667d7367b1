//! One worker process, from the service's side.

use std::io;
use std::path::Path;
use std::process::Stdio;

use monty_types::OOM_EXIT_CODE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::WORKER_ARGUMENT;
use crate::frame::READY;

/// A worker that is ready for a request. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

/// How a worker was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It ended itself at the limit of its memory.
    Memory,
    /// Its answer is longer than it may be.
    TooLong,
    /// It died.
    Crashed,
}

impl Worker {
    /// Starts one: without an environment, files or a group in common with the service.
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

    /// Sends a frame and waits for the answer.
    pub(crate) async fn exchange(&mut self, frame: &[u8], longest: usize) -> Result<Vec<u8>, Lost> {
        // A worker that dies while it is written to has said why with its status.
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
        // The pipe is closed, so it is dead or dying; the call's deadline covers one that is not.
        let ended = self.child.wait().await;
        match ended {
            Ok(status) if status.code() == Some(OOM_EXIT_CODE) => Lost::Memory,
            _ => Lost::Crashed,
        }
    }

    /// Whether it has not ended.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id, while it lives.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

/// A frame; `None` when it is longer than `longest`.
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
