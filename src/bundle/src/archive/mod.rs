//! The archive's structure, checked before any byte is inflated: an archive must have exactly one interpretation.
//!
//! ZIP readers disagree about ambiguous archives. So an archive must have one end record without a comment, one
//! directory directly before it, and entries that fill the space before the directory in offset order. Local headers
//! and descriptors must match the directory.

mod content;
mod end;
mod entry;
mod extra;
mod fields;
mod local;
mod marks;

use std::io::{Read, Seek, SeekFrom};

pub(crate) use content::{EntryContent, Fault, Piece};
pub(crate) use end::{END, END_BYTES, ZIP64_LOCATOR, ZIP64_LOCATOR_BYTES};
pub(crate) use entry::{ArchiveEntry, CENTRAL, Method};

use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;
use fields::Fields;

/// Reads the structure; returns the entries in archive order. Use them only if nothing was found.
pub(crate) fn read(
    reader: &mut (impl Read + Seek),
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Vec<ArchiveEntry>, CheckError> {
    let length = reader.seek(SeekFrom::End(0))?;
    let searched = length.min(u64::try_from(end::SEARCHED_BYTES).unwrap_or(u64::MAX));
    reader.seek(SeekFrom::Start(length - searched))?;
    let mut tail = vec![0; usize::try_from(searched).unwrap_or_default()];
    if !local::fill(reader, &mut tail)? {
        return Err(CheckError::changed());
    }
    let directory = match end::read(&tail, length) {
        Ok(directory) => directory,
        Err((code, detail)) => {
            findings.archive(code, detail);
            return Ok(Vec::new());
        }
    };
    drop(tail);
    reader.seek(SeekFrom::Start(directory.offset))?;
    let mut bytes = vec![0; usize::try_from(directory.bytes).unwrap_or_default()];
    if !local::fill(reader, &mut bytes)? {
        return Err(CheckError::changed());
    }
    let mut entries = entries(&bytes, directory.entries, deadline, findings)?;
    drop(bytes);
    if findings.is_empty() {
        local::read(reader, &mut entries, directory.offset, deadline, findings)?;
    }
    Ok(entries)
}

/// Reads a directory with exactly `count` entries and nothing else.
fn entries(
    bytes: &[u8],
    count: u16,
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Vec<ArchiveEntry>, CheckError> {
    let mut fields = Fields(bytes);
    let mut entries = Vec::new();
    for _ in 0..count {
        deadline.check()?;
        match ArchiveEntry::read(&mut fields) {
            Some(Ok(entry)) => entries.push(entry),
            Some(Err(wrong)) => findings.file(wrong.code, &wrong.name, wrong.detail),
            None => {
                let detail = "The directory has fewer entries than the end record says, or a damaged one.";
                findings.archive(Code::ZipMalformed, detail);
                return Ok(entries);
            }
        }
    }
    if !fields.is_empty() {
        findings.archive(Code::ZipMalformed, "The directory has more than its entries.");
    }
    Ok(entries)
}
