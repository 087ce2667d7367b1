//! An accepted bundle: its files, and how to read them.

use std::io::{self, Read, Seek};

use crate::archive::{Content, Entry, Piece};
use crate::error::CheckError;
use crate::finding::Note;
use crate::manifest::Manifest;

/// A file of an accepted bundle.
#[derive(Debug, Clone)]
pub struct File {
    /// The path from the root, in the form NFC.
    pub path: String,
    /// Bytes of the content.
    pub size: u64,
    /// SHA-256 of the content.
    pub digest: [u8; 32],
    /// The content type to serve it with.
    pub media_type: &'static str,
    /// SHA-256 of each inline script of an HTML document, in base64, sorted.
    pub script_hashes: Vec<String>,
    /// The policy of an HTML document; other files have [`FILE_POLICY`](crate::FILE_POLICY).
    pub policy: Option<String>,
    pub(crate) entry: Entry,
}

/// A bundle without findings.
#[derive(Debug)]
pub struct Accepted {
    /// The files by path, without the manifest and those that are dropped.
    pub files: Vec<File>,
    /// Files of desktop systems that are not served, escaped.
    pub dropped: Vec<String>,
    /// The manifest, if the bundle has one.
    pub manifest: Option<Manifest>,
    /// Remarks for the publisher.
    pub notes: Vec<Note>,
    /// Bytes of the archive.
    pub size: u64,
    /// Bytes of all entries when they are inflated, with the manifest and the dropped files.
    pub expanded_size: u64,
    /// Whether a file is WebAssembly.
    pub wasm: bool,
}

impl File {
    /// Reads the content from the archive that was checked, piece by piece.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn open<'r, R: Read + Seek>(&self, archive: &'r mut R) -> io::Result<FileReader<'r, R>> {
        Content::open(archive, &self.entry).map(FileReader).map_err(io_error)
    }
}

/// The content of a file. Returns an error at the end if the archive has changed since the check.
pub struct FileReader<'r, R>(Content<'r, R>);

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
