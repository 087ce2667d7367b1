//! The single pass over all contents: sizes, checksums, limits, digests and file kinds.

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use ring::digest::{Context, SHA256};

use crate::archive::{ArchiveEntry, EntryContent, Fault, Piece};
use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;
use crate::kinds::Inspector;
use crate::limits::Limits;

const PIECE_BYTES: usize = 64 * 1024;

/// The result of the pass.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// SHA-256 by entry number.
    pub(crate) digests: Vec<[u8; 32]>,
    /// Inflated bytes of all entries.
    pub(crate) expanded: u64,
    pub(crate) structure: Findings,
    pub(crate) limits: Findings,
    pub(crate) kinds: Findings,
}

enum EntryOutcome {
    /// The digest, and the reason if the file's kind is refused.
    Complete([u8; 32], Option<(Code, String)>),
    Skipped,
    /// The contents together are too large.
    Full,
}

impl Contents {
    /// Reads all entries in archive order. Only these `files` are refused as archives or programs.
    pub(crate) fn read(
        reader: &mut (impl Read + Seek),
        entries: &[ArchiveEntry],
        files: &BTreeSet<usize>,
        limits: &Limits,
        deadline: &Deadline<'_>,
    ) -> Result<Self, CheckError> {
        let mut contents = Self::default();
        let mut buffer = vec![0; PIECE_BYTES];
        for (number, entry) in entries.iter().enumerate() {
            match contents.entry(reader, entry, limits, deadline, &mut buffer)? {
                EntryOutcome::Complete(digest, refused) => {
                    contents.digests.push(digest);
                    if let Some((code, detail)) = refused.filter(|_| files.contains(&number)) {
                        contents.kinds.file(code, &entry.name, detail);
                    }
                }
                EntryOutcome::Skipped => contents.digests.push([0; 32]),
                EntryOutcome::Full => break,
            }
        }
        Ok(contents)
    }

    fn entry(
        &mut self,
        reader: &mut (impl Read + Seek),
        entry: &ArchiveEntry,
        limits: &Limits,
        deadline: &Deadline<'_>,
        buffer: &mut [u8],
    ) -> Result<EntryOutcome, CheckError> {
        let mut content = EntryContent::open(reader, entry)?;
        let mut digest = Context::new(&SHA256);
        let mut inspector = Inspector::default();
        let mut size = 0_u64;
        loop {
            deadline.check()?;
            let count = match content.next(buffer)? {
                Piece::Bytes(count) => count,
                Piece::End => break,
                Piece::Fault(fault) => {
                    // A limit that was exceeded earlier takes precedence.
                    if self.limits.is_empty() {
                        let (code, detail) = fault.finding();
                        self.structure.file(code, &entry.name, detail);
                    }
                    return Ok(EntryOutcome::Skipped);
                }
            };
            let bytes = buffer.get(..count).unwrap_or_default();
            let added = u64::try_from(count).unwrap_or(u64::MAX);
            size = size.saturating_add(added);
            self.expanded = self.expanded.saturating_add(added);
            if self.expanded > limits.expanded {
                let detail =
                    format!("The files have more than {} bytes together when inflated.", limits.expanded);
                self.limits.archive(Code::ExpandedTooLarge, detail);
                return Ok(EntryOutcome::Full);
            }
            if size > limits.file {
                let detail = format!("The file has more than {} bytes when inflated.", limits.file);
                self.limits.file(Code::FileTooLarge, &entry.name, detail);
                return Ok(EntryOutcome::Skipped);
            }
            digest.update(bytes);
            inspector.feed(bytes);
        }
        let refused = inspector.end(&String::from_utf8_lossy(&entry.name));
        Ok(EntryOutcome::Complete(digest.finish().as_ref().try_into().unwrap_or_default(), refused))
    }
}

impl Fault {
    fn finding(self) -> (Code, &'static str) {
        match self {
            Self::Damaged => (Code::CrcMismatch, "The compressed data is damaged."),
            Self::Checksum => (Code::CrcMismatch, "The content has another checksum than the archive says."),
            Self::Header => (
                Code::ZipOverlap,
                "The file is stored and followed by its size, and contains the mark of a header, at which some readers end it: compress it, or write the archive to a file.",
            ),
            Self::Size => (Code::SizeMismatch, "The content has another size than the archive says."),
            Self::Short => (Code::SizeMismatch, "The compressed data ends before the content does."),
            Self::Unread => (Code::SizeMismatch, "There is data after the end of the compressed content."),
        }
    }
}
