//! The number of files that the process may have open, and how many of them may be connections of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The largest limit that is set. Connections need more memory than there is before they need more files.
const ENOUGH: u64 = 1 << 20;
/// Connections that are served at the same time, at most.
const MAX_CONNECTIONS: u64 = 50_000;
/// The reserve is a quarter of the limit, within these bounds.
const RESERVE: (u64, u64) = (128, 1_024);
/// The part of the reserve that is for surplus connections, which receive a health check or a refusal.
const SURPLUS_SHARE: u64 = 4;

/// The limit of open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    limit: u64,
}

impl OpenFiles {
    /// The limit that a start raises the process to: its hard limit.
    #[must_use]
    pub fn allowed() -> Self {
        let hard = getrlimit(Resource::Nofile).maximum;
        Self { limit: hard.unwrap_or(ENOUGH).min(ENOUGH) }
    }

    /// Raises the limit of the process as far as it may be raised.
    pub(crate) fn raise() -> Self {
        let (before, allowed) = (getrlimit(Resource::Nofile), Self::allowed());
        let current = before.current.unwrap_or(ENOUGH);
        let raised = Rlimit { current: Some(allowed.limit), maximum: before.maximum };
        if current >= allowed.limit {
            return Self { limit: current };
        }
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => allowed,
            Err(error) => {
                tracing::warn!(%error, limit = current, "failed to raise the limit of open files");
                Self { limit: current }
            }
        }
    }

    /// Open files of the process, at most.
    #[must_use]
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Connections that are served at the same time. The rest of the files is for the database, outbound calls and uploads.
    #[must_use]
    pub fn connections(self) -> u64 {
        self.limit.saturating_sub(self.reserve()).min(MAX_CONNECTIONS)
    }

    /// Connections above that number at the same time.
    pub(crate) fn surplus(self) -> u64 {
        self.reserve() / SURPLUS_SHARE
    }

    fn reserve(self) -> u64 {
        let (least, most) = RESERVE;
        (self.limit / 4).clamp(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_files_is_in_reserve() {
        let of = |limit| {
            let files = OpenFiles { limit };
            (files.connections(), files.surplus())
        };
        assert_eq!([of(256), of(1_024), of(1 << 20)], [(128, 32), (768, 64), (MAX_CONNECTIONS, 256)]);
        assert_eq!(of(64).0, 0);
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        let raised = OpenFiles::raise();
        assert_eq!(raised, OpenFiles::allowed());
        assert_eq!(getrlimit(Resource::Nofile).current.map(|now| now.min(ENOUGH)), Some(raised.limit()));
    }
}
