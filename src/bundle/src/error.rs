//! Check errors.

use std::io;

/// The check failed. A refused bundle is not an error.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The archive cannot be read.
    #[error("the archive cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The deadline passed before the check was complete.
    #[error("the check took too long")]
    Overdue,
}

impl CheckError {
    /// The archive became shorter during the check.
    pub(crate) fn changed() -> Self {
        Self::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive changed while it was read"))
    }
}
