//! Where code of users runs.

use std::path::PathBuf;
use std::thread::available_parallelism;

use crate::parse;
use crate::reader::{Reader, Refused};

/// The processes that run code of users.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// `SERVICE_SANDBOX_WORKERS`.
    pub workers: usize,
    /// `SERVICE_SANDBOX_MEMORY_BYTES`.
    pub memory: usize,
    /// `SERVICE_SANDBOX_PROGRAM`; none is the program that runs.
    pub program: Option<PathBuf>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Sandbox, Refused> {
    let workers = reader.optional("SERVICE_SANDBOX_WORKERS", parse::number(1..=256));
    let memory = reader.value("SERVICE_SANDBOX_MEMORY_BYTES", parse::number(16_777_216..=2_147_483_648));
    let program = reader.optional("SERVICE_SANDBOX_PROGRAM", parse::path);
    Ok(Sandbox {
        workers: workers?.unwrap_or_else(|| available_parallelism().map_or(2, usize::from).clamp(2, 256)),
        memory: memory?,
        program: program?,
    })
}
