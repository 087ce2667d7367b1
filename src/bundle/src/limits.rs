//! Bundle size limits.

const MIB: u64 = 1024 * 1024;

/// Maximum central directory bytes.
pub(crate) const DIRECTORY_BYTES: u64 = 8 * MIB;
/// Maximum path bytes.
pub(crate) const PATH_BYTES: usize = 1024;
/// Maximum path segment bytes.
pub(crate) const SEGMENT_BYTES: usize = 255;

/// Configurable limits. A limit may be reached but not exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum archive bytes.
    pub compressed: u64,
    /// Maximum file bytes in total.
    pub expanded: u64,
    /// Maximum files.
    pub files: usize,
    /// Maximum bytes per file.
    pub file: u64,
    /// Maximum path segments.
    pub depth: usize,
}

impl Limits {
    /// The default limits.
    pub const DEFAULT: Self =
        Self { compressed: 50 * MIB, expanded: 200 * MIB, files: 5_000, file: 25 * MIB, depth: 32 };

    /// The highest configurable limits; the package `config` has the same numbers.
    pub const HIGHEST: Self =
        Self { compressed: 100 * MIB, expanded: 1024 * MIB, files: 20_000, file: 25 * MIB, depth: 32 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
