//! The process's open file limit and the share for client connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The largest limit set. Connections exhaust memory before they need more files.
const ENOUGH: u64 = 1 << 20;
/// Maximum connections served at the same time.
const MAX_CONNECTIONS: u64 = 50_000;
/// Bounds for the reserve, which is a quarter of the limit.
const RESERVE: (u64, u64) = (128, 1_024);
/// The divisor for surplus connections in the reserve; they get a health check or a refusal.
const SURPLUS_SHARE: u64 = 4;

/// The open file limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    limit: u64,
}

impl OpenFiles {
    /// The limit to which a start raises the process: its hard limit.
    #[must_use]
    pub fn allowed() -> Self {
        let hard = getrlimit(Resource::Nofile).maximum;
        Self { limit: hard.unwrap_or(ENOUGH).min(ENOUGH) }
    }

    /// Raises the process's limit as far as allowed.
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

    /// Maximum open files for the process.
    #[must_use]
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Maximum connections served at the same time. The remaining files are for the database, outbound calls and
    /// uploads.
    #[must_use]
    pub fn connections(self) -> u64 {
        self.limit.saturating_sub(self.reserve()).min(MAX_CONNECTIONS)
    }

    /// Maximum surplus connections.
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
    fn a_quarter_of_the_open_files_is_reserved() {
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
