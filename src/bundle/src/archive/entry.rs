//! A directory entry.

use super::end::MARKS;
use super::extra::Extras;
use super::fields::Fields;
use crate::code::Code;

pub(super) const LOCAL: [u8; 4] = *b"PK\x03\x04";
pub(crate) const CENTRAL: [u8; 4] = *b"PK\x01\x02";
/// The highest format version that stored and deflated entries require.
const NEWEST: u16 = 46;

/// Flag: sizes and checksum follow the data.
pub(super) const DESCRIPTOR: u16 = 1 << 3;
const UTF8: u16 = 1 << 11;
/// Two bits for the deflate level, and the two flags above.
const ALLOWED: u16 = 1 << 1 | 1 << 2 | DESCRIPTOR | UTF8;
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const PATCH: u16 = 1 << 5;

/// The storage method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
}

impl Method {
    fn from_number(number: u16) -> Result<Self, (Code, &'static str)> {
        match number {
            0 => Ok(Self::Stored),
            8 => Ok(Self::Deflated),
            _ => Err((Code::UnsupportedCompression, "The method of compression is not supported.")),
        }
    }
}

/// An entry as described by the directory.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveEntry {
    pub(crate) name: Box<[u8]>,
    pub(super) version: u16,
    pub(super) flags: u16,
    pub(crate) method: Method,
    /// Modification time and date.
    pub(super) time: u32,
    pub(crate) crc: u32,
    /// Compressed bytes.
    pub(crate) packed: u32,
    /// Content bytes.
    pub(crate) size: u32,
    /// Local header offset.
    pub(crate) offset: u32,
    /// Unix mode and DOS attributes.
    pub(crate) attributes: u32,
    pub(crate) extras: Extras,
    /// Content offset; set after the local header was read.
    pub(crate) data: u64,
}

impl ArchiveEntry {
    /// Whether a streaming reader finds the content's end by scanning for marks.
    pub(super) fn ends_at_a_mark(&self) -> bool {
        self.method == Method::Stored && self.flags & DESCRIPTOR != 0
    }

    /// Whether the name is marked as UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        self.flags & UTF8 != 0
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.name.last() == Some(&b'/')
    }

    /// Reads an entry from the directory; `None` if it is truncated or not an entry.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Result<Self, EntryProblem>> {
        fields.0 = fields.0.strip_prefix(&CENTRAL)?;
        let _made_by = fields.u16()?;
        let (version, flags, method) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let (time, crc, packed, size) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let (disk, _internal, attributes, offset) =
            (fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?);
        let texts = fields.0;
        let (name, extra) = (fields.take(name)?, fields.take(extra)?);
        // A signature may begin in the name and end in the extra fields.
        let texts = texts.get(..name.len() + extra.len())?;
        let has_comment = !fields.take(comment)?.is_empty();
        let checked = || {
            encryption_and_flags(flags, method)?;
            let extras = Extras::read(extra, name)?;
            let method = Method::from_number(method)?;
            let malformed = |detail| Err((Code::ZipMalformed, detail));
            if has_comment {
                return malformed("The entry has a comment.");
            }
            if disk != 0 {
                return malformed("The entry is on another disk.");
            }
            if version > NEWEST {
                return malformed(
                    "The entry needs a version of ZIP above 4.6, which many readers do not have.",
                );
            }
            if [packed, size, offset].contains(&u32::MAX) {
                return malformed("The entry has sizes of ZIP64; bundles are too small to need them.");
            }
            if MARKS.iter().any(|mark| contains(texts, mark)) {
                return malformed("The directory contains a second end record.");
            }
            if method == Method::Stored && packed != size {
                return Err((Code::SizeMismatch, "The entry is not compressed, but gives two sizes."));
            }
            let name = name.into();
            Ok(Self {
                name,
                version,
                flags,
                method,
                time,
                crc,
                packed,
                size,
                offset,
                attributes,
                extras,
                data: 0,
            })
        };
        Some(checked().map_err(|(code, detail)| EntryProblem { name: name.into(), code, detail }))
    }
}

/// The reason that an entry is refused.
pub(super) struct EntryProblem {
    pub(super) name: Box<[u8]>,
    pub(super) code: Code,
    pub(super) detail: &'static str,
}

fn encryption_and_flags(flags: u16, method: u16) -> Result<(), (Code, &'static str)> {
    const METHOD_AES: u16 = 99;
    if flags & ENCRYPTED != 0 || method == METHOD_AES {
        return Err((Code::EncryptedEntry, "The entry is encrypted."));
    }
    if flags & PATCH != 0 {
        return Err((Code::ZipMalformed, "The entry is a patch of another file."));
    }
    if flags & !ALLOWED != 0 {
        return Err((Code::ZipMalformed, "The entry has flags without a common meaning."));
    }
    Ok(())
}

fn contains(text: &[u8], mark: &[u8]) -> bool {
    text.windows(mark.len()).any(|window| window == mark)
}
