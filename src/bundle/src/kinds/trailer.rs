//! Archives at a file's end: a ZIP archive after an image, or a disk image.

use crate::archive::{CENTRAL, END, END_BYTES, ZIP64_LOCATOR, ZIP64_LOCATOR_BYTES};

/// The range that can contain an archive's end record, counted from the file's end.
const SEARCHED: usize = 65_557;
const DMG_TRAILER: usize = 512;
/// Bytes of a directory entry without its name.
const ENTRY_BYTES: u64 = 46;

/// A file's last bytes, and the count of earlier bytes.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    before: u64,
}

impl Tail {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // The ZIP64 locator precedes the end record.
        let kept = SEARCHED + ZIP64_LOCATOR_BYTES;
        if self.bytes.len() > 3 * kept {
            let old = self.bytes.len() - kept;
            self.bytes.drain(..old);
            self.before = self.before.saturating_add(u64::try_from(old).unwrap_or(u64::MAX));
        }
    }

    /// The kind of archive in the last bytes.
    pub(super) fn archive(&self) -> Option<&'static str> {
        let old = self.bytes.len().saturating_sub(DMG_TRAILER);
        if self.bytes.get(old..).is_some_and(|trailer| trailer.starts_with(b"koly")) {
            return Some("disk image");
        }
        let old = self.bytes.len().saturating_sub(SEARCHED);
        let mut starts =
            (old..self.bytes.len()).filter(|at| self.at(*at).is_some_and(|rest| rest.starts_with(&END)));
        starts.any(|at| self.is_end_record(at)).then_some("ZIP")
    }

    fn at(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(at..)
    }

    /// Whether the end record leads to a directory, with offsets from the beginning of the file or the archive. After a
    /// ZIP64 locator its numbers are ignored: some readers prefer the ZIP64 record whatever the end record says.
    fn is_end_record(&self, at: usize) -> bool {
        let Some(record) = self.at(at).and_then(|rest| rest.get(..END_BYTES)) else { return false };
        let locator = at.checked_sub(ZIP64_LOCATOR_BYTES).and_then(|at| self.at(at));
        if locator.is_some_and(|rest| rest.starts_with(&ZIP64_LOCATOR)) {
            return true;
        }
        let small = |at: usize| {
            record.get(at..).and_then(<[u8]>::first_chunk).map(|f| u64::from(u16::from_le_bytes(*f)))
        };
        let large = |at: usize| {
            record.get(at..).and_then(<[u8]>::first_chunk).map(|f| u64::from(u32::from_le_bytes(*f)))
        };
        let (Some(count), Some(size), Some(offset)) = (small(10), large(12), large(16)) else { return false };
        let end = self.before.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
        if count == 0 || size < ENTRY_BYTES || size > end {
            return false;
        }
        self.is_directory(end - size) || offset < end && self.is_directory(offset)
    }

    /// Whether a directory can begin at `position`. Dropped bytes may have been a directory.
    fn is_directory(&self, position: u64) -> bool {
        match position.checked_sub(self.before) {
            None => true,
            Some(at) => usize::try_from(at)
                .ok()
                .and_then(|at| self.at(at))
                .is_some_and(|rest| rest.starts_with(&CENTRAL)),
        }
    }
}
