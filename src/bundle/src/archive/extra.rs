//! Extra fields. Only fields that do not change an entry's meaning are allowed: times, user ids and marks.

use std::collections::BTreeSet;

use super::fields::Fields;
use crate::code::Code;

const ZIP64: u16 = 0x0001;
const TIMES: u16 = 0x5455;
const PKWARE_UNIX: u16 = 0x000d;
const STRONG_ENCRYPTION: u16 = 0x0017;
const AES: u16 = 0x9901;
const ASI_UNIX: u16 = 0x756e;
const UNICODE_PATH: u16 = 0x7075;

/// Fields without effect.
const ALLOWED: [u16; 8] = [
    0x000a, // times of NTFS
    0x4453, // the access list of NTFS
    0x5855, // times and ids of older Info-ZIP
    0x7855, // ids of older Info-ZIP
    0x7875, // ids
    0xa11e, // alignment
    0xcafe, // the mark of a jar
    0xd935, // alignment of Android
];

/// Allowed lengths for [`TIMES`]: a flag byte, then up to three times.
const TIMES_BYTES: [usize; 4] = [1, 5, 9, 13];
/// Bytes of [`PKWARE_UNIX`] before a link's target.
const PKWARE_UNIX_FIXED: usize = 12;
/// Bytes of [`UNICODE_PATH`] before the name: a version and the other name's checksum.
const UNICODE_PATH_FIXED: usize = 5;

/// The extra fields' effects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Whether a field gives the entry another name.
    pub(crate) other_name: bool,
    /// Whether a field makes the entry a link or a device.
    pub(crate) link: bool,
}

impl Extras {
    /// Reads all extra fields of the entry `name`.
    pub(super) fn read(extra: &[u8], name: &[u8]) -> Result<Self, (Code, &'static str)> {
        let malformed = |detail| (Code::ZipMalformed, detail);
        let mut fields = Fields(extra);
        let mut seen = BTreeSet::new();
        let mut extras = Self::default();
        while !fields.is_empty() {
            let cut = malformed("An extra field is cut off.");
            let id = fields.u16().ok_or(cut)?;
            let length = fields.u16().ok_or(cut)?;
            let value = fields.take(length).ok_or(cut)?;
            if !seen.insert(id) {
                return Err(malformed("An extra field is repeated."));
            }
            match id {
                ZIP64 => {
                    return Err(malformed(
                        "The entry has a ZIP64 field; bundles are too small to need it. For Ant, set `zip64Mode=\"never\"`.",
                    ));
                }
                AES | STRONG_ENCRYPTION => {
                    return Err((Code::EncryptedEntry, "The entry has a field of an encryption."));
                }
                UNICODE_PATH => {
                    let other = value.get(UNICODE_PATH_FIXED..);
                    let other = other.ok_or(malformed("The field with the Unicode name is cut off."))?;
                    extras.other_name |= other != name;
                }
                PKWARE_UNIX => extras.link |= value.len() > PKWARE_UNIX_FIXED,
                ASI_UNIX => extras.link = true,
                TIMES if TIMES_BYTES.contains(&value.len()) => {}
                TIMES => return Err(malformed("The extra field with the times is damaged.")),
                _ if ALLOWED.contains(&id) => {}
                _ => {
                    return Err(malformed(
                        "The entry has an extra field that is not one of the times, ids and marks that are allowed.",
                    ));
                }
            }
        }
        Ok(extras)
    }
}
