//! The archive's end record: exactly the last 22 bytes.

use super::fields::Fields;
use crate::code::Code;
use crate::limits::DIRECTORY_BYTES;

/// Bytes of an end record without a comment.
pub(crate) const END_BYTES: usize = 22;
/// The earliest position of an end record with the longest comment, counted from the end.
pub(super) const SEARCHED_BYTES: usize = END_BYTES + 65_535;
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
/// The mark that ZIP64 readers expect directly before the end record.
pub(crate) const ZIP64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
pub(crate) const ZIP64_LOCATOR_BYTES: usize = 20;
/// Marks that occur only at an archive's end.
pub(super) const MARKS: [[u8; 4]; 3] = [END, *b"PK\x06\x06", ZIP64_LOCATOR];
/// Bytes before the end record that readers scan for marks, whatever their meaning.
const MARKED_BYTES: usize = 80;

/// The directory's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) entries: u16,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Reads the end record of an archive of `length` bytes from its last bytes.
pub(super) fn read(tail: &[u8], length: u64) -> Result<Directory, (Code, &'static str)> {
    let malformed = |detail| Err((Code::ZipMalformed, detail));
    let (before, last) = tail.split_at(tail.len().saturating_sub(END_BYTES));
    let Some(record) = last.strip_prefix(&END).filter(|_| last.len() == END_BYTES) else {
        let whole = tail.windows(END_BYTES).rposition(|window| window.starts_with(&END));
        return match whole.and_then(|at| tail.get(at..)?.split_at_checked(END_BYTES)) {
            Some((record, rest)) => malformed(after(record, rest)),
            None if tail.windows(END.len()).any(|window| window == END) => {
                Err((Code::NotAZip, "The end record is cut off."))
            }
            None => Err((Code::NotAZip, "The end record of a ZIP archive was not found.")),
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
    // A directory of u32 bytes and offset cannot overflow.
    if u64::try_from(END_BYTES).ok().and_then(|end| length.checked_sub(end)) != Some(offset + bytes) {
        return malformed(
            "The directory is not where the end record says, or there is data before the archive.",
        );
    }
    if bytes > DIRECTORY_BYTES {
        return Err((Code::DirectoryTooLarge, "The directory has more than 8 MiB."));
    }
    if has_other_marks(before, last) || ends_elsewhere(before, tail.len()) {
        return malformed("The archive contains a second end record or a ZIP64 record.");
    }
    Ok(Directory { entries, offset, bytes })
}

/// Explains an archive whose end record is not its last 22 bytes.
fn after(record: &[u8], rest: &[u8]) -> &'static str {
    /// Hexadecimal digits in a commit id.
    const COMMIT_CHARS: usize = 40;
    if comment_bytes(record) == Some(rest.len()) {
        return if rest.len() == COMMIT_CHARS && rest.iter().all(u8::is_ascii_hexdigit) {
            "The archive has a comment, as `git archive` writes it for a commit: give it the tree, as in `HEAD^{tree}`."
        } else {
            "The archive has a comment."
        };
    }
    if rest.iter().all(|byte| *byte == 0) {
        return "There are zeros after the archive, as `bsdtar` writes them to a pipe: write the archive to a file.";
    }
    "There is data after the archive, or the archive has a comment."
}

/// The comment length that an end record declares.
fn comment_bytes(record: &[u8]) -> Option<usize> {
    let bytes = record.get(END_BYTES - 2..END_BYTES)?;
    Some(usize::from(Fields(bytes).u16()?))
}

/// Whether the last bytes of the archive contain another mark that readers scan for, in any field.
fn has_other_marks(before: &[u8], record: &[u8]) -> bool {
    let start = before.len().saturating_sub(MARKED_BYTES);
    let near = before.get(start..).unwrap_or_default();
    let bytes = [near, record].concat();
    let mut windows = bytes.windows(END.len()).enumerate();
    windows.any(|(at, window)| at != near.len() && MARKS.iter().any(|mark| window == mark))
}

/// Whether an earlier end record has a comment that reaches the end of the archive.
fn ends_elsewhere(before: &[u8], length: usize) -> bool {
    let mut windows = before.windows(END.len()).enumerate().filter(|(_, window)| *window == END);
    windows.any(|(at, _)| {
        let comment = before.get(at..).and_then(comment_bytes);
        comment.is_some_and(|comment| at + END_BYTES + comment == length)
    })
}
