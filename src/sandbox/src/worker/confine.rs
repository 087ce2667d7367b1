//! Kernel restrictions for a worker, in case an interpreter has a hole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, setrlimit};

/// Address space in addition to the initial usage: the allocator reserves more than it uses.
const ADDRESSES: u64 = 3 << 30;

/// Restrictions to apply before a second thread starts.
pub(super) fn before_threads() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    // When the machine is short of CPU, the service takes precedence.
    let _ = nice(5);
    close_others()
}

/// Restrictions to apply after all threads have started: no more files, processes, threads or sockets.
pub(super) fn with_threads() -> io::Result<()> {
    let most = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let used = Size::addresses()?;
    let allowed = getrlimit(Resource::As).maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Core, most(0))?;
    setrlimit(Resource::Fsize, most(0))?;
    setrlimit(Resource::Nproc, most(0))?;
    // The three open descriptors use up the limit, so no other can be opened; with less, `poll` would accept none.
    setrlimit(Resource::Nofile, most(3))?;
    setrlimit(Resource::As, most(used.saturating_add(ADDRESSES).min(allowed)))?;
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    filter::apply();
    Ok(())
}

/// Closes inherited descriptors except the three standard ones.
fn close_others() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The folder's own descriptor is in the list but already closed.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

/// Reads this process's memory usage. The file stays open because a worker cannot open files later.
#[derive(Debug)]
pub(super) struct Size(File);

impl Size {
    pub(super) fn open() -> io::Result<Self> {
        File::open("/proc/self/statm").map(Self)
    }

    /// Resident bytes.
    pub(super) fn now(&self) -> usize {
        usize::try_from(self.pages(1)).unwrap_or_default().saturating_mul(rustix::param::page_size())
    }

    fn addresses() -> io::Result<u64> {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        Ok(Self::open()?.pages(0).saturating_mul(page))
    }

    fn pages(&self, field: usize) -> u64 {
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0).unwrap_or_default();
        let text = text.get(..length).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        text.split(' ').nth(field).and_then(|pages| pages.trim().parse().ok()).unwrap_or_default()
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    //! Defence in depth: a worker may use only the system calls that memory, pipes and threads need.

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};

    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pread64,
        libc::SYS_close,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getcpu,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// A kernel without filters is accepted, because the interpreters do not expose these system calls either.
    pub(super) fn apply() {
        let Ok(target) = TargetArch::try_from(std::env::consts::ARCH) else { return };
        let rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, target);
        let program: Option<BpfProgram> = filter.ok().and_then(|filter| filter.try_into().ok());
        if let Some(program) = program {
            let _ = apply_filter_all_threads(&program);
        }
    }
}
