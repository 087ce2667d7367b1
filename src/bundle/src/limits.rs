//! How large a bundle and its parts may be.

const MIB: u64 = 1024 * 1024;

/// Most bytes of the archive's central directory.
pub(crate) const DIRECTORY_BYTES: u64 = 8 * MIB;
/// Most bytes of a path.
pub(crate) const PATH_BYTES: usize = 1024;
/// Most bytes of a name between two slashes.
pub(crate) const SEGMENT_BYTES: usize = 255;

/// Limits that an operator can set. Reaching a limit is allowed, exceeding it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the archive.
    pub compressed: u64,
    /// Bytes of all files together.
    pub expanded: u64,
    /// Number of files.
    pub files: usize,
    /// Bytes of one file.
    pub file: u64,
    /// Names in a path.
    pub depth: usize,
}

impl Limits {
    /// The limits of a service that sets none.
    pub const DEFAULT: Self =
        Self { compressed: 50 * MIB, expanded: 200 * MIB, files: 5_000, file: 25 * MIB, depth: 32 };

    /// The highest limits that an operator can set; the package `config` has the same numbers.
    pub const HIGHEST: Self =
        Self { compressed: 100 * MIB, expanded: 1024 * MIB, files: 20_000, file: 25 * MIB, depth: 32 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
