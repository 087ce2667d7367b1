//! The processes that run user code.

use std::path::PathBuf;
use std::thread::available_parallelism;

use crate::parse;
use crate::reader::{RejectedValue, VariableReader};

/// The processes that run user code.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// `SERVICE_SANDBOX_WORKERS`: processes that run node code concurrently.
    pub workers: usize,
    /// `SERVICE_SANDBOX_MEMORY_BYTES`.
    pub memory: usize,
    /// `SERVICE_SANDBOX_PROGRAM`; `None`: the running program.
    pub program: Option<PathBuf>,
}

/// Divisor for the machine memory that all workers may use by default: a quarter.
const SHARE_OF_MEMORY: u64 = 4;
/// Default maximum of workers per core. Queued code costs a workspace more than process switches do.
const WORKERS_A_CORE: usize = 4;

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Sandbox, RejectedValue> {
    let workers = reader.optional("SERVICE_SANDBOX_WORKERS", parse::number(1..=256));
    let memory = reader.value("SERVICE_SANDBOX_MEMORY_BYTES", parse::number(16_777_216..=2_147_483_648));
    let program = reader.optional("SERVICE_SANDBOX_PROGRAM", parse::path);
    let (workers, memory) = (workers?, memory?);
    let cores = available_parallelism().map_or(2, usize::from);
    Ok(Sandbox {
        workers: workers.unwrap_or_else(|| default_workers(cores, memory_of_machine(), memory)),
        memory,
        program: program?,
    })
}

/// The number of workers that fit into a quarter of the memory, within bounds given by the cores.
fn default_workers(cores: usize, total: Option<u64>, each: usize) -> usize {
    let fewest = cores.clamp(2, 256);
    let each = u64::try_from(each).unwrap_or(u64::MAX).max(1);
    let fit = total.map(|total| usize::try_from(total / SHARE_OF_MEMORY / each).unwrap_or(usize::MAX));
    fit.unwrap_or(fewest).clamp(fewest, fewest.saturating_mul(WORKERS_A_CORE).min(256))
}

/// Bytes of memory available to this process: the smaller value of the machine and its control group; `None` if neither
/// can be read.
fn memory_of_machine() -> Option<u64> {
    let group =
        std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    group.into_iter().chain(machine).min()
}

/// `MemTotal` in /proc/meminfo, in bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_count_depends_on_memory_within_core_bounds() {
        const MIB: u64 = 1 << 20;
        let each = 128 << 20;
        for (cores, total, workers) in [
            (2, Some(512 * MIB), 2),
            (2, Some(3 * 1024 * MIB), 6),
            (2, Some(64 * 1024 * MIB), 8),
            (16, Some(4 * 1024 * MIB), 16),
            (1, None, 2),
            (200, Some(u64::MAX), 256),
        ] {
            assert_eq!(default_workers(cores, total, each), workers, "{cores} cores, {total:?}");
        }
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_of("MemTotal:       24000 kB\nMemFree: 1 kB\n"), Some(24_576_000));
        assert_eq!(total_of("MemFree: 1 kB\n"), None);
        assert_eq!(total_of("MemTotal: much\n"), None);
    }
}
