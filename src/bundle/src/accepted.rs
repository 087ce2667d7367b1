//! An accepted bundle, its files and their content.

use std::io::{self, Read, Seek};

use crate::archive::{ArchiveEntry, EntryContent, Piece};
use crate::error::CheckError;
use crate::finding::Note;
use crate::manifest::Manifest;

/// A file of an accepted bundle.
#[derive(Debug, Clone)]
pub struct File {
    /// The path from the root, in NFC form.
    pub path: String,
    /// Content bytes.
    pub size: u64,
    /// The content's SHA-256.
    pub digest: [u8; 32],
    /// The content type for serving it.
    pub media_type: &'static str,
    /// Sorted base64 SHA-256 hashes for an HTML document's inline scripts.
    pub script_hashes: Vec<String>,
    /// The policy for an HTML document; other files have [`FILE_POLICY`](crate::FILE_POLICY).
    pub policy: Option<String>,
    pub(crate) entry: ArchiveEntry,
}

/// A bundle without findings.
#[derive(Debug)]
pub struct Accepted {
    /// The files by path, without the manifest and dropped files.
    pub files: Vec<File>,
    /// Escaped paths of files that desktop systems add; they are not served.
    pub dropped: Vec<String>,
    /// The manifest, if the bundle has one.
    pub manifest: Option<Manifest>,
    /// Remarks for the publisher.
    pub notes: Vec<Note>,
    /// Archive bytes.
    pub size: u64,
    /// Inflated bytes of all entries, including the manifest and dropped files.
    pub expanded_size: u64,
    /// Whether any file is WebAssembly.
    pub wasm: bool,
}

impl File {
    /// Reads the content from the checked archive, in pieces.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn open<'r, R: Read + Seek>(&self, archive: &'r mut R) -> io::Result<FileReader<'r, R>> {
        EntryContent::open(archive, &self.entry).map(FileReader).map_err(io_error)
    }
}

/// A file's content. Returns an error at the end if the archive has changed since the check.
pub struct FileReader<'r, R>(EntryContent<'r, R>);

impl<R: Read + Seek> Read for FileReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match self.0.next(buffer).map_err(io_error)? {
            Piece::Bytes(count) => Ok(count),
            Piece::End => Ok(0),
            Piece::Fault(_) => Err(io_error(CheckError::changed())),
        }
    }
}

fn io_error(error: CheckError) -> io::Error {
    match error {
        CheckError::Io(error) => error,
        CheckError::Overdue => io::Error::new(io::ErrorKind::TimedOut, error),
    }
}
