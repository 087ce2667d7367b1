//! The end record of an archive: the last 22 bytes, and nothing else.

use super::fields::Fields;
use crate::code::Code;
use crate::limits::DIRECTORY_BYTES;

/// Bytes of an end record without a comment.
pub(crate) const END_BYTES: usize = 22;
/// Where an end record with the longest comment can begin, counted from the end.
pub(super) const SEARCHED_BYTES: usize = END_BYTES + 65_535;
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
/// What readers of ZIP64 look for directly before the end record.
pub(crate) const ZIP64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
pub(crate) const ZIP64_LOCATOR_BYTES: usize = 20;

/// Where the directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) entries: u16,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Reads the end record of an archive of `length` bytes from its last bytes.
pub(super) fn read(tail: &[u8], length: u64) -> Result<Directory, (Code, &'static str)> {
    let malformed = |detail| Err((Code::ZipMalformed, detail));
    let searched = tail.windows(END.len()).any(|window| window == END);
    let last = tail.len().checked_sub(END_BYTES).and_then(|start| tail.get(start..));
    let Some(record) = last.and_then(|last| last.strip_prefix(&END)) else {
        return if searched {
            malformed("There is data after the archive, or the archive has a comment.")
        } else {
            Err((Code::NotAZip, "The end record of a ZIP archive was not found."))
        };
    };
    let mut fields = Fields(record);
    let mut small = || fields.u16().unwrap_or(u16::MAX);
    let (disk, directory_disk, on_disk, entries) = (small(), small(), small(), small());
    let (bytes, offset) = (fields.u32().unwrap_or(u32::MAX), fields.u32().unwrap_or(u32::MAX));
    let comment = fields.u16().unwrap_or(u16::MAX);
    if comment != 0 {
        return malformed("The archive has a comment.");
    }
    if [disk, directory_disk, entries].contains(&u16::MAX) || [bytes, offset].contains(&u32::MAX) {
        return malformed("The archive has ZIP64 records; bundles are too small to need them.");
    }
    if disk != 0 || directory_disk != 0 {
        return malformed("The archive is part of a set of several files.");
    }
    if on_disk != entries {
        return malformed("The end record gives two numbers of entries.");
    }
    let (bytes, offset) = (u64::from(bytes), u64::from(offset));
    if bytes > DIRECTORY_BYTES {
        return Err((Code::DirectoryTooLarge, "The directory has more than 8 MiB."));
    }
    // A directory of u32 bytes and offset cannot overflow.
    if u64::try_from(END_BYTES).ok().and_then(|end| length.checked_sub(end)) != Some(offset + bytes) {
        return malformed(
            "The directory is not where the end record says, or there is data before the archive.",
        );
    }
    Ok(Directory { entries, offset, bytes })
}
