//! Local headers and descriptors: they must match the directory, without gaps and overlaps.

use std::io::{Read, Seek, SeekFrom};

use super::entry::{ArchiveEntry, DESCRIPTOR, LOCAL};
use super::extra::Extras;
use super::fields::Fields;
use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;

/// Bytes of a local header before the name.
const HEADER_BYTES: usize = 30;
const DESCRIPTOR_BYTES: usize = 16;
const DESCRIPTOR_MARK: [u8; 4] = *b"PK\x07\x08";

/// Reads each entry's local header, in archive order, and sets the content offset. The entries must fill the archive up
/// to `end`, where the directory begins.
pub(super) fn read(
    reader: &mut (impl Read + Seek),
    entries: &mut [ArchiveEntry],
    end: u64,
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<(), CheckError> {
    entries.sort_by_key(|entry| entry.offset);
    let mut free = 0;
    for entry in entries {
        deadline.check()?;
        let offset = u64::from(entry.offset);
        if offset < free {
            findings.file(Code::ZipOverlap, &entry.name, "The entry begins inside the one before it.");
            continue;
        }
        if offset > free {
            let detail = "There is data before the entry that belongs to no entry.";
            findings.file(Code::ZipMalformed, &entry.name, detail);
        }
        if offset >= end {
            findings.file(Code::ZipMalformed, &entry.name, "The entry is outside the archive.");
            return Ok(());
        }
        match header(reader, entry, end)? {
            Ok(next) => free = next.max(free),
            Err((code, detail)) => {
                findings.file(code, &entry.name, detail);
                // The next entry's offset is unknown.
                return Ok(());
            }
        }
    }
    if free != end {
        findings.archive(Code::ZipMalformed, "There is data before the directory that belongs to no entry.");
    }
    Ok(())
}

/// The result of a header check; a failed one has a code and a detail.
type HeaderResult<T> = Result<T, (Code, &'static str)>;

/// Checks a local header; returns the entry's end.
fn header(
    reader: &mut (impl Read + Seek),
    entry: &mut ArchiveEntry,
    end: u64,
) -> Result<HeaderResult<u64>, CheckError> {
    let malformed = |detail| Ok(Err((Code::ZipMalformed, detail)));
    let start = u64::from(entry.offset);
    reader.seek(SeekFrom::Start(start))?;
    let mut fixed = [0; HEADER_BYTES];
    if !fill(reader, &mut fixed)? {
        return malformed("The local header is cut off.");
    }
    let lengths = match compare(&fixed, entry) {
        Ok(lengths) => lengths,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let (name, extra) = (usize::from(lengths.0), usize::from(lengths.1));
    let mut rest = vec![0; name + extra];
    if !fill(reader, &mut rest)? {
        return malformed("The local header is cut off.");
    }
    let (name, extra) = rest.split_at_checked(name).unwrap_or_default();
    if *name != *entry.name {
        return malformed("The local header has another name than the directory.");
    }
    match Extras::read(extra, name) {
        Ok(local) => {
            entry.extras.link |= local.link;
            entry.extras.other_name |= local.other_name;
        }
        Err(wrong) => return Ok(Err(wrong)),
    }
    let header = u64::try_from(HEADER_BYTES + rest.len()).unwrap_or(u64::MAX);
    entry.data = start.saturating_add(header);
    let after = entry.data.saturating_add(u64::from(entry.packed));
    if after > end {
        return malformed("The entry reaches into the directory.");
    }
    if entry.flags & DESCRIPTOR == 0 {
        return Ok(Ok(after));
    }
    reader.seek(SeekFrom::Start(after))?;
    let mut descriptor = [0; DESCRIPTOR_BYTES];
    let last = after.saturating_add(u64::try_from(DESCRIPTOR_BYTES).unwrap_or(u64::MAX));
    if last > end || !fill(reader, &mut descriptor)? || !describes(&descriptor, entry) {
        return malformed("The descriptor after the entry differs from the directory.");
    }
    Ok(Ok(last))
}

/// Compares the fixed part; returns the lengths of the name and the extra fields.
fn compare(fixed: &[u8], entry: &ArchiveEntry) -> HeaderResult<(u16, u16)> {
    let malformed = |detail| (Code::ZipMalformed, detail);
    let cut = malformed("The local header is cut off.");
    let fixed = fixed.strip_prefix(&LOCAL).ok_or(malformed("The entry has no local header."))?;
    let mut fields = Fields(fixed);
    let (version, flags) = (fields.u16().ok_or(cut)?, fields.u16().ok_or(cut)?);
    let (method, time) = (fields.u16().ok_or(cut)?, fields.u32().ok_or(cut)?);
    let sums = [fields.u32().ok_or(cut)?, fields.u32().ok_or(cut)?, fields.u32().ok_or(cut)?];
    let expected = match entry.method {
        super::Method::Stored => 0,
        super::Method::Deflated => 8,
    };
    if (version, flags, method, time) != (entry.version, entry.flags, expected, entry.time) {
        return Err(malformed("The local header differs from the directory."));
    }
    let given = [entry.crc, entry.packed, entry.size];
    if sums.iter().skip(1).any(|sum| *sum == u32::MAX) {
        return Err(malformed(
            "The local header has sizes of ZIP64; bundles are too small to need them. In Python, leave out `force_zip64`.",
        ));
    }
    let follows = flags & DESCRIPTOR != 0;
    if !sums.iter().zip(given).all(|(sum, given)| *sum == given || follows && *sum == 0) {
        return Err(malformed("The local header has other sizes or another checksum than the directory."));
    }
    Ok((fields.u16().ok_or(cut)?, fields.u16().ok_or(cut)?))
}

fn describes(descriptor: &[u8], entry: &ArchiveEntry) -> bool {
    let Some(fields) = descriptor.strip_prefix(&DESCRIPTOR_MARK) else { return false };
    let mut fields = Fields(fields);
    [entry.crc, entry.packed, entry.size].into_iter().all(|given| fields.u32() == Some(given))
}

/// Fills the buffer; `false` if the archive ends first.
pub(super) fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> Result<bool, CheckError> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.into()),
    }
}
