//! An entry's content, in pieces.

use std::io::{Read, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress, Status};

use super::marks::Marks;
use super::{ArchiveEntry, Method};
use crate::error::CheckError;

const INPUT_BYTES: usize = 32 * 1024;

/// The result of a read.
pub(crate) enum Piece {
    /// Bytes written to the buffer.
    Bytes(usize),
    /// The content is complete and matches the archive's fields.
    End,
    /// The content does not match the archive's fields.
    Fault(Fault),
}

/// A mismatch between a content and the archive's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The compressed data cannot be inflated.
    Damaged,
    Checksum,
    /// The content contains a header mark, at which a streaming reader would end it.
    Header,
    Size,
    /// The compressed data ends before the content does.
    Short,
    /// The content ends before the compressed data does.
    Unread,
}

/// Reads an entry. Uses two buffers and the deflate window, whatever the entry's size.
pub(crate) struct EntryContent<'r, R> {
    reader: &'r mut R,
    /// Entry bytes not yet read from the archive.
    unread: u64,
    input: Vec<u8>,
    /// Inflated bytes of `input`.
    consumed: usize,
    inflate: Option<Decompress>,
    marks: Option<Marks>,
    /// Whether the end of the compressed data was reached.
    ended: bool,
    crc: crc32fast::Hasher,
    count: u64,
    expected: (u32, u64),
}

impl<'r, R: Read + Seek> EntryContent<'r, R> {
    pub(crate) fn open(reader: &'r mut R, entry: &ArchiveEntry) -> Result<Self, CheckError> {
        reader.seek(SeekFrom::Start(entry.data))?;
        let inflate = match entry.method {
            Method::Stored => None,
            Method::Deflated => Some(Decompress::new(false)),
        };
        Ok(Self {
            reader,
            unread: u64::from(entry.packed),
            input: Vec::new(),
            consumed: 0,
            inflate,
            marks: entry.ends_at_a_mark().then(Marks::default),
            ended: false,
            crc: crc32fast::Hasher::new(),
            count: 0,
            expected: (entry.crc, u64::from(entry.size)),
        })
    }

    /// Reads the next bytes into `buffer`, which must not be empty.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> Result<Piece, CheckError> {
        loop {
            if self.ended {
                return Ok(self.end());
            }
            if self.consumed == self.input.len() {
                self.refill()?;
            }
            let given = self.input.get(self.consumed..).unwrap_or_default();
            let (used, made, status) = match &mut self.inflate {
                None => {
                    let count = given.len().min(buffer.len());
                    if let (Some(output), Some(input)) = (buffer.get_mut(..count), given.get(..count)) {
                        output.copy_from_slice(input);
                    }
                    let end = if count == 0 { Status::StreamEnd } else { Status::Ok };
                    (count, count, end)
                }
                Some(inflate) => {
                    let before = (inflate.total_in(), inflate.total_out());
                    let Ok(status) = inflate.decompress(given, buffer, FlushDecompress::None) else {
                        return Ok(Piece::Fault(Fault::Damaged));
                    };
                    let used = usize::try_from(inflate.total_in() - before.0).unwrap_or(usize::MAX);
                    (used, usize::try_from(inflate.total_out() - before.1).unwrap_or(usize::MAX), status)
                }
            };
            self.consumed = self.consumed.saturating_add(used);
            let empty = given.is_empty();
            self.ended = matches!(status, Status::StreamEnd);
            if made > 0 {
                let made_bytes = buffer.get(..made).unwrap_or_default();
                if self.marks.as_mut().is_some_and(|marks| marks.find(made_bytes)) {
                    return Ok(Piece::Fault(Fault::Header));
                }
                self.crc.update(made_bytes);
                self.count = self.count.saturating_add(u64::try_from(made).unwrap_or(u64::MAX));
                return Ok(Piece::Bytes(made));
            }
            match status {
                Status::StreamEnd => {}
                _ if empty => return Ok(Piece::Fault(Fault::Short)),
                _ if used == 0 => return Ok(Piece::Fault(Fault::Damaged)),
                _ => {}
            }
        }
    }

    fn refill(&mut self) -> Result<(), CheckError> {
        let count = usize::try_from(self.unread).unwrap_or(usize::MAX).min(INPUT_BYTES);
        self.input.resize(count, 0);
        self.consumed = 0;
        if !super::local::fill(self.reader, &mut self.input)? {
            return Err(CheckError::changed());
        }
        self.unread = self.unread.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(())
    }

    fn end(&mut self) -> Piece {
        if self.unread > 0 || self.consumed < self.input.len() {
            Piece::Fault(Fault::Unread)
        } else if self.count != self.expected.1 {
            Piece::Fault(Fault::Size)
        } else if self.crc.clone().finalize() != self.expected.0 {
            Piece::Fault(Fault::Checksum)
        } else {
            Piece::End
        }
    }
}
