//! Packs files into an archive that the check accepts: the same files have the same archive.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::archive::{CENTRAL, END};

const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// Version 2.0 of the format, which is the first with deflate.
const VERSION: u16 = 20;
/// That version, on Unix, where the mode is in the attributes.
const MADE_BY: u16 = 3 << 8 | VERSION;
const UTF8: u16 = 1 << 11;
const DEFLATE: u16 = 8;
/// The first time of the format: 1 January 1980.
const TIME: u32 = 0x0021_0000;

/// Writes an archive in memory.
#[derive(Debug, Default)]
pub struct Packer {
    body: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Packer {
    /// Adds an entry. `path` is relative, with `/` between its names; `mode` is that of Unix, with the type of the file.
    ///
    /// # Errors
    /// If the archive would need ZIP64.
    pub fn add(&mut self, path: &[u8], mode: u16, content: &[u8]) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        let offset = small(self.body.len())?;
        let sums = [TIME, crc32fast::hash(content), small(packed.len())?, small(content.len())?];
        let name = u16::try_from(path.len()).map_err(too_large)?;
        let entries = self.entries.checked_add(1).filter(|entries| *entries < u16::MAX);
        self.entries = entries.ok_or_else(|| too_large("there are too many entries"))?;
        let mut shared = Vec::new();
        for field in [VERSION, UTF8, DEFLATE] {
            shared.extend(field.to_le_bytes());
        }
        for field in sums {
            shared.extend(field.to_le_bytes());
        }
        shared.extend(name.to_le_bytes());
        // No extra fields.
        shared.extend([0; 2]);
        for part in [LOCAL.as_slice(), &shared, path, &packed] {
            self.body.extend(part);
        }
        let attributes = (u32::from(mode) << 16).to_le_bytes();
        // No comment, the first disk, no internal attributes.
        let parts = [
            &CENTRAL[..],
            &MADE_BY.to_le_bytes(),
            &shared,
            &[0; 6],
            &attributes,
            &offset.to_le_bytes(),
            path,
        ];
        for part in parts {
            self.directory.extend(part);
        }
        Ok(())
    }

    /// The archive.
    ///
    /// # Errors
    /// If the archive would need ZIP64.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        let Self { body: mut archive, directory, entries } = self;
        let (bytes, offset) = (small(directory.len())?, small(archive.len())?);
        archive.extend(directory);
        archive.extend(END);
        for field in [0, 0, entries, entries] {
            archive.extend(field.to_le_bytes());
        }
        archive.extend(bytes.to_le_bytes());
        archive.extend(offset.to_le_bytes());
        archive.extend([0; 2]);
        Ok(archive)
    }
}

fn small(count: usize) -> io::Result<u32> {
    u32::try_from(count).map_err(too_large)
}

fn too_large(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}
