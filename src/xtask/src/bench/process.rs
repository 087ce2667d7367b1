//! Process CPU time and memory, from `/proc`.
//!
//! CPU time is the scheduler's count in nanoseconds: the usual count is sampled a hundred times a second and hardly
//! sees a server that wakes for 50 µs at a time.

use std::fs;

use anyhow::{Context, Result};

/// CPU seconds used so far by a process and its live children.
pub(super) fn cpu_with_children(pid: u32) -> Result<f64> {
    let mut total = cpu_alone(pid)?;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end meanwhile.
        if parent(child) == Some(pid) {
            total += cpu_alone(child).unwrap_or(0.0);
        }
    }
    Ok(total)
}

/// CPU seconds used so far by the live threads of a process.
pub(super) fn cpu_alone(pid: u32) -> Result<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let stat = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        nanos += stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(nanos / 1e9)
}

/// Resident memory, MiB.
pub(super) fn resident_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name may contain anything; the state and then the parent follow it.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}
